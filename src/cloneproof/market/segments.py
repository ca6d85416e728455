"""Rates by segment: laws of an item's rates over the segments of a market, and their marginals.

Users fall into segments (device, query, category, type of request) by a fixed rule that does not depend on what is
registered. An item has a rate in each. What a mechanism does in a segment depends on that segment's rates alone, so
its expectations need only the marginal laws; a policy that pools segments needs the joint one. An ordinary prior is the
law of an item whose rate is the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy

from cloneproof._lib.checks import Either, NumberRange, has_form, is_one_line, key_names, listed
from cloneproof.errors import MarketError, brief, did_you_mean
from cloneproof.market.priors import (
    MEAN,
    PRIOR_FORMS,
    WEIGHT,
    WEIGHT_TOLERANCE,
    Discrete,
    Prior,
    checked_points,
    discrete_from,
    prior_from_dict,
    quantiles,
    step_quantile,
)

MOST_SEGMENTS = 10**5
FRACTION = MEDIAN = NumberRange(0, 1, low_open=True)  # of the rounds in a segment; of log-odds, as a rate
SPREAD = NumberRange(0, 10)  # of log-odds
NODES = 32  # of an integral over a bin of log-odds
TAIL = 9.0  # standard deviations; what lies beyond is below the rounding of a float
BINS = 16  # of the integral for a mean
MANY, FEW = 2**16, 2**8  # draws of a rate averaged over segments, if its law is not finite
MOST_VALUES = 2**12  # of a finite one
EVEN = 2**6  # segments and an item's level that are drawn evenly together, by Sobol's sequence


class SegmentLaw(Protocol):
    """A joint law of an item's rates in all segments."""

    @property
    def atoms(self) -> None:
        """None: it is not the law of one number."""

    def marginal(self, segment: str) -> Prior:
        """Return the law of the rate in one segment."""

    def rates(self, segments: Iterable[str], level: Callable[[int], Any]) -> dict[str, Any]:
        """Return the item's rate in each segment; `level` is a tape of independent uniform numbers, or of arrays."""

    def check(self, segments: Iterable[str], whose: str) -> None:
        """Raise `MarketError` unless the law has a rate in exactly these segments."""

    def to_dict(self) -> dict[str, object]:
        """Return the law as the market file writes it; `law_from_dict` reads it."""


MeanLaw = Prior | SegmentLaw


def checked_segments(value: object) -> dict[str, float]:
    """Return the fraction of rounds in each segment, or raise an error.

    >>> checked_segments({"code": 0.3, "writing": 0.7})
    {'code': 0.3, 'writing': 0.7}
    """
    if not isinstance(value, Mapping) or not value or len(value) > MOST_SEGMENTS:
        raise MarketError(
            f"expected segments as up to {MOST_SEGMENTS} names and fractions of the rounds, got {brief(value)}; give "
            "e.g. {'code': 0.3, 'writing': 0.7}"
        )
    for name in value:
        if not isinstance(name, str) or not name.strip() or not is_one_line(name):
            raise MarketError(f"expected a segment's name to be text on one line, got {brief(name)}; name every one")
    fractions = {
        name: FRACTION.checked(fraction, f"the fraction of rounds in segment {name!r}", MarketError)
        for name, fraction in value.items()
    }
    total = math.fsum(fractions.values())
    if abs(total - 1.0) > WEIGHT_TOLERANCE:
        raise MarketError(
            f"expected fractions of segments that add up to 1, got a sum of {total:.12g}; divide each by that sum"
        )
    return fractions


def segment_horizon(fraction: float, horizon: int) -> int:
    """Return the rounds that are expected in a segment, at least one."""
    return max(1, round(fraction * horizon))


def _check_names(law: str, given: Iterable[str], segments: Iterable[str], whose: str) -> None:
    """Raise an error for a segment that the law misses, or that the market does not have."""
    named, wanted = list(given), list(segments)
    missing = [name for name in wanted if name not in set(named)]
    if missing:
        raise MarketError(
            f"expected {law} of {whose} for every segment, got none for {brief(missing[0])}; add it, or give one prior "
            "for all segments"
        )
    for name in named:
        if name not in set(wanted):
            raise MarketError(
                f"unknown segment {name!r} in {law} of {whose}; {did_you_mean(name, wanted)}known are "
                f"{', '.join(wanted) or 'none'}"
            )


