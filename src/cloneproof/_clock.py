"""The time limit of exact computations."""

from __future__ import annotations

import math
import time
from contextvars import ContextVar

from cloneproof.errors import OutOfTimeError

EXACT_UNTIL: ContextVar[float] = ContextVar("exact_until", default=math.inf)  # of the monotonic clock


def time_is_over() -> bool:
    """Whether no further exact work should start; a search returns the best it has."""
    return time.monotonic() >= EXACT_UNTIL.get()


def check_time(engine: str) -> None:
    """Raise `OutOfTimeError` if the time of exact engines is over.

    >>> from cloneproof.engines.deadline import Deadline
    >>> with Deadline(0.0).for_engines():
    ...     check_time("closed form")
    Traceback (most recent call last):
        ...
    cloneproof.errors.OutOfTimeError: the closed form had no time to go on; use a larger budget
    """
    if time_is_over():
        raise OutOfTimeError(f"the {engine} had no time to go on", "use a larger budget")
