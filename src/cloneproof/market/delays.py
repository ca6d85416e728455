"""The law of how late a reward comes, the same for every arm, agent and place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, cast, get_args

from cloneproof._lib.checks import NumberRange, count, has_form, listed, one_of
from cloneproof.errors import MarketError, brief

DAY = 24.0  # hours
HOURS, PART, TRAFFIC = NumberRange(0, low_open=True), NumberRange(0, 1, low_open=True), NumberRange(0)
MOST_POINTS, MOST_BINS = 100, 1_000_000
DelaysName = Literal["none", "independent"]
DELAYS_FORM: Mapping[str, Any] = {"points": [[HOURS]], "lasts": HOURS, "traffic?": [TRAFFIC]}


@dataclass(frozen=True)
class Delays:
    """Some points of a distribution of delays, and the clock of the season in which they happen.

    A delay passes through the points, and its hazard is constant between them, and after the last: one point is an
    exponential law, many come near any.

    Parameters
    ----------
    points : sequence of (float, float)
        The part of all rewards that are in, below 1, after so many hours; both rise.
    lasts : float
        Hours of the season.
    traffic : sequence of float, optional
        Visitors in equal parts of a day, which begins with the season; only their ratios matter. Steady if left out.

    Examples
    --------
    >>> Delays([(0.5, 0.5), (0.95, 6)], lasts=720).points
    ((0.5, 0.5), (0.95, 6.0))
    """

    points: Sequence[tuple[float, float]]
    lasts: float
    traffic: Sequence[float] = (1.0,)

    def __post_init__(self) -> None:
        points = []
        for point in listed(self.points, "points of delays", MarketError, "[(0.5, 0.5), (0.95, 6)]"):
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
        lasts = HOURS.checked(self.lasts, "the hours that a season lasts", MarketError)
        traffic = tuple(
            TRAFFIC.checked(one, "the traffic of a part of the day", MarketError)
            for one in listed(self.traffic, "traffic", MarketError, "[1, 4]")
        )
        if not any(traffic):
            raise MarketError(f"expected some traffic, got {brief(self.traffic)}; give e.g. [1, 4], or leave it out")
        count(math.ceil(lasts / DAY * len(traffic)), "parts of days in a season", 1, MOST_BINS, MarketError)
        for name, value in (("points", tuple(points)), ("lasts", lasts), ("traffic", traffic)):
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the law as a market file has it."""
        return {"points": [list(point) for point in self.points], "lasts": self.lasts, "traffic": list(self.traffic)}


def checked_delays(given: object) -> DelaysName | Delays:
    """Return a law of delays, also from the table of a market file, or one of the names."""
    if isinstance(given, Mapping) and has_form(given, DELAYS_FORM):
        return Delays(**given)
    if isinstance(given, Delays):
        return given
    return cast("DelaysName", one_of(given, get_args(DelaysName), "delays", MarketError))
