"""Where tasks run on this machine: threads where kernels do the work, processes where Python does.

The kernels release Python's lock, so threads are enough for runs; exact engines and audits are Python's work.
"""

from __future__ import annotations

import multiprocessing as mp
import signal
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol, Self

from cloneproof._checks import whole
from cloneproof.engines.monte_carlo.driver import InlineExecutor, available_threads
from cloneproof.errors import SweepError, brief
from cloneproof.sweeps.execution.tasks import TaskDone, TaskFailed, attempt

TaskResult = Future[list[TaskDone] | TaskFailed]


class TaskRunner(Protocol):
    """Runs `attempt` somewhere: the driver needs to know no more."""

    def workers(self) -> int:
        """How many tasks can run at once now."""

    def submit(self, *task: Any) -> TaskResult:  # noqa: ANN401
        """Start a task: the arguments of `work`."""

    def stop(self) -> bool:
        """Ask running tasks to come back early; whether they will."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Local:
    """An executor of this machine; `stoppable` where its tasks can see a flag of this process."""

    def __init__(self, executor: Executor, workers: int, stoppable: bool) -> None:
        self._executor, self._workers = executor, workers
        self._stopped, self._stoppable = threading.Event(), stoppable

    def workers(self) -> int:
        """As many as it was made with."""
        return self._workers

    def submit(self, *task: Any) -> TaskResult:  # noqa: ANN401
        """Start a task."""
        more = (self._stopped.is_set,) if self._stoppable else ()
        return self._executor.submit(attempt, *task, *more)

    def stop(self) -> bool:
        """Raise the flag."""
        self._stopped.set()
        return self._stoppable

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._executor.shutdown(wait=error is None, cancel_futures=True)


def checked_workers(workers: object) -> int:
    """How many workers, as many as there are cores if not said; or a clear error."""
    count = available_threads() if workers is None else whole(workers)
    if count is None or count < 1:
        raise SweepError(f"expected a whole number of workers from 1, got {brief(workers)}; use e.g. 2")
    return count


def local_engine(workers: int | None, sampled_only: bool) -> Local:
    """Threads if only runs are asked for, else processes, as many as there are cores; one worker is this thread.

    A GPU has one worker: its launches follow each other anyway.
    """
    count = checked_workers(workers)
    if count == 1:
        return Local(InlineExecutor(1), 1, stoppable=False)  # Ctrl-C ends the computation itself
    if sampled_only:
        return Local(ThreadPoolExecutor(count), count, stoppable=True)
    pool = ProcessPoolExecutor(count, mp_context=mp.get_context("spawn"), initializer=_quiet_interrupt)
    return Local(pool, count, stoppable=False)


def _quiet_interrupt() -> None:
    """Ctrl-C ends a worker process at once and without a word: the driver speaks for all."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
