"""Wall-clock time, and the deadline of whatever is computing."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeVar

from cloneproof.errors import OutOfTimeError

UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)  # of `now`: when everything stops
R = TypeVar("R", bound=Callable[[], float])
_CLOCKS: Final[list[Callable[[], float]]] = [time.monotonic]  # the last one counts


def process_began() -> float:
    """Return when this process began, of `time.monotonic`; where the system does not say, when it had no CPU time."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.monotonic() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.monotonic() - time.process_time()


def now() -> float:
    """Seconds of wall-clock time, from no particular start."""
    return _CLOCKS[-1]()


@contextmanager
def wall_clock(reading: R) -> Iterator[R]:
    """Within this context `reading` tells wall-clock time, in every thread: a simulated clock, for instance."""
    _CLOCKS.append(reading)
    try:
        yield reading
    finally:
        _CLOCKS.remove(reading)


def time_is_over() -> bool:
    """Whether nothing further should start."""
    return now() >= UNTIL.get()


def check_time(what: str) -> None:
    """Raise `OutOfTimeError` if time is over.

    >>> from cloneproof.runs.deadline import Deadline
    >>> with Deadline(0.0).for_engines():
    ...     check_time("tree")
    Traceback (most recent call last):
        ...
    cloneproof.errors.OutOfTimeError: the tree had no time to go on; give more seconds
    """
    if time_is_over():
        raise OutOfTimeError(f"the {what} had no time to go on", "give more seconds")
