"""Families of rewards in closed form: what arms are judged by, and the laws of sums of rewards.

Rewards 0 or 1 have binomial sums, on a lattice; if every reward is the mean, sums are points.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from cloneproof._lib.ticks import TICK_BITS, ticks
from cloneproof.laws.arithmetic import Array, tie_nodes
from cloneproof.laws.counts import CountLaw, add_laws, binomial, convolve, power, scale
from cloneproof.laws.means import MeanCounts

UNLIKELY = 1e-34  # a chance of a best value so low that it may be left out
Sums = Any  # a law of a sum of rewards, in the form of its family


def committed_sums(types: MeanCounts, rounds: int) -> list[CountLaw]:
    """Return, for each type, the law of the successes in `rounds` pulls of every arm if that type is chosen."""
    laws = [binomial(rounds, mean) for mean, _ in types]
    sums: list[list[CountLaw]] = [[] for _ in types]
    low = _lowest_best(laws, types)
    for high in sorted({law.high for law in laws}):
        if high < low:
            continue
        active = [t for t, law in enumerate(laws) if law.high >= high]
        whole = [binomial(rounds * types[t][1], types[t][0]) for t in range(len(types)) if t not in active]
        if len(active) == 1:
            parts = {active[0]: [_best_from(laws[active[0]], types[active[0]], low, rounds)]}
        else:
            kinds = [(laws[t], types[t][1]) for t in active]
            arms = sum(count for _, count in types)
            parts = {t: part for t, part in zip(active, _ties(kinds, low, high, arms), strict=True) if part}
        for t, part in parts.items():
            sums[t].append(reduce(convolve, whole, add_laws(part)))
        low = high + 1
    return [add_laws(part) if part else CountLaw(0, np.zeros(1)) for part in sums]


def _lowest_best(laws: list[CountLaw], types: MeanCounts) -> int:
    """Return the lowest value of the best arm that matters."""
    low, high = max(law.low for law in laws), max(law.high for law in laws)
    chance = np.ones(high - low + 1)
    for law, (_, count) in zip(laws, types, strict=True):
        below = np.ones(high - low + 1)
        up_to = np.minimum(np.cumsum(law.weights), 1.0)[low - law.low :]
        below[: len(up_to)] = up_to
        chance *= below**count
    return low + int(np.searchsorted(chance, UNLIKELY))


def _best_from(law: CountLaw, kind: tuple[float, int], low: int, rounds: int) -> CountLaw:
    """Return the law of the sum over arms of one type, the best of which has at least `low`.

    With L for a sum whose terms are all below, B for the rest and W for the whole: B(a+b) = B(a) W(b) + L(a) B(b).
    """
    mean, count = kind
    if low <= law.low:
        return binomial(rounds * count, mean)
    below = CountLaw(law.low, law.weights[: low - law.low])
    best = CountLaw(low, law.weights[low - law.low :])
    done = 1
    for bit in bin(count)[3:]:
        for more in (done,) if bit == "0" else (done, 1):
            whole = binomial(rounds * more, mean)
            step = best if more == done else CountLaw(low, law.weights[low - law.low :])
            lower = power(below, done)
            best = add_laws([convolve(best, whole), convolve(lower, step)])
            done += more
    return best


def _ties(kinds: list[tuple[CountLaw, int]], low: int, high: int, arms: int) -> list[list[CountLaw]]:
    """Return, for each type, the laws of the sum if it is chosen at a value from low to high, to be added up."""
    nodes, weights = tie_nodes(arms - 1)
    parts: list[list[CountLaw]] = [[] for _ in kinds]
    for s in range(low, high + 1):
        for x, weight in zip(nodes, weights, strict=True):
            all_arms, but_one = [], []
            for law, count in kinds:
                cut = law.weights[: s - law.low + 1].copy()
                cut[-1] = cut[-1] * x
                below = CountLaw(law.low, cut)
                but_one.append(power(below, count - 1))
                all_arms.append(convolve(but_one[-1], below))
            for t, (reward_law, count) in enumerate(kinds):
                law = CountLaw(s, reward_law.weights[s - reward_law.low : s - reward_law.low + 1] * (weight * count))
                for u in range(len(kinds)):
                    law = convolve(law, but_one[u] if u == t else all_arms[u])
                parts[t].append(law)
    return parts


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 0 or 1: sums are binomial, on a lattice. Every family of rewards has the methods below.

    comparison_law       the law of what an arm is judged by after that many rounds, on a scale common to all arms
    pulls                the law of the sum of that many rewards of one mean
    plus, mixture        the law of the sum of two independent sums; a weighted mixture
    sums_by_commitment   for each type, the law of the sum of exploration rewards if an arm of it is chosen
    scores               the scores in increasing order as the mechanism sees them, and their weights
    """

    def comparison_law(self, mean: float, rounds: int) -> CountLaw:
        return binomial(rounds, mean)

    def pulls(self, rounds: int, mean: float) -> Sums:
        return binomial(rounds, mean)

    def plus(self, a: Sums, b: Sums) -> Sums:
        return convolve(a, b)

    def mixture(self, parts: Iterable[tuple[float, Sums]]) -> Sums:
        return add_laws((scale(law, weight) for weight, law in parts))

    def scores(self, sums: Sums, rounds: int) -> tuple[Array, Array]:
        return np.arange(sums.low, sums.high + 1, dtype=float), sums.weights

    def sums_by_commitment(self, types: MeanCounts, rounds: int) -> list[Sums]:
        return committed_sums(types, rounds)


@dataclass(frozen=True, eq=False)
class Deterministic:
    """Every reward is the mean: sums are points, in the session's ticks of 2^-30, and judged as by the session."""

    ranks: dict[float, int]

    @classmethod
    def of(cls, means: Iterable[float]) -> Deterministic:
        """Make it with the order of all means that may occur."""
        distinct = set(means)
        rounded = {mean: ticks(mean) / (1 << TICK_BITS) for mean in distinct}
        order = {value: rank for rank, value in enumerate(sorted(set(rounded.values())))}
        return cls({mean: order[rounded[mean]] for mean in distinct})

    def comparison_law(self, mean: float, rounds: int) -> CountLaw:
        return CountLaw(self.ranks[mean], np.ones(1))

    def pulls(self, rounds: int, mean: float) -> Sums:
        return {rounds * ticks(mean): 1.0}

    def plus(self, a: Sums, b: Sums) -> Sums:
        return self.mixture((weight, {x + shift: other for x, other in b.items()}) for shift, weight in a.items())

    def mixture(self, parts: Iterable[tuple[float, Sums]]) -> Sums:
        total: dict[int, float] = {}
        for weight, sums in parts:
            for value, chance in sums.items():
                total[value] = total[value] + weight * chance if value in total else weight * chance
        return total

    def scores(self, sums: Sums, rounds: int) -> tuple[Array, Array]:
        """Return the scores: exact averages rounded once, so that averages that tie in the session tie here."""
        rounded: dict[float, float] = {}
        for value, chance in sums.items():
            score = value / (rounds << TICK_BITS)
            rounded[score] = rounded[score] + chance if score in rounded else chance
        order = sorted(rounded)
        return np.array(order), np.array([rounded[score] for score in order])

    def sums_by_commitment(self, types: MeanCounts, rounds: int) -> list[Sums]:
        best = max(self.ranks[mean] for mean, _ in types)
        tied = sum(count for mean, count in types if self.ranks[mean] == best)
        explored = sum(rounds * count * ticks(mean) for mean, count in types)
        return [{explored: count / tied} if self.ranks[mean] == best else {} for mean, count in types]


RewardLaw = Bernoulli | Deterministic