@dataclass(frozen=True)
class SegmentPriors:
    """One prior for each segment; an item's rates in different segments are independent. Written as a mapping."""

    names: tuple[str, ...]
    priors: tuple[Prior, ...]

    atoms: ClassVar[None] = None

    @classmethod
    def of(cls, given: Mapping[str, Prior], whose: str) -> SegmentPriors:
        for name, prior in given.items():
            if not isinstance(name, str) or not hasattr(prior, "quantile"):
                raise MarketError(
                    f"expected a prior such as Beta(2, 60) for each segment of {whose}, got {brief(prior)} for "
                    f"{brief(name)}; use Point, Discrete, Uniform, Beta or Empirical"
                )
        return cls(tuple(given), tuple(given.values()))

    def marginal(self, segment: str) -> Prior:
        return self.priors[self.names.index(segment)]

    def rates(self, segments: Iterable[str], level: Callable[[int], Any]) -> dict[str, Any]:
        return {name: quantiles(self.marginal(name), level(k)) for k, name in enumerate(segments)}

    def check(self, segments: Iterable[str], whose: str) -> None:
        _check_names("a prior", self.names, segments, whose)

    def to_dict(self) -> dict[str, object]:
        named = zip(self.names, self.priors, strict=True)
        return {"segment_priors": {name: prior.to_dict() for name, prior in named}}


@dataclass(frozen=True)
class SegmentVectors:
    """Finitely many vectors of rates, one rate for each segment.

    Parameters
    ----------
    values : sequence of mapping of str to float
        What an item's rates may be: a rate in [0, 1] for each segment.
    weights : sequence of float
        Their probabilities, which add up to 1.

    Examples
    --------
    >>> expert = SegmentVectors([{"code": 0.9, "writing": 0.2}, {"code": 0.3, "writing": 0.2}], [0.5, 0.5])
    >>> expert.marginal("writing").atoms
    ((0.2, 1.0),)
    """

    values: Sequence[Mapping[str, float]]
    weights: Sequence[float]

    atoms: ClassVar[None] = None

    def __post_init__(self) -> None:
        vectors = listed(self.values, "vectors of rates", MarketError)  # as mappings, or as the pairs of them
        given = [dict(vector) for vector in vectors if isinstance(vector, Mapping | tuple)]
        names = list(given[0]) if given else []
        if not names or len(given) < len(list(self.values)) or any(set(vector) != set(names) for vector in given):
            raise MarketError(
                f"expected vectors with a rate for the same segments, got {brief(self.values)}; give e.g. "
                "[{'code': 0.9, 'writing': 0.2}, ..]"
            )
        numbered = Discrete([k / len(given) for k in range(len(given))], self.weights)  # checks the weights
        rows = [tuple((name, MEAN.checked(vector[name], "a rate", MarketError)) for name in names) for vector in given]
        object.__setattr__(self, "values", tuple(rows))  # pairs, which can be hashed
        object.__setattr__(self, "weights", numbered.weights)

    @cached_property
    def vectors(self) -> list[dict[str, float]]:
        """Vectors as mappings."""
        return [dict(pairs) for pairs in self.values]

    def marginal(self, segment: str) -> Prior:
        return discrete_from((vector[segment] for vector in self.vectors), self.weights)

    def rates(self, segments: Iterable[str], level: Callable[[int], Any]) -> dict[str, Any]:
        numbered = tuple((float(k), weight) for k, weight in enumerate(self.weights))
        drawn = self.vectors[int(step_quantile(numbered, level(0)))]
        return {name: drawn[name] for name in segments}

    def check(self, segments: Iterable[str], whose: str) -> None:
        _check_names("a rate", self.vectors[0], segments, whose)

    def to_dict(self) -> dict[str, object]:
        return {"vectors": [dict(vector) for vector in self.vectors], "weights": list(self.weights)}


