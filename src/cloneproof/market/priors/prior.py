"""What every prior offers, and the checks that they share."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Protocol

from cloneproof._checks import real, whole
from cloneproof.errors import MarketError, brief

Atoms = tuple[tuple[float, float], ...]
MOST_POINTS = 10**5  # of a prior that was made discrete


class Prior(Protocol):
    """A distribution of an original's mean."""

    @property
    def mean(self) -> float:
        """The expectation."""

    @property
    def atoms(self) -> Atoms | None:
        """(value, probability) in increasing order of value, or None where the prior is continuous."""

    def quantile(self, u: float) -> float:
        """The value at level u in (0, 1)."""

    def discretised(self, n: int) -> Prior:
        """A prior of at most n values with the same mean."""

    def to_dict(self) -> dict[str, object]:
        """The form of the market file, from which `prior_from_dict` makes an equal prior."""


def checked_number(value: object, what: str) -> float:
    """A finite number, or one sentence."""
    number = real(value)
    if number is None:
        raise MarketError(
            f"expected {what} to be a finite number, got {brief(value)}; write it as a decimal such as 0.5"
        )
    return number


def checked_mean(value: object, what: str) -> float:
    """A number in [0, 1], or one sentence."""
    number = checked_number(value, what)
    if not 0.0 <= number <= 1.0:
        raise MarketError(f"expected {what} to lie in [0, 1], got {number!r}; scale the rewards so that means do")
    return number


def checked_list(values: object, what: str) -> Sequence[object]:
    """A list of something, or one sentence."""
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable) or not (listed := list(values)):
        raise MarketError(f"expected {what} to be a list of at least one number, got {brief(values)}; give a list")
    return listed


def checked_points(n: object) -> int:
    """How many values a discrete prior may have, or one sentence."""
    number = whole(n)
    if number is None or not 1 <= number <= MOST_POINTS:
        raise MarketError(
            f"expected the number of values to be a whole number from 1 to {MOST_POINTS}, got {brief(n)}; use e.g. 5"
        )
    return number


def step_quantile(atoms: Atoms, u: float) -> float:
    """The value at level u of a discrete distribution."""
    cumulated = list(accumulate(weight for _, weight in atoms))
    return atoms[min(bisect_right(cumulated, u * cumulated[-1]), len(atoms) - 1)][0]


def smallest_gap(atoms: Sequence[float]) -> float:
    """The smallest distance between two different values; infinite where there is only one.

    >>> smallest_gap([0.25, 1.0, 0.5])
    0.25
    """
    distinct = sorted(set(atoms))
    return min((high - low for low, high in pairwise(distinct)), default=math.inf)
