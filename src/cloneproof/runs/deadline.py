"""Deadlines, and worker processes that end with the one that started them, however it ends."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from typing import Any

from cloneproof._lib.clock import UNTIL, now

ProgressCallback = Callable[[int, int, str], None]  # (done, total, what)
_INTERRUPTS: ContextVar[bool] = ContextVar("interrupts", default=False)  # whether samplers pass them on


@dataclass(frozen=True)
class Deadline:
    """A number of seconds since a start (None: no limit), and a progress callback (None: none)."""

    limit: float | None = None
    report: ProgressCallback | None = None
    start: float = field(default_factory=now)
    stop: threading.Event = field(default_factory=threading.Event, compare=False)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return now() - self.start

    @property
    def left(self) -> float | None:
        """Seconds until it is spent, or until an outer one is (`for_engines`); None without a limit."""
        if self.interrupted:
            return 0.0
        own = math.inf if self.limit is None else self.limit - self.seconds
        least = min(own, UNTIL.get() - now())
        return None if math.isinf(least) else max(0.0, least)

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
        """Stop whatever looks at the time at this deadline within this context; a nested one cannot extend it."""
        until = math.inf if self.left is None else now() + self.left
        token = UNTIL.set(min(until, UNTIL.get()))
        try:
            yield
        finally:
            UNTIL.reset(token)


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
        moment = now()
        if shell is None or not hasattr(shell, "kernel") or (moment - self.last < self.PAUSE and done != total):
            return
        text = {"text/plain": f"{what}: {done:,}{'' if total is None else f' of {total:,}'}"}
        if self.cell != shell.execution_count:
            from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

            self.handle = display(text, raw=True, display_id=True)
            self.cell = shell.execution_count
        else:
            self.handle.update(text, raw=True)
        self.last = moment


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
