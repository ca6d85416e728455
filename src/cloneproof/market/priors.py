"""Priors: what a provider knows about the quality of its own items (the paper's F_i).

Each prior is a small immutable noun over [0, 1] with a quantile function (so that a mean is drawn from one uniform
number), its atoms where it is discrete, and its expectation. The paper's theorems need a discrete support; a
continuous prior has none (`atoms` is None), and whatever needs one says so.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Protocol

import scipy

from cloneproof._checks import real, whole
from cloneproof.errors import MarketError, brief, did_you_mean

WEIGHT_TOLERANCE = (
    1e-9  # how far weights may be from summing to 1, for decimals such as 0.1 that floats only approximate
)


class Prior(Protocol):
    """A distribution of an original's mean."""

    @property
    def mean(self) -> float:
        """The expectation."""

    @property
    def atoms(self) -> tuple[tuple[float, float], ...] | None:
        """(value, probability) in increasing order of value, or None where the prior is continuous."""

    def quantile(self, u: float) -> float:
        """The value at level u in (0, 1)."""

    def to_dict(self) -> dict[str, object]:
        """The form of the market file, from which `prior_from_dict` makes an equal prior."""


def _number(value: object, what: str) -> float:
    number = real(value)
    if number is None:
        raise MarketError(
            f"expected {what} to be a finite number, got {brief(value)}; write it as a decimal such as 0.5"
        )
    return number


def _mean(value: object, what: str) -> float:
    number = _number(value, what)
    if not 0.0 <= number <= 1.0:
        raise MarketError(f"expected {what} to lie in [0, 1], got {number!r}; scale the rewards so that means do")
    return number


def _numbers(values: object, what: str) -> Sequence[object]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable) or not (listed := list(values)):
        raise MarketError(f"expected {what} to be a list of at least one number, got {brief(values)}; give a list")
    return listed


def _step_quantile(atoms: tuple[tuple[float, float], ...], u: float) -> float:
    cumulated = list(accumulate(weight for _, weight in atoms))
    return atoms[min(bisect_right(cumulated, u * cumulated[-1]), len(atoms) - 1)][0]


@dataclass(frozen=True)
class Point:
    """A mean that is known: the fully informed agent of Shin, Lee and Ok (2022).

    >>> Point(0.6).mean
    0.6
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _mean(self.value, "the point of a prior"))

    @property
    def mean(self) -> float:
        return self.value

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        return ((self.value, 1.0),)

    def quantile(self, u: float) -> float:
        return self.value

    def to_dict(self) -> dict[str, object]:
        return {"point": self.value}


@dataclass(frozen=True)
class Discrete:
    """Finitely many values, the prior of the paper's theorems.

    >>> Discrete([0, 1], [0.5, 0.5]).mean
    0.5
    """

    values: Sequence[float]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        values = tuple(_mean(v, "a value of a prior") for v in _numbers(self.values, "a prior's values"))
        weights = tuple(_number(w, "a weight of a prior") for w in _numbers(self.weights, "a prior's weights"))
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
    def atoms(self) -> tuple[tuple[float, float], ...]:
        return tuple(sorted((v, w) for v, w in zip(self.values, self.weights, strict=True) if w > 0))

    def quantile(self, u: float) -> float:
        return _step_quantile(self.atoms, u)

    def to_dict(self) -> dict[str, object]:
        return {"values": list(self.values), "weights": list(self.weights)}


@dataclass(frozen=True)
class Uniform:
    """A mean spread evenly over an interval of [0, 1].

    >>> Uniform(0.2, 0.6).quantile(0.5)
    0.4
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _mean(self.low, "the low end of a uniform prior"))
        object.__setattr__(self, "high", _mean(self.high, "the high end of a uniform prior"))
        if self.low >= self.high:
            raise MarketError(
                f"expected a uniform prior's low end below its high end, got {self.low} and {self.high}; "
                "swap them, or use a point"
            )

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def atoms(self) -> None:
        return None

    def quantile(self, u: float) -> float:
        return min(self.low + (self.high - self.low) * u, self.high)

    def to_dict(self) -> dict[str, object]:
        return {"uniform": [self.low, self.high]}


