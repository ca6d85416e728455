"""The time that exact engines may take: they look at the clock themselves, between steps of their loops."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cloneproof.errors import OutOfTimeError

_UNTIL: ContextVar[float] = ContextVar("engine_until", default=math.inf)  # of the monotonic clock


@contextmanager
def engine_time(seconds: float | None) -> Iterator[None]:
    """Within this context every exact engine stops when these seconds are over; None: no limit of its own.

    A context inside another cannot prolong it.
    """
    until = math.inf if seconds is None else time.monotonic() + seconds
    token = _UNTIL.set(min(until, _UNTIL.get()))
    try:
        yield
    finally:
        _UNTIL.reset(token)


def check_time(engine: str) -> None:
    """Raise `OutOfTimeError` where the time is over.

    >>> with engine_time(-1.0):
    ...     check_time("closed form")
    Traceback (most recent call last):
        ...
    cloneproof.errors.OutOfTimeError: the closed form had no time to go on; use a larger budget
    """
    if time.monotonic() > _UNTIL.get():
        raise OutOfTimeError(f"the {engine} had no time to go on; use a larger budget")
