"""Time budgets, and worker processes that end with the one that started them, however it ends."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from cloneproof._lib.clock import EXACT_UNTIL, is_counted, now, wall_time

T = TypeVar("T")
ProgressCallback = Callable[[int, int, str], None]  # (done, total, what)
_INTERRUPTS: ContextVar[bool] = ContextVar("interrupts", default=False)  # whether samplers pass them on


@dataclass(frozen=True)
class Deadline:
    """A budget of seconds since a start (None: no limit), and a progress callback (None: none).

    Seconds are those of `_clock.now`: of wall-clock time, or of counted work.
    """

    budget: float | None = None
    report: ProgressCallback | None = None
    start: float = field(default_factory=now)
    until: float | None = None  # seconds since the start at which a share of the budget is spent
    stop: threading.Event = field(default_factory=threading.Event, compare=False)
    begun: float = field(default_factory=wall_time, compare=False)

    @property
    def seconds(self) -> float:
        return now() - self.start

    @property
    def elapsed(self) -> float:
        """Seconds of wall-clock time since the start, whatever counts."""
        return wall_time() - self.begun

    @property
    def words(self) -> str:
        """Time limit in words."""
        return f"{self.budget or self.limit or 0.0:.4g} s" + (" of counted work" if is_counted() else "")

    @property
    def limit(self) -> float | None:
        """Seconds since the start at which it is spent."""
        return self.budget if self.until is None else self.until

    @property
    def left(self) -> float | None:
        """Seconds until it is spent, or until that of all engines is (`for_engines`); None without a limit."""
        if self.interrupted:
            return 0.0
        own, engines = math.inf if self.limit is None else self.limit - self.seconds, EXACT_UNTIL.get()
        least = own if math.isinf(engines) else min(own, engines - now())
        return None if math.isinf(least) else max(0.0, least)

    def within(self, seconds: float) -> float:
        """Return a number of seconds, or the time left if that is less."""
        return seconds if self.left is None else min(seconds, self.left)

    def share(self, parts: float) -> Deadline:
        """Return an earlier deadline, for the first of `parts` equal parts of the time left; 4 / 3 leaves a quarter."""
        return self if self.left is None else replace(self, until=self.seconds + self.left / parts)

    def shared_by(self, items: Collection[T]) -> Iterator[tuple[T, Deadline]]:
        """Yield each item with an equal share of the time that is left when its turn comes."""
        for waiting, item in zip(range(len(items), 0, -1), items, strict=True):
            yield item, self.share(waiting)

    @property
    def spent(self) -> bool:
        return self.left == 0.0

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed; nothing is left then."""
        return self.stop.is_set()

    def interrupt(self) -> None:
        self.stop.set()

    def tell(self, done: int, total: int, what: str) -> None:
        """Report progress to the callback, or in a notebook."""
        (self.report or notebook_line)(done, total, what)

    @contextmanager
    def for_engines(self) -> Iterator[None]:
        """Stop exact engines and tuning at this deadline within this context; a nested one cannot extend it."""
        until = math.inf if self.left is None else now() + self.left
        token = EXACT_UNTIL.set(min(until, EXACT_UNTIL.get()))
        try:
            yield
        finally:
            EXACT_UNTIL.reset(token)


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise `KeyboardInterrupt` within this context where a sampler would otherwise return what it has."""
    token = _INTERRUPTS.set(True)
    try:
        yield
    finally:
        _INTERRUPTS.reset(token)


def raises_interrupts() -> bool:
    """Return whether the caller handles Ctrl-C."""
    return _INTERRUPTS.get()


class NotebookLine:
    """Progress as a line below the running cell, in Jupyter only."""

    PAUSE = 0.2  # seconds between two updates

    def __init__(self) -> None:
        self.cell: object = None
        self.handle: Any = None
        self.last = -math.inf

    def __call__(self, done: int, total: int | None, what: str) -> None:
        get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
        shell: Any = get_shell() if get_shell is not None else None
        now = wall_time()
        if shell is None or not hasattr(shell, "kernel") or (now - self.last < self.PAUSE and done != total):
            return
        text = {"text/plain": f"{what}: {done:,}{'' if total is None else f' of {total:,}'}"}
        if self.cell != shell.execution_count:
            from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

            self.handle = display(text, raw=True, display_id=True)
            self.cell = shell.execution_count
        else:
            self.handle.update(text, raw=True)
        self.last = now


notebook_line = NotebookLine()


def process_pool(count: int) -> ProcessPoolExecutor:
    """Return a pool of spawned processes; threads and compiled code do not survive a fork."""
    return ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin_worker)


def _begin_worker() -> None:
    """Make Ctrl-C, and the end of the driver, end a worker silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
