"""The law of how late a reward comes, the same for every arm, agent and place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, cast, get_args

import numpy as np

from cloneproof._lib.checks import Either, NumberRange, count, has_form, listed, one_of
from cloneproof.errors import MarketError, brief

DAY = 24.0  # hours
HOURS, PART, TRAFFIC = NumberRange(0, low_open=True), NumberRange(0, 1, low_open=True), NumberRange(0)
MOST_POINTS, MOST_BINS = 100, 1_000_000
DelaysName = Literal["none", "independent"]
UNITS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": DAY, "w": 7 * DAY}  # hours
QUANTILES = (0.5, 0.8, 0.95)  # at which delays of a log are read
DELAYS_FORM: Mapping[str, Any] = {
    "points": Either([str, [[HOURS]]]), "lasts": Either([str, HOURS]), "traffic?": [TRAFFIC],
}  # fmt: skip


@dataclass(frozen=True)
class Delays:
    """Some points of a distribution of delays, and the clock of the season in which they happen.

    A delay passes through the points, and its hazard is constant between them, and after the last: one point is an
    exponential law, many come near any.

    Parameters
    ----------
    points : str or sequence of (float, float)
        The part of all rewards that are in, below 1, after so many hours; both rise. As text, with s, m, h, d or w.
    lasts : str or float
        Hours of the season, or text such as "30d".
    traffic : sequence of float, optional
        Visitors in equal parts of a day, which begins with the season; only their ratios matter. Steady if left out.

    Examples
    --------
    >>> Delays("50%=30m,95%=6h", lasts="30d") == Delays([(0.5, 0.5), (0.95, 6)], lasts=720)
    True
    """

    points: str | Sequence[tuple[float, float]]
    lasts: str | float
    traffic: Sequence[float] = (1.0,)

    def __post_init__(self) -> None:
        points, given = [], parsed_points(self.points) if isinstance(self.points, str) else self.points
        for point in listed(given, "points of delays", MarketError, "[(0.5, 0.5), (0.95, 6)]"):
            pair = listed(point, "a point of delays", MarketError, "(0.5, 0.5)")
            if len(pair) != 2:
                raise MarketError(f"expected a point of delays as a part and hours, got {brief(point)}; give (0.5, 2)")
            part = PART.checked(pair[0], "the part of rewards that are in", MarketError)
            points.append((part, HOURS.checked(pair[1], "the hours of a delay", MarketError)))
        count(len(points), "points of delays", 1, MOST_POINTS, MarketError)
        if points[-1][0] >= 1 or not all(p < q and s < t for (p, s), (q, t) in pairwise(points)):
            raise MarketError(
                f"expected points of delays whose parts, below 1, and hours rise, got {brief(self.points)}; sort them"
            )
        lasts = parsed_hours(self.lasts) if isinstance(self.lasts, str) else self.lasts
        lasts = HOURS.checked(lasts, "the hours that a season lasts", MarketError)
        traffic = tuple(
            TRAFFIC.checked(one, "the traffic of a part of the day", MarketError)
            for one in listed(self.traffic, "traffic", MarketError, "[1, 4]")
        )
        if not any(traffic):
            raise MarketError(f"expected some traffic, got {brief(self.traffic)}; give e.g. [1, 4], or leave it out")
        count(math.ceil(lasts / DAY * len(traffic)), "parts of days in a season", 1, MOST_BINS, MarketError)
        for name, value in (("points", tuple(points)), ("lasts", lasts), ("traffic", traffic)):
            object.__setattr__(self, name, value)

    @property
    def law(self) -> tuple[tuple[float, float], ...]:
        """Points as numbers."""
        return cast("tuple[tuple[float, float], ...]", self.points)

    @property
    def hours(self) -> float:
        """Hours of the season."""
        return float(self.lasts)

    @property
    def mean(self) -> float:
        """Mean delay, in hours.

        >>> round(Delays("50%=1h", lasts="30d").mean, 2)
        1.44
        """
        left, hours, mean, slope = 1.0, 0.0, 0.0, 0.0
        for part, at in self.law:
            slope = (at - hours) / math.log(left / (1 - part))
            mean += slope * (left - (1 - part))
            left, hours = 1 - part, at
        return mean + slope * left

    def to_dict(self) -> dict[str, Any]:
        """Return the law as a market file has it."""
        return {"points": [list(point) for point in self.points], "lasts": self.lasts, "traffic": list(self.traffic)}


def parsed_points(text: str) -> list[tuple[float, float]]:
    """Parse points such as `50%=30m,95%=6h`.

    >>> parsed_points("50%=30m, 95%=6h")
    [(0.5, 0.5), (0.95, 6.0)]
    """
    pairs = [re.fullmatch(r"\s*([0-9.]+)\s*%\s*=(.*)", point) for point in text.split(",")]
    if not all(pairs):
        raise MarketError(f"expected points of delays as PART%=TIME,.. such as 50%=30m,95%=6h, got {text!r}; write so")
    return [(_number(pair[1]) / 100, parsed_hours(pair[2])) for pair in pairs if pair]


def parsed_hours(text: str) -> float:
    """Parse a length of time, such as `30m`, `6h` or `30d`.

    >>> parsed_hours("30m"), parsed_hours("30d")
    (0.5, 720.0)
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*([smhdw])\s*", text)
    if found is None:
        raise MarketError(f"expected a time with s, m, h, d or w, such as 30m or 30d, got {text!r}; write it so")
    return _number(found[1]) * UNITS[found[2]]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise MarketError(f"expected a number, got {text!r}; write it as 0.5 or 30") from None


def delays_of(shown: Sequence[float], clicked: Sequence[float]) -> Delays:
    """Return the delays of a log's clicks: of each, the hour at which it was shown and at which its click was known.

    >>> delays_of([0, 1, 2, 3, 720], [0.5, 1.5, 3, 9, 721]).lasts
    720.0
    """
    first, last = np.asarray(shown, dtype=float), np.asarray(clicked, dtype=float)
    if first.ndim != 1 or first.shape != last.shape or not len(first) or not (last >= first).all():
        raise MarketError("expected as many hours of views as of their clicks, which come later; give two lists")
    hours = np.maximum(np.quantile(last - first, QUANTILES), UNITS["s"]).tolist()
    points = [
        (part, at) for k, (part, at) in enumerate(zip(QUANTILES, hours, strict=True)) if at > max([0, *hours[:k]])
    ]
    return Delays(points, max(float(np.ptp(first)), UNITS["h"]))


def checked_delays(given: object) -> DelaysName | Delays:
    """Return a law of delays, also from the table of a market file, or one of the names."""
    if isinstance(given, Mapping) and has_form(given, DELAYS_FORM):
        return Delays(**given)
    if isinstance(given, Delays):
        return given
    if isinstance(given, Mapping):
        raise MarketError(
            f"expected delays as points and lasts, got {brief(given)}; give e.g. "
            "{'points': '50%=30m,95%=6h', 'lasts': '30d'}"
        )
    return cast("DelaysName", one_of(given, get_args(DelaysName), "delays", MarketError))
