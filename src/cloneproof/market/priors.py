"""Priors: what a provider knows about the quality of its own items (the paper's F_i).

A prior is an immutable distribution on [0, 1] with a mean, a quantile function and, if it is discrete, its atoms. The
paper's theorems need discrete priors. For a continuous prior `atoms` is None, and `discretised` approximates it.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy

from cloneproof._lib.checks import Either, NumberRange, WholeRange, count, has_form, key_names, known, listed
from cloneproof.errors import MarketError, brief

Atoms = tuple[tuple[float, float], ...]
MOST_POINTS = 10**5  # of a prior that was made discrete
WEIGHT_TOLERANCE = 1e-9  # of the weights' sum, for decimals such as 0.1 that floats only approximate
LARGEST = 1e12  # of a beta prior's parameter: the distribution is a point by then
MEAN, WEIGHT, SHAPE, BINS = NumberRange(0, 1), NumberRange(0), NumberRange(0, LARGEST, low_open=True), WholeRange()
LEVELS, FARTHEST = 2**12, 34.0  # levels in the table of a mixture's quantiles, evenly spaced in log-odds up to these


class Prior(Protocol):
    """A distribution of an original's mean."""

    @property
    def mean(self) -> float:
        """Expected value."""

    @property
    def atoms(self) -> Atoms | None:
        """(value, probability) in increasing order of value, or None where the prior is continuous."""

    def quantile(self, u: float) -> float:
        """Return the value at level u in (0, 1)."""

    def discretised(self, n: int) -> Prior:
        """Return a prior of at most n values with the same mean."""

    def to_dict(self) -> dict[str, object]:
        """Return the prior as the market file writes it; `prior_from_dict` reads it."""


def quantiles(prior: Prior, u: Any) -> Any:  # noqa: ANN401 (a number, or an array of them)
    """Return `prior.quantile` at one level or many, bit for bit; at once where the prior has `quantiles`.

    >>> quantiles(Discrete((0.2, 0.8), (0.5, 0.5)), np.array([0.4, 0.6])).tolist()
    [0.2, 0.8]
    """
    if prior.atoms is not None:
        values = np.array([value for value, _ in prior.atoms])
        cumulated = np.cumsum([weight for _, weight in prior.atoms])
        steps = np.searchsorted(cumulated, u * cumulated[-1], side="right")
        return values[np.minimum(steps, len(values) - 1)]
    if hasattr(prior, "quantiles"):
        return prior.quantiles(u)
    return np.array([prior.quantile(float(level)) for level in u]) if np.ndim(u) else prior.quantile(u)


def _mean(value: object, what: str) -> float:
    return MEAN.checked(value, what, MarketError)


def checked_points(n: object) -> int:
    """Return the number of values of a prior that is made discrete."""
    return count(n, "the number of values", 1, MOST_POINTS, MarketError)


def step_quantile(atoms: Atoms, u: float) -> float:
    """Return the value at level u of a discrete distribution."""
    cumulated = list(accumulate(weight for _, weight in atoms))
    return atoms[min(bisect_right(cumulated, u * cumulated[-1]), len(atoms) - 1)][0]


def smallest_gap(atoms: Sequence[float]) -> float:
    """Return the smallest distance between two different values; infinite where there is only one.

    >>> smallest_gap([0.25, 1.0, 0.5])
    0.25
    """
    distinct = sorted(set(atoms))
    return min((high - low for low, high in pairwise(distinct)), default=math.inf)


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
        given = listed(self.weights, "a prior's weights", MarketError, "[0.5, 0.5]")
        values = tuple(
            _mean(v, "a value of a prior") for v in listed(self.values, "a prior's values", MarketError, "[0.2, 0.8]")
        )
        weights = tuple(WEIGHT.checked(w, "a weight of a prior", MarketError) for w in given)
        if len(values) != len(weights):
            raise MarketError(
                f"expected one weight for each value, got {len(values)} values and {len(weights)} weights; "
                "make the lists equally long"
            )
        if len(set(values)) != len(values):
            raise MarketError(f"expected distinct values, got {list(values)}; add up the weights of equal values")
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
        """Return the prior itself, which is discrete already."""
        checked_points(n)
        return self

    def to_dict(self) -> dict[str, object]:
        return {"values": list(self.values), "weights": list(self.weights)}


