"""What the engine must know of a reward family: the law of what an arm is judged by, and of sums of rewards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cloneproof.engines.closed_form.laws.arithmetic import Arithmetic, Array, Number
from cloneproof.engines.closed_form.laws.integer_law import Law, add_laws, binomial, binomial_with_cdf, convolve, scale
from cloneproof.engines.closed_form.phases.committed_sums import MeanCounts, committed_sums
from cloneproof.mechanisms.online.level import TICK_BITS

Sums = Any  # a law of a sum of rewards, in the form of its family


class RewardLaw(Protocol):
    """Sums of rewards of arms whose means are known."""

    def comparison_law(self, mean: float, rounds: int) -> Law:
        """The law of what an arm is judged by after that many rounds, on some scale common to all arms."""

    def pulls(self, rounds: int, mean: float) -> Sums:
        """The law of the sum of that many rewards of one mean."""

    def plus(self, a: Sums, b: Sums) -> Sums:
        """The law of the sum of two independent sums."""

    def mixture(self, parts: Iterable[tuple[Number, Sums]]) -> Sums:
        """The weighted mixture."""

    def sums_by_commitment(self, types: MeanCounts, rounds: int) -> list[Sums]:
        """For each type, the law of the sum of all exploration rewards where an arm of it is committed to."""

    def scores(self, sums: Sums, rounds: int) -> tuple[Array, Array, int]:
        """The scores in increasing order as the mechanism sees them, their weights, and the roundings."""


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 0 or 1: sums are binomial, on a lattice."""

    arithmetic: Arithmetic

    def comparison_law(self, mean: float, rounds: int) -> Law:
        return binomial_with_cdf(rounds, mean, self.arithmetic)

    def pulls(self, rounds: int, mean: float) -> Law:
        return binomial(rounds, mean, self.arithmetic)

    def plus(self, a: Law, b: Law) -> Law:
        return convolve(a, b, self.arithmetic)

    def mixture(self, parts: Iterable[tuple[Number, Law]]) -> Law:
        return add_laws((scale(law, weight) for weight, law in parts), self.arithmetic)

    def scores(self, sums: Law, rounds: int) -> tuple[Array, Array, int]:
        return np.arange(sums.low, sums.high + 1, dtype=float), sums.weights, sums.roundings

    def sums_by_commitment(self, types: MeanCounts, rounds: int) -> list[Law]:
        return committed_sums(types, rounds, self.arithmetic)


@dataclass(frozen=True)
class Deterministic:
    """Every reward is the mean: sums are points, kept in the session's ticks of 2^-60 and judged as it judges them."""

    arithmetic: Arithmetic
    ranks: dict[float, int]

    @classmethod
    def of(cls, means: Iterable[float], arithmetic: Arithmetic) -> Deterministic:
        """With the order of all means that may occur."""
        distinct = set(means)
        rounded = {mean: ticks(mean) / (1 << TICK_BITS) for mean in distinct}
        order = {value: rank for rank, value in enumerate(sorted(set(rounded.values())))}
        return cls(arithmetic, {mean: order[rounded[mean]] for mean in distinct})

    def comparison_law(self, mean: float, rounds: int) -> Law:
        return Law(self.ranks[mean], self.arithmetic.array([1]), 0)

    def pulls(self, rounds: int, mean: float) -> dict[int, Number]:
        return {rounds * ticks(mean): self.arithmetic.number(1)}

    def plus(self, a: dict[int, Number], b: dict[int, Number]) -> dict[int, Number]:
        return self.mixture((weight, {x + shift: other for x, other in b.items()}) for shift, weight in a.items())

    def mixture(self, parts: Iterable[tuple[Number, dict[int, Number]]]) -> dict[int, Number]:
        total: dict[int, Number] = {}
        for weight, sums in parts:
            for value, chance in sums.items():
                total[value] = total[value] + weight * chance if value in total else weight * chance
        return total

    def scores(self, sums: dict[int, Number], rounds: int) -> tuple[Array, Array, int]:
        """A score is the exact average rounded once to a float, so that averages equal in the session tie here."""
        rounded: dict[float, Number] = {}
        for value, chance in sums.items():
            score = value / (rounds << TICK_BITS)
            rounded[score] = rounded[score] + chance if score in rounded else chance
        order = sorted(rounded)
        return np.array(order), self.arithmetic.array([rounded[score] for score in order]), 2 * len(sums) + 2

    def sums_by_commitment(self, types: MeanCounts, rounds: int) -> list[dict[int, Number]]:
        best = max(self.ranks[mean] for mean, _ in types)
        tied = sum(count for mean, count in types if self.ranks[mean] == best)
        explored = sum(rounds * count * ticks(mean) for mean, count in types)
        unit = self.arithmetic.number(1)
        return [{explored: unit * count / tied} if self.ranks[mean] == best else {} for mean, count in types]


def ticks(mean: float) -> int:
    """A reward as the session counts it."""
    return round(mean * (1 << TICK_BITS))
