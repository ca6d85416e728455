"""Limits: how large a request may be, and how many an agent's key may send."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from cloneproof.errors import Refused

MOST_BYTES: Final = 1 << 20


class RateLimit:
    """A token bucket for each key: `rate` calls a second on average, twice as many at once."""

    def __init__(self, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self._clock = rate, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def check(self, key: str, cost: int = 1) -> None:
        """Refuse a call that comes too soon."""
        if self.rate is None:
            return
        now, most = self._clock(), 2 * self.rate
        tokens, then = self._buckets.get(key, (most, now))
        tokens = min(most, tokens + (now - then) * self.rate)
        if tokens < min(cost, most):
            self._buckets[key] = (tokens, now)
            raise Refused(429, "too_many_requests", f"expected at most {self.rate:g} calls a second; wait a little")
        self._buckets[key] = (tokens - cost, now)
