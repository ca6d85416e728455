"""The reservoir board and the usual one by plain enumeration, in fractions."""

from fractions import Fraction
from itertools import product

from support.fraction_etc import binomial


def expected_prize(means, weights, slots, tests, fresh, weight, prize):
    """The reservoir board by plain enumeration of what every slot holds and scores, in fractions."""
    total = Fraction(0)
    for held in product(range(len(means)), repeat=slots):
        chance = Fraction(1)
        for original in held:
            chance *= weights[original]
        if chance == 0:
            continue
        for counts in product(range(tests + 1), repeat=slots):
            likely = chance
            for original, x in zip(held, counts, strict=True):
                likely *= binomial(tests, means[original])[x]
            best = max(range(slots), key=lambda j: (counts[j], -j))
            champion = means[held[best]]
            total += likely * sum(
                binomial(fresh, champion)[y] * prize[weight * counts[best] + y] for y in range(fresh + 1)
            )
    return total


def listed_best(means, copies, votes, prize):
    """The usual board: the best count of all listings."""
    listed = [mean for mean, times in zip(means, copies, strict=True) for _ in range(times)]
    total = Fraction(0)
    for counts in product(range(votes + 1), repeat=len(listed)):
        likely = Fraction(1)
        for mean, x in zip(listed, counts, strict=True):
            likely *= binomial(votes, mean)[x]
        total += likely * prize[max(counts)]
    return total
