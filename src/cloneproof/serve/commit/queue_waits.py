"""How many calls of each market are under way, and how long they take from being asked to their reply.

That is the wait for the writer, the work and the commit together: what a caller of the market waits for.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Histogram:
    """Seconds, counted in buckets.

    >>> waits = Histogram()
    >>> waits.add(0.002), waits.add(60.0)
    (None, None)
    >>> [number for _, number in waits.cumulative()]
    [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    """

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """Each upper bound, as Prometheus writes it, and how many are not above it."""
        total = 0
        for bound, number in zip((*BUCKETS, "+Inf"), self.counts, strict=True):
            total += number
            yield str(bound), total


class QueueWaits:
    """The calls of each market that have no reply yet, and the times of those that have; "" for calls about none."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.depth: defaultdict[str, int] = defaultdict(int)
        self.times: defaultdict[str, Histogram] = defaultdict(Histogram)

    def follow(self, market: str, future: asyncio.Future[Any]) -> None:
        """Count a call until its future is done."""
        self.depth[market] += 1
        future.add_done_callback(partial(self._done, market, self._clock()))

    def _done(self, market: str, begun: float, future: asyncio.Future[Any]) -> None:
        self.depth[market] -= 1
        self.times[market].add(self._clock() - begun)
