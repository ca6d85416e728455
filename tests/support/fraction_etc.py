"""ETC over Bernoulli arms in plain fractions, written for the textbook's proof and sharing nothing with the engines.

Arms are given by their means. A registration is a tuple of copies; sigma says which original has which mean.
"""

from fractions import Fraction
from functools import cache
from math import comb


@cache
def binomial(rounds, mean):
    return tuple(comb(rounds, k) * mean**k * (1 - mean) ** (rounds - k) for k in range(rounds + 1))


def overtaken_pair(low, high, m):
    """P(Bin(m, low) >= Bin(m, high)) in fractions."""
    worse, better = binomial(m, low), binomial(m, high)
    return sum((chance * sum(worse[s:]) for s, chance in enumerate(better)), Fraction(0))


@cache
def commits_to(arms, m):
    """For each mean: the chance that ETC commits to an arm of that mean, ties uniformly at random."""
    chances = dict.fromkeys(arms, Fraction(0))
    for own in chances:
        others = list(arms)
        others.remove(own)
        for s in range(m + 1):
            ways = [Fraction(1)]  # ways[j]: j of the others tie at s, the rest are below
            for other in others:
                law = binomial(m, other)
                below, at = sum(law[:s], Fraction(0)), law[s]
                ways = [a * below + b * at for a, b in zip([*ways, 0], [0, *ways], strict=True)]
            tied = sum(way / (j + 1) for j, way in enumerate(ways))
            chances[own] += arms.count(own) * binomial(m, own)[s] * tied
    return chances


def registered(means, copies):
    """The arms in the order of registration."""
    return tuple(mean for mean, count in zip(means, copies, strict=True) for _ in range(count))


def explored(arms, m, rounds, order):
    """The expected reward of that many rounds of exploration, at most len(arms) * m."""
    if order == "index":
        total, left = Fraction(0), rounds
        for mean in arms:
            total += min(left, m) * mean
            left -= min(left, m)
        return total
    return rounds * sum(arms) / len(arms)  # round-robin and block treat all arms alike


def etc_reward(arms, m, rounds, order="round-robin"):
    """What a fresh ETC earns in that many rounds."""
    needed = len(arms) * m
    total = explored(arms, m, min(rounds, needed), order)
    if rounds > needed:
        chances = commits_to(tuple(sorted(arms)), m)
        total += (rounds - needed) * sum(mean * chance for mean, chance in chances.items())
    return total


def score_law(arms, m, fresh):
    """The law of the sum of `fresh` rewards of the arm committed to: indices 0 .. fresh."""
    chances = commits_to(tuple(sorted(arms)), m)
    return [sum(chance * binomial(fresh, mean)[s] for mean, chance in chances.items()) for s in range(fresh + 1)]


def average(values):
    values = list(values)
    return sum(values, Fraction(0)) / len(values)