def discrete_from(values: Iterable[float], weights: Iterable[float]) -> Discrete:
    """Return a discrete prior with sorted values; merges equal values and clips rounding errors to [0, 1].

    >>> discrete_from([0.2, 0.2, 1.0 + 1e-16], [0.25, 0.25, 0.5])
    Discrete(values=(0.2, 1.0), weights=(0.5, 0.5))
    """
    merged: dict[float, list[float]] = {}
    for value, weight in zip(values, weights, strict=True):
        merged.setdefault(min(max(float(value), 0.0), 1.0), []).append(weight)
    rising = sorted(merged)
    return Discrete(rising, [math.fsum(merged[value]) for value in rising])


@dataclass(frozen=True)
class Beta:
    """A Beta(a, b) distributed mean.

    Parameters
    ----------
    a, b : float
        The parameters, above 0: as if an item had earned a - 1 times and not earned b - 1 times.

    Examples
    --------
    >>> Beta(2, 2).mean
    0.5
    """

    a: float
    b: float

    atoms: ClassVar[None] = None

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            what = f"the parameter {name} of a beta prior"
            object.__setattr__(self, name, SHAPE.checked(getattr(self, name), what, MarketError))

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    def quantile(self, u: float) -> float:
        return float(self.quantiles(u))

    def quantiles(self, u: Any) -> Any:  # noqa: ANN401 (a number, or an array of them)
        """Return the value at each level."""
        return scipy.special.betaincinv(self.a, self.b, u)

    def discretised(self, n: int) -> Discrete:
        """Return the means of n bins of equal probability, each with probability 1/n; keeps the mean up to rounding.

        The part of the mean below x is mean * I_x(a + 1, b), where I is the regularised incomplete beta function.

        >>> [round(value, 4) for value in Beta(2, 2).discretised(2).values]
        [0.3125, 0.6875]
        """
        groups = checked_points(n)
        ends = [0.0, *(self.quantile(k / groups) for k in range(1, groups)), 1.0]
        below = [float(scipy.special.betainc(self.a + 1, self.b, end)) for end in ends]
        values = [groups * self.mean * (right - left) for left, right in pairwise(below)]
        return discrete_from(values, [1 / groups] * groups)

    def to_dict(self) -> dict[str, object]:
        return {"beta": [self.a, self.b]}


@dataclass(frozen=True)
class Empirical:
    """A creator's history as the prior: each past item's quality is equally likely.

    Parameters
    ----------
    samples : sequence of float
        The qualities of past items, each in [0, 1].
    bins : int, optional
        Replaces the samples by the means of this many groups of equal size. Two samples that nearly coincide would make
        a tiny gap, with which the paper's theorems say nothing. Warns if fewer values than bins are left because many
        samples are equal.

    Examples
    --------
    >>> Empirical([0.002, 0.004, 0.011, 0.013], bins=2).atoms
    ((0.003, 0.5), (0.012, 0.5))
    """

    samples: Sequence[float]
    bins: int | None = None

    def __post_init__(self) -> None:
        given = listed(self.samples, "a prior's samples", MarketError, "[0.2, 0.8]")
        samples = tuple(_mean(sample, "a sample of a prior") for sample in given)
        if self.bins is not None:
            object.__setattr__(self, "bins", BINS.checked(self.bins, "the number of bins", MarketError))
        object.__setattr__(self, "samples", samples)
        if self.bins is not None and len(self.atoms) < min(self.bins, len(set(samples))):
            warnings.warn(
                f"{len(self.atoms)} values are left of {self.bins} bins and {len(set(samples))} different samples: "
                "many samples are equal or nearly so; give fewer bins",
                stacklevel=3,
            )

    @property
    def mean(self) -> float:
        return math.fsum(value * weight for value, weight in self.atoms)

    @cached_property
    def atoms(self) -> Atoms:
        counts: dict[float, int] = {}
        for sample in self.samples:
            counts[sample] = counts.get(sample, 0) + 1
        exact = tuple((value, counts[value] / len(self.samples)) for value in sorted(counts))
        if self.bins is None or len(exact) <= self.bins:
            return exact
        grouped = _grouped(exact, self.bins).atoms
        return exact if grouped is None else grouped

    def quantile(self, u: float) -> float:
        return step_quantile(self.atoms, u)

    def discretised(self, n: int) -> Discrete:
        """Return the means of n equally probable groups of the sorted samples; keeps the mean up to rounding.

        A sample on the border of two groups is divided between them. At most n different values stay as they are.

        >>> Empirical([0.1, 0.2, 0.3, 0.8]).discretised(2).values
        (0.15000000000000002, 0.55)
        """
        groups = checked_points(n)
        if len(self.atoms) <= groups:
            return discrete_from(*zip(*self.atoms, strict=True))
        return _grouped(self.atoms, groups)

    def to_dict(self) -> dict[str, object]:
        return {"samples": list(self.samples)} | ({} if self.bins is None else {"bins": self.bins})