@dataclass(frozen=True)
class Beta:
    """A Beta(a, b) distributed mean.

    >>> Beta(2, 2).mean
    0.5
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            number = _number(getattr(self, name), f"the parameter {name} of a beta prior")
            if number <= 0:
                raise MarketError(
                    f"expected the parameter {name} of a beta prior above 0, got {number}; use a positive number"
                )
            object.__setattr__(self, name, number)

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def atoms(self) -> None:
        return None

    def quantile(self, u: float) -> float:
        return float(scipy.special.betaincinv(self.a, self.b, u))

    def to_dict(self) -> dict[str, object]:
        return {"beta": [self.a, self.b]}


@dataclass(frozen=True)
class Empirical:
    """A creator's history as the prior: each past item's quality is equally likely.

    With `bins` the samples are moved to the middles of that many equal bins of [0, 1]: two samples a hair apart make
    a tiny gap, and every theorem of the paper empty.

    >>> Empirical([0.31, 0.29, 0.9], bins=5).atoms
    ((0.3, 0.6666666666666666), (0.9, 0.3333333333333333))
    """

    samples: Sequence[float]
    bins: int | None = None

    def __post_init__(self) -> None:
        samples = tuple(_mean(s, "a sample of a prior") for s in _numbers(self.samples, "a prior's samples"))
        if self.bins is not None:
            bins = whole(self.bins)
            if bins is None or bins < 1:
                raise MarketError(
                    f"expected the number of bins to be a whole number from 1, got {self.bins!r}; use e.g. 10"
                )
            object.__setattr__(self, "bins", bins)
        object.__setattr__(self, "samples", samples)

    @property
    def mean(self) -> float:
        return math.fsum(value * weight for value, weight in self.atoms)

    @cached_property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        counts: dict[float, int] = {}
        for sample in self.samples:
            value = sample if self.bins is None else (min(int(sample * self.bins), self.bins - 1) + 0.5) / self.bins
            counts[value] = counts.get(value, 0) + 1
        return tuple((value, counts[value] / len(self.samples)) for value in sorted(counts))

    def quantile(self, u: float) -> float:
        return _step_quantile(self.atoms, u)

    def to_dict(self) -> dict[str, object]:
        return {"samples": list(self.samples)} | ({} if self.bins is None else {"bins": self.bins})


_SHAPES: Mapping[frozenset[str], str] = {
    frozenset({"point"}): "point",
    frozenset({"values", "weights"}): "discrete",
    frozenset({"uniform"}): "uniform",
    frozenset({"beta"}): "beta",
    frozenset({"samples"}): "empirical",
    frozenset({"samples", "bins"}): "empirical",
}
PRIOR_KEYS = ("point", "values", "weights", "uniform", "beta", "samples", "bins")


def prior_from_dict(data: object) -> Prior:
    """Make a prior from the form of the market file.

    >>> prior_from_dict({"uniform": [0.1, 0.9]})
    Uniform(low=0.1, high=0.9)
    """
    if not isinstance(data, Mapping):
        raise MarketError(f"expected a prior such as {{ point = 0.6 }}, got {data!r}; write it as a table")
    for key in data:
        if key not in PRIOR_KEYS:
            raise MarketError(
                f"unknown key {key!r} in a prior; {did_you_mean(str(key), PRIOR_KEYS)}known are {', '.join(PRIOR_KEYS)}"
            )
    shape = _SHAPES.get(frozenset(data))
    if shape is None:
        raise MarketError(
            "expected a prior with point, values and weights, uniform, beta, or samples (and bins), "
            f"got {', '.join(sorted(data)) or 'nothing'}; use one of these forms"
        )
    if shape == "point":
        return Point(data["point"])
    if shape == "discrete":
        return Discrete(data["values"], data["weights"])
    if shape == "empirical":
        return Empirical(data["samples"], data.get("bins"))
    pair = data[shape]
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise MarketError(f"expected {shape} = [first, second] in a prior, got {pair!r}; give two numbers")
    return Uniform(*pair) if shape == "uniform" else Beta(*pair)


def smallest_gap(atoms: Sequence[float]) -> float:
    """The smallest distance between two different values; infinite where there is only one.

    >>> smallest_gap([0.25, 1.0, 0.5])
    0.25
    """
    distinct = sorted(set(atoms))
    return min((high - low for low, high in pairwise(distinct)), default=math.inf)
