"""H-ETC-R with the running argmax on both levels (Algorithm 5 as printed), sure rewards 0 or 1, against a sure rival.

In fractions and sharing nothing with the engines. The rival's average never moves, so the agent is chosen while its own
is higher, with chance 1/2 where they tie, and never again once it is lower.
"""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import ceil, log

TAIL = 64  # a tie that has lasted so many rounds is dropped: its chance is 2^-64


def payoff(copies, largest, factor, order, horizon=4000, rival=Fraction(3, 5)):
    """The agent's expected reward, two originals of mean 0 or 1 with equal odds, m = factor * L ln 2T, M = mL."""
    m = ceil(factor * largest * log(2 * horizon))
    trial, total = m * largest, Fraction(0)
    award = horizon - 2 * trial
    for means in product((0, 1), repeat=2):
        arms = [mean for mean, count in zip(means, copies, strict=True) for _ in range(count)]
        for chance, first in rewards(arms, m, trial, order):
            for again, second in rewards(arms, m, award, order):
                won = awarded(sum(first), trial, second, rival)
                total += chance * again * (sum(first) + won) / 4
    return total


def rewards(arms, m, rounds, order):
    """(chance, rewards) of that many rounds of ETC; round-robin keeps its random order in every cycle."""
    ways = Counter([tuple(arms)] if order == "index" else permutations(arms))
    for way, count in ways.items():
        explored = list(way) * m if order == "round-robin" else [mean for mean in way for _ in range(m)]
        yield Fraction(count, ways.total()), (explored + [max(arms)] * rounds)[:rounds]


def awarded(score, trial, sequence, rival):
    """Expected reward of the award: round j of the agent comes after j + delay rounds, delays from ties."""
    total, delays, longest = Fraction(0), {0: Fraction(1)}, 0
    distance = rival.denominator * score - rival.numerator * trial  # of the averages, as a whole number
    for played, reward in enumerate(sequence):
        if distance < 0:
            break
        if distance == 0:
            later = {}
            for delay, chance in delays.items():
                for more in range(TAIL):
                    later[delay + more] = later.get(delay + more, Fraction(0)) + chance / 2 ** (more + 1)
            delays, longest = later, longest + TAIL
        if reward and played + longest < len(sequence):
            total += 1
        elif reward:
            total += sum((p for delay, p in delays.items() if played + delay < len(sequence)), Fraction(0))
        distance += rival.denominator * reward - rival.numerator
    return total
