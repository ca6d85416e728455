"""When late rewards are in: the law of delays of a market, as pages of a run.

Page t is shown when that part of the season's visitors has come. A click on it comes a delay later, and is in before
the first page that is shown after that. Delays are random numbers of the page and the place. `native/arrivals.h` has
the same operations in the same order.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof.laws.logarithm import log
from cloneproof.market.delays import DAY, Delays


class Arrivals:
    """Delays of a season of so many pages.

    levels, hours   -ln of the part of rewards that are not in yet, and when, with zeros before the first point
    slopes          hours a level, up to each point and after the last
    clock, begun    hours, and the pages that began before them
    """

    def __init__(self, delays: Delays, horizon: int) -> None:
        self.horizon = horizon
        self.levels = [0.0, *(-math.log1p(-part) for part, _ in delays.law)]
        self.hours = [0.0, *(hours for _, hours in delays.law)]
        slopes = np.diff(self.hours) / np.diff(self.levels)
        self.slopes: list[float] = [*slopes.tolist(), slopes[-1].item()]
        width = DAY / len(delays.traffic)
        bins = math.ceil(delays.hours / width)
        clock = np.minimum(width * np.arange(bins + 1), delays.hours)
        traffic = np.resize(np.array(delays.traffic), bins) * np.diff(clock)
        begun = np.concatenate([[0.0], np.cumsum(traffic)])
        self.clock: list[float] = clock.tolist()
        self.begun: list[float] = (horizon * (begun / begun[-1])).tolist()

    def page(self, page: int, u: float) -> int:
        """Return the first page, from 0, before which a click on this one is in; at the season's end, none is.

        >>> steady = Arrivals(Delays([(0.5, 12)], lasts=24), 100)
        >>> steady.page(0, 0.5), steady.page(60, 0.5), steady.page(60, 0.99)
        (51, 100, 61)
        """
        if page + 1 >= self.horizon:
            return self.horizon
        level = -log(u)
        k = bisect_right(self.levels, level) - 1
        delay = self.hours[k] + (level - self.levels[k]) * self.slopes[k]
        k = bisect_right(self.begun, page + 1.0) - 1
        passed = (page + 1.0 - self.begun[k]) / (self.begun[k + 1] - self.begun[k])
        moment = self.clock[k] + passed * (self.clock[k + 1] - self.clock[k]) + delay
        k = bisect_right(self.clock, moment) - 1
        if k + 1 >= len(self.clock):
            return self.horizon
        passed = (moment - self.clock[k]) / (self.clock[k + 1] - self.clock[k])
        return max(page + 1, int(self.begun[k] + passed * (self.begun[k + 1] - self.begun[k])))

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """Its numbers for a kernel."""
        return {name: np.array(getattr(self, name)) for name in ("levels", "hours", "slopes", "clock", "begun")}


@lru_cache(maxsize=16)
def arrivals_of(delays: Delays, horizon: int) -> Arrivals:
    """Return the arrivals of a season, made once."""
    return Arrivals(delays, horizon)