@dataclass(frozen=True)
class LogOdds:
    """Rates with normal log-odds: a level of the item, and a deviation in each segment.

    Parameters
    ----------
    median : float
        The rate of an average item, strictly between 0 and 1.
    spread : float
        How much log-odds differ between items: a standard deviation.
    by_segment : float, default 0.0
        How much those of one item differ between segments: a standard deviation. 0: the rate is the same everywhere.

    Examples
    --------
    >>> clicks = LogOdds(0.03, spread=0.5, by_segment=0.35)
    >>> round(clicks.mean, 4), round(clicks.marginal("code").quantile(0.5), 4)
    (0.0354, 0.03)
    """

    median: float
    spread: float
    by_segment: float = 0.0

    atoms: ClassVar[None] = None

    def __post_init__(self) -> None:
        median = MEDIAN.checked(self.median, "the median of a rate", MarketError)
        if median == 1.0:
            raise MarketError("expected a median rate strictly between 0 and 1, got 1; use Point(1)")
        object.__setattr__(self, "median", median)
        for name in ("spread", "by_segment"):
            object.__setattr__(self, name, SPREAD.checked(getattr(self, name), f"{name} of log-odds", MarketError))

    @property
    def deviation(self) -> float:
        """Standard deviation of the log-odds in one segment."""
        return math.hypot(self.spread, self.by_segment)

    @cached_property
    def mean(self) -> float:
        return float(self._bin_means(BINS).mean())

    def rate(self, normal: Any) -> Any:  # noqa: ANN401 (a number, or an array of them)
        """Return the rate whose log-odds lie so far from the median's."""
        return scipy.special.expit(scipy.special.logit(self.median) + normal)

    def quantile(self, u: float) -> float:
        return float(self.quantiles(u))

    def quantiles(self, u: Any) -> Any:  # noqa: ANN401 (a number, or an array of them)
        """Return the rate at each level."""
        return self.rate(self.deviation * scipy.special.ndtri(u))

    def discretised(self, n: int) -> Discrete:
        """Return the means of n bins of equal probability, each with probability 1/n."""
        return discrete_from(self._bin_means(checked_points(n)), [1 / n] * n)

    def _bin_means(self, bins: int) -> Any:  # noqa: ANN401 (an array)
        """Return the mean in each bin of equal probability, by Gauss and Legendre's rule on the normal scale."""
        ends = np.clip(scipy.special.ndtri(np.linspace(0.0, 1.0, bins + 1)), -TAIL, TAIL)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        half = (ends[1:] - ends[:-1]) / 2
        normal = ends[:-1, None] + half[:, None] * (nodes + 1.0)
        rates = scipy.special.expit(scipy.special.logit(self.median) + self.deviation * normal)
        density = np.exp(-(normal**2) / 2) / math.sqrt(2 * math.pi)
        return bins * half * ((rates * density) @ weights)

    def marginal(self, segment: str) -> Prior:
        return LogOdds(self.median, self.deviation)

    def rates(self, segments: Iterable[str], level: Callable[[int], Any]) -> dict[str, Any]:
        item = self.spread * scipy.special.ndtri(level(0))
        return {
            name: self.rate(item + self.by_segment * scipy.special.ndtri(level(k)))
            for k, name in enumerate(segments, start=1)
        }

    def check(self, segments: Iterable[str], whose: str) -> None:
        """Accept any segments: all have the same law."""

    def to_dict(self) -> dict[str, object]:
        return {"log_odds": [self.median, self.spread, self.by_segment]}


def marginal(law: MeanLaw, segment: str) -> Prior:
    """Return the law of an item's rate in a segment; an ordinary prior is the same everywhere."""
    return law.marginal(segment) if hasattr(law, "marginal") else law


def rates_of(law: MeanLaw, segments: Sequence[str], level: Callable[[int], float]) -> dict[str, float]:
    """Return an item's rate in each segment, from independent uniform numbers."""
    if hasattr(law, "rates"):
        return {name: float(rate) for name, rate in law.rates(segments, level).items()}
    return dict.fromkeys(segments, law.quantile(level(0)))


@dataclass(frozen=True)
class SegmentAverage:
    """Law of a rate averaged over segments: what a mechanism meets that ignores them.

    It is that of many draws of the rates, evenly spread (Sobol's sequence) and the same each time. With two segments or
    four, an expected best of 15 or 24 rates is within 1e-4 of its value; that of fewer draws says how far off it is.

    >>> average = SegmentAverage(LogOdds(0.03, spread=0.5, by_segment=0.35), {"phone": 0.7, "desk": 0.3})
    >>> round(average.mean, 4), round(average.quantile(0.5), 4)
    (0.0354, 0.0307)
    """

    law: SegmentLaw
    segments: Mapping[str, float]
    draws: int = MANY

    atoms: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not hasattr(self.law, "rates"):
            raise MarketError(f"expected the average of a law by segment, got {brief(self.law)}; give that law alone")
        fractions = checked_segments(dict(self.segments))
        self.law.check(fractions, "an average")
        object.__setattr__(self, "segments", tuple(fractions.items()))  # pairs, which can be hashed

    @property
    def mean(self) -> float:
        return float(self._table.mean())

    @property
    def _table(self) -> Any:  # noqa: ANN401 (an array)
        return _averages(self.law, self.segments, self.draws)  # type: ignore[arg-type]

    def quantile(self, u: float) -> float:
        return float(self.quantiles(u))

    def quantiles(self, u: Any) -> Any:  # noqa: ANN401 (a number, or an array of them)
        """Return the average at each level, interpolated between draws."""
        table = self._table
        place = np.clip(np.asarray(u) * len(table) - 0.5, 0.0, len(table) - 1.0)
        low, high = table[np.floor(place).astype(int)], table[np.ceil(place).astype(int)]
        return low + (place % 1.0) * (high - low)

    def discretised(self, n: int) -> Discrete:
        """Return the means of n groups of draws, about equally probable."""
        groups = np.array_split(self._table, min(checked_points(n), len(self._table)))
        return discrete_from((own.mean() for own in groups), (len(own) / len(self._table) for own in groups))

    def to_dict(self) -> dict[str, object]:
        return {"average": self.law.to_dict(), "over": dict(self.segments)}


