"""Clock of time limits: wall-clock time, or counted work.

A number of seconds limits wall-clock time, compiling included. A question without one has a limit of work instead:
engines say what they have done, in seconds of a usual core (`count_work`), so that one seed gives one answer on every
machine.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, Final, TypeVar

from cloneproof.errors import OutOfTimeError

EXACT_UNTIL: ContextVar[float] = ContextVar("exact_until", default=math.inf)  # of `now`
R = TypeVar("R", bound=Callable[[], float])
T = TypeVar("T")
LOOK: Final = 5e-4  # seconds of work from one look at the clock of an exact engine to the next


def process_began() -> float:
    """Return when this process began, of `time.monotonic`; where the system does not say, when it had no CPU time."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.monotonic() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.monotonic() - time.process_time()


@dataclass
class _Clock:
    """Amount of work done; None: wall-clock time counts."""

    work: float | None


_CLOCK: ContextVar[_Clock | None] = ContextVar("clock", default=None)  # of the question that is being answered


_WALL_CLOCKS: Final[list[Callable[[], float]]] = [time.monotonic]  # the last one counts


def wall_time() -> float:
    """Seconds of wall-clock time, from no particular start."""
    return _WALL_CLOCKS[-1]()


@contextmanager
def wall_clock(reading: R) -> Iterator[R]:
    """Within this context `reading` tells wall-clock time, in every thread: a simulated clock, for instance."""
    _WALL_CLOCKS.append(reading)
    try:
        yield reading
    finally:
        _WALL_CLOCKS.remove(reading)


def now() -> float:
    """Return seconds of wall-clock time or of work, from no particular start."""
    clock = _CLOCK.get()
    if clock is not None and clock.work is not None:
        return clock.work
    return wall_time()


@contextmanager
def budget_clock(seconds: float | None) -> Iterator[None]:
    """Yield the clock of a question with that limit: wall-clock time, or counted work without one.

    A question inside another one uses the clock of that one.
    """
    if _CLOCK.get() is not None or EXACT_UNTIL.get() < math.inf:
        yield
        return
    token = _CLOCK.set(_Clock(None if seconds is not None else 0.0))
    try:
        yield
    finally:
        _CLOCK.reset(token)


@contextmanager
def unlimited() -> Iterator[None]:
    """Let nothing stop and nothing count within this context: for work that was limited and counted beforehand."""
    clock, until = _CLOCK.set(_Clock(0.0)), EXACT_UNTIL.set(math.inf)
    try:
        yield
    finally:
        _CLOCK.reset(clock)
        EXACT_UNTIL.reset(until)


def is_counted() -> bool:
    """Return whether work is counted and time does not matter."""
    clock = _CLOCK.get()
    return clock is not None and clock.work is not None


def count_work(seconds: float) -> None:
    """Say that work was done, as many seconds of a usual core."""
    clock = _CLOCK.get()
    if clock is not None and clock.work is not None:
        clock.work += seconds


def time_is_over(work: float = LOOK) -> bool:
    """Whether no further exact work should start; a search returns the best it has. Counts the work done before."""
    count_work(work)
    return now() >= EXACT_UNTIL.get()


def check_time(engine: str, work: float = LOOK) -> None:
    """Raise `OutOfTimeError` if the time of exact engines is over.

    >>> from cloneproof.runs.deadline import Deadline
    >>> with Deadline(0.0).for_engines():
    ...     check_time("closed form")
    Traceback (most recent call last):
        ...
    cloneproof.errors.OutOfTimeError: the closed form had no time to go on; use a larger budget
    """
    if time_is_over(work):
        raise OutOfTimeError(f"the {engine} had no time to go on", "use a larger budget")


def remembered(most: int, engine: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Keep the last results of a function that looks at the clock of an engine, like `lru_cache`.

    A kept result counts the work that it took when it was computed: an answer does not depend on what was asked before.

    >>> @remembered(8, "closed form")
    ... def square(number):
    ...     check_time("closed form", work=2.0)
    ...     return number * number
    >>> with budget_clock(None):
    ...     square(3), square(3), now()
    (9, 9, 4.0)
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @lru_cache(maxsize=most)
        def kept(counted: bool, *arguments: Any) -> tuple[T, float]:  # noqa: ANN401
            begun = now()
            return function(*arguments), now() - begun if counted else 0.0

        @wraps(function)
        def call(*arguments: Any) -> T:  # noqa: ANN401
            begun, counted = now(), is_counted()
            found, work = kept(counted, *arguments)
            if counted and work and now() == begun:
                check_time(engine, work)
            return found

        return call

    return decorate
