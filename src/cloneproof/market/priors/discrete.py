"""Finitely many values, and how any prior becomes one of these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cloneproof.errors import MarketError
from cloneproof.market.priors.prior import (
    Atoms,
    checked_list,
    checked_mean,
    checked_number,
    checked_points,
    step_quantile,
)

WEIGHT_TOLERANCE = 1e-9  # of the weights' sum, for decimals such as 0.1 that floats only approximate


@dataclass(frozen=True)
class Discrete:
    """Finitely many values, the prior of the paper's theorems.

    Parameters
    ----------
    values : sequence of float
        The possible means, each in [0, 1].
    weights : sequence of float
        Their probabilities, which add up to 1.

    References
    ----------
    The paper, section 2: F_i has a finite support of smallest gap Delta.

    Examples
    --------
    >>> Discrete([0, 1], [0.5, 0.5]).mean
    0.5
    """

    values: Sequence[float]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        values = tuple(checked_mean(v, "a value of a prior") for v in checked_list(self.values, "a prior's values"))
        weights = tuple(
            checked_number(w, "a weight of a prior") for w in checked_list(self.weights, "a prior's weights")
        )
        if len(values) != len(weights):
            raise MarketError(
                f"expected one weight for each value, got {len(values)} values and {len(weights)} weights; "
                "make the lists equally long"
            )
        if len(set(values)) != len(values):
            raise MarketError(f"expected distinct values, got {list(values)}; add up the weights of equal values")
        if min(weights) < 0:
            raise MarketError(f"expected weights of at least 0, got {min(weights)}; use nonnegative weights")
        if abs(math.fsum(weights) - 1.0) > WEIGHT_TOLERANCE:
            raise MarketError(
                f"expected weights that sum to 1, got {list(weights)} with sum {math.fsum(weights):.12g}; "
                "divide each weight by that sum"
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", weights)

    @property
    def mean(self) -> float:
        return math.fsum(value * weight for value, weight in self.atoms)

    @cached_property
    def atoms(self) -> Atoms:
        return tuple(sorted((v, w) for v, w in zip(self.values, self.weights, strict=True) if w > 0))

    def quantile(self, u: float) -> float:
        return step_quantile(self.atoms, u)

    def discretised(self, n: int) -> Discrete:
        """Itself, for every n: it is discrete already."""
        checked_points(n)
        return self

    def to_dict(self) -> dict[str, object]:
        return {"values": list(self.values), "weights": list(self.weights)}


def discrete_from(values: Iterable[float], weights: Iterable[float]) -> Discrete:
    """A discrete prior of these values, rising; equal ones are merged, and rounding cannot leave [0, 1].

    >>> discrete_from([0.2, 0.2, 1.0 + 1e-16], [0.25, 0.25, 0.5])
    Discrete(values=(0.2, 1.0), weights=(0.5, 0.5))
    """
    merged: dict[float, list[float]] = {}
    for value, weight in zip(values, weights, strict=True):
        merged.setdefault(min(max(float(value), 0.0), 1.0), []).append(weight)
    rising = sorted(merged)
    return Discrete(rising, [math.fsum(merged[value]) for value in rising])