def _grouped(atoms: Atoms, groups: int) -> Discrete:
    """Return the means of `groups` groups of equal probability; a value on the border of two groups is divided."""
    parts: list[list[float]] = [[] for _ in range(groups)]
    begun = 0.0
    for value, weight in atoms:
        ended = min(begun + weight, 1.0)
        for group in range(min(int(begun * groups), groups - 1), min(math.ceil(ended * groups), groups)):
            share = min(ended, (group + 1) / groups) - max(begun, group / groups)
            parts[group].append(value * max(share, 0.0))
        begun = ended
    return discrete_from((groups * math.fsum(values) for values in parts), [1 / groups] * groups)


@dataclass(frozen=True)
class Point:
    """A mean that is known.

    Parameters
    ----------
    value : float
        The mean, in [0, 1].

    References
    ----------
    Agents who know all of their means are the fully informed agents of Shin, Lee and Ok (2022).

    Examples
    --------
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
    def atoms(self) -> Atoms:
        return ((self.value, 1.0),)

    def quantile(self, u: float) -> float:
        return self.value

    def discretised(self, n: int) -> Discrete:
        """Return the same as a `Discrete` of one value, for every n."""
        checked_points(n)
        return Discrete((self.value,), (1.0,))

    def to_dict(self) -> dict[str, object]:
        return {"point": self.value}


@dataclass(frozen=True)
class Uniform:
    """A mean spread evenly over an interval of [0, 1].

    Parameters
    ----------
    low, high : float, default 0 and 1
        The ends of the interval.

    Examples
    --------
    >>> Uniform(0.2, 0.6).quantile(0.5)
    0.4
    """

    low: float = 0.0
    high: float = 1.0

    atoms: ClassVar[None] = None

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

    def quantile(self, u: float) -> float:
        return float(self.quantiles(u))

    def quantiles(self, u: Any) -> Any:  # noqa: ANN401 (a number, or an array of them)
        """Return the value at each level."""
        return np.minimum(self.low + (self.high - self.low) * u, self.high)

    def discretised(self, n: int) -> Discrete:
        """Return the midpoints of n bins of equal length, each with probability 1/n; keeps the mean up to rounding.

        >>> Uniform(0.0, 1.0).discretised(2)
        Discrete(values=(0.25, 0.75), weights=(0.5, 0.5))
        """
        groups = checked_points(n)
        width = (self.high - self.low) / groups
        return discrete_from((self.low + (k + 0.5) * width for k in range(groups)), [1 / groups] * groups)

    def to_dict(self) -> dict[str, object]:
        return {"uniform": [self.low, self.high]}


@dataclass(frozen=True)
class Mixture:
    """A mean of one of several priors, drawn anew for each original: such as click rates of which a few are high.

    Parameters
    ----------
    weights : sequence of float
        The probabilities of the parts, which add up to 1.
    priors : sequence of Prior
        The parts: all discrete, or all continuous.

    Notes
    -----
    The quantiles of continuous parts are those of a table of `LEVELS` levels, dense at both ends of (0, 1).

    Examples
    --------
    >>> clicks = Mixture([0.9, 0.1], [Beta(2, 98), Beta(20, 180)])
    >>> round(clicks.mean, 6), round(clicks.quantile(0.99), 3)
    (0.028, 0.128)
    """

    weights: Sequence[float]
    priors: Sequence[Prior]

    def __post_init__(self) -> None:
        given = listed(self.weights, "a mixture's weights", MarketError, "[0.9, 0.1]")
        priors = tuple(self.priors) if isinstance(self.priors, Sequence) else ()
        weights = tuple(WEIGHT.checked(weight, "a weight of a mixture", MarketError) for weight in given)
        if len(priors) != len(weights) or not all(hasattr(prior, "quantile") for prior in priors):
            raise MarketError(
                f"expected one prior for each of the {len(weights)} weights of a mixture, got {brief(self.priors)}; "
                "give as many priors as weights"
            )
        if abs(math.fsum(weights) - 1.0) > WEIGHT_TOLERANCE:
            raise MarketError(
                f"expected weights of a mixture that sum to 1, got {math.fsum(weights):.12g}; divide each by that sum"
            )
        if len({prior.atoms is None for prior in priors}) > 1:
            raise MarketError(
                "expected a mixture of discrete priors or of continuous ones, got both; use prior.discretised(64) for "
                "the continuous ones"
            )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "priors", priors)

    @property
    def parts(self) -> list[tuple[float, Prior]]:
        """The priors with their weights, where these are above 0."""
        return [(weight, prior) for weight, prior in zip(self.weights, self.priors, strict=True) if weight > 0]

    @cached_property
    def mean(self) -> float:
        return math.fsum(weight * prior.mean for weight, prior in self.parts)

    @cached_property
    def atoms(self) -> Atoms | None:
        pairs = [(v, weight * own) for weight, prior in self.parts for v, own in prior.atoms or ()]
        return discrete_from(*zip(*pairs, strict=True)).atoms if pairs else None

    def quantile(self, u: float) -> float:
        return float(quantiles(self, u)) if self.atoms is not None else float(self.quantiles(u))

    def quantiles(self, u: Any) -> Any:  # noqa: ANN401 (a number, or an array of them)
        """Return the value at each level."""
        values, log_odds = self._table
        with np.errstate(divide="ignore"):
            return np.interp(scipy.special.logit(u), log_odds, values)

    @cached_property
    def _table(self) -> tuple[Any, Any]:
        """Values in increasing order, and the log-odds of the chance of at most each, by the parts' own quantiles."""
        levels = np.linspace(-FARTHEST, FARTHEST, LEVELS)
        tables = [np.maximum.accumulate(quantiles(prior, scipy.special.expit(levels))) for _, prior in self.parts]
        values = np.unique(np.concatenate(tables))
        below = sum(
            weight * scipy.special.expit(np.interp(values, table, levels, left=-np.inf, right=np.inf))
            for (weight, _), table in zip(self.parts, tables, strict=True)
        )
        return values, np.clip(scipy.special.logit(np.minimum(below, 1.0)), -2 * FARTHEST, 2 * FARTHEST)

    def discretised(self, n: int) -> Discrete:
        """Return the means of n bins of equal probability, each with probability 1/n; keeps the mean up to rounding."""
        groups = checked_points(n)
        if self.atoms is not None:
            return discrete_from(*zip(*self.atoms, strict=True))
        values, log_odds = self._table
        below = np.concatenate([[0.0], scipy.special.expit(log_odds), [1.0]])
        ends = np.concatenate([values[:1], values, values[-1:]])
        earned = np.concatenate([[0.0], np.cumsum(np.diff(below) * (ends[1:] + ends[:-1]) / 2)])
        earned *= self.mean / earned[-1]
        means = np.diff(np.interp(np.arange(groups + 1) / groups, below, earned)) * groups
        return discrete_from(means, [1 / groups] * groups)

    def to_dict(self) -> dict[str, object]:
        return {"mixture": [prior.to_dict() for prior in self.priors], "weights": list(self.weights)}