@lru_cache(maxsize=16)
def _averages(law: SegmentLaw, segments: Sequence[tuple[str, float]], draws: int) -> Any:  # noqa: ANN401 (an array)
    """Return draws of a rate averaged over segments, in increasing order; fewer where segments are many."""
    from scipy.stats.qmc import Sobol  # slow to import

    count = max(FEW, draws >> max(0, (len(segments) // EVEN).bit_length()))
    even = Sobol(min(len(segments) + 1, EVEN), scramble=False).random(count) + 0.5 / count

    def level(k: int) -> Any:  # noqa: ANN401 (an array)
        return even[:, k] if k < EVEN else (np.random.default_rng(k).permutation(count) + 0.5) / count

    rates = law.rates([name for name, _ in segments], level)
    return np.sort(sum(fraction * rates[name] for name, fraction in segments))


def pooled(law: MeanLaw, segments: Mapping[str, float], draws: int = MANY) -> Prior:
    """Return the law of an item's rate averaged over segments: exact if it is finite, else a `SegmentAverage`."""
    if not hasattr(law, "rates") or (isinstance(law, LogOdds) and law.by_segment == 0.0):
        return law
    if isinstance(law, SegmentVectors):
        averages = [math.fsum(segments[name] * rate for name, rate in vector.items()) for vector in law.vectors]
        return discrete_from(averages, law.weights)
    atoms = [marginal(law, name).atoms for name in segments]
    finite = [own for own in atoms if own is not None]
    if len(finite) < len(atoms) or math.prod(map(len, finite)) > MOST_VALUES:
        return SegmentAverage(law, segments, draws)  # type: ignore[arg-type]
    parts, joint = list(segments.values()), list(product(*finite))
    averages = [math.fsum(q * value for q, (value, _) in zip(parts, pairs, strict=True)) for pairs in joint]
    return discrete_from(averages, [math.prod(weight for _, weight in pairs) for pairs in joint])


LAW_FORMS: dict[Any, Mapping[str, Any]] = {  # as a market file writes them
    LogOdds: {"log_odds": Either([(MEDIAN, SPREAD), (MEDIAN, SPREAD, SPREAD)])},
    SegmentVectors: {"vectors": [{...: MEAN}], "weights": [WEIGHT]},
    SegmentPriors: {"segment_priors": {...: Either(PRIOR_FORMS.values())}},
}
LAW_FORMS |= {SegmentAverage: {"average": Either(list(LAW_FORMS.values())), "over": {...: FRACTION}}}


def law_from_dict(data: object) -> MeanLaw:
    """Make a prior or a joint law from the form of the market file.

    >>> law_from_dict({"log_odds": [0.03, 0.5, 0.35]})
    LogOdds(median=0.03, spread=0.5, by_segment=0.35)
    """
    own = {next(iter(form)) for form in LAW_FORMS.values()}  # a key that no prior has
    if not isinstance(data, Mapping) or own.isdisjoint(data):
        return prior_from_dict(data)
    kind = next((law for law, form in LAW_FORMS.items() if has_form(data, form)), None)
    values = [data[key] for key in key_names(LAW_FORMS[kind])] if kind is not None else []
    if kind is LogOdds and isinstance(values[0], Sequence) and len(values[0]) in (2, 3):
        return LogOdds(*values[0])
    if kind is SegmentVectors:
        return SegmentVectors(*values)
    if kind is SegmentPriors and isinstance(values[0], Mapping):
        return SegmentPriors.of({name: prior_from_dict(own) for name, own in values[0].items()}, "an agent")
    if kind is SegmentAverage and isinstance(values[1], Mapping):
        average = SegmentAverage(law_from_dict(values[0]), values[1])  # type: ignore[arg-type]
        return pooled(average.law, dict(average.segments))
    raise MarketError(
        "expected log_odds = [median, spread, by_segment], vectors and weights, segment_priors as a table by segment, "
        f"or average and over, got {brief(dict(data))}; use one of these forms"
    )