PRIOR_FORMS: dict[type[Prior], Mapping[str, Any]] = {  # as a market file writes them
    Point: {"point": MEAN},
    Discrete: {"values": [MEAN], "weights": [WEIGHT]},
    Uniform: {"uniform": (MEAN, MEAN)},
    Beta: {"beta": (SHAPE, SHAPE)},
    Empirical: {"samples": [MEAN], "bins?": BINS},
}
PRIOR_FORMS |= {Mixture: {"mixture": [Either(PRIOR_FORMS.values())], "weights": [WEIGHT]}}


def prior_from_dict(data: object) -> Prior:
    """Make a prior from the form of the market file.

    >>> prior_from_dict({"uniform": [0.1, 0.9]})
    Uniform(low=0.1, high=0.9)
    """
    if not isinstance(data, Mapping):
        raise MarketError(f"expected a prior such as {{ point = 0.6 }}, got {data!r}; write it as a table")
    words = [*dict.fromkeys(key for form in PRIOR_FORMS.values() for key in key_names(form))]
    keys = [known(key, words, "key of a prior", MarketError) for key in data]
    kind = next((prior for prior, form in PRIOR_FORMS.items() if has_form(keys, form)), None)
    if kind is None:
        raise MarketError(
            "expected a prior with point, values and weights, uniform, beta, samples (and bins), mixture and weights, "
            f"got {', '.join(sorted(keys)) or 'nothing'}; use one of these forms"
        )
    if kind is Mixture:
        parts = data["mixture"] if isinstance(data["mixture"], list) else [data["mixture"]]
        return Mixture(data["weights"], [prior_from_dict(part) for part in parts])
    for shape, form in PRIOR_FORMS[kind].items():
        if type(form) is tuple:
            pair = data[shape]
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != len(form):
                raise MarketError(f"expected {shape} = [first, second] in a prior, got {pair!r}; give two numbers")
            return kind(*pair)
    return kind(*(data.get(key) for key in key_names(PRIOR_FORMS[kind])))
