"""The driver: chunks of runs over threads, consumed in order, until enough is known or time is up.

Results do not depend on threads, chunk sizes or interruptions: totals are a left fold over runs in order, and the
stopping rule is checked at fixed numbers of observations. Kernels release Python's lock, so threads suffice. Memory
holds one chunk more than there are threads.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, TypeVar

from cloneproof._arrays import FloatArray
from cloneproof.engines.deadline import Deadline, notebook_line, raises_interrupts
from cloneproof.engines.monte_carlo.statistics import RunTotals
from cloneproof.errors import OutOfTimeError

_Task = tuple[Future[Any], Callable[[], Any]]


class DaemonThreads(Executor):
    """A pool of daemon threads, which do not delay the end of the interpreter.

    >>> pool = DaemonThreads(2)
    >>> pool.submit(pow, 2, 10).result()
    1024
    >>> pool.shutdown(wait=False)
    """

    def __init__(self, threads: int) -> None:
        self.tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self.threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:  # noqa: ANN401
        future: Future[T] = Future()
        context = copy_context()  # the deadline of the engines is part of it
        self.tasks.put((future, lambda: context.run(work, *arguments, **named)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads after their current or, optionally, all waiting calls."""
        while cancel_futures and not self.tasks.empty():
            task = self.tasks.get()
            if task is not None:
                task[0].cancel()
        for _ in self.threads:
            self.tasks.put(None)
        for thread in self.threads if wait else ():
            thread.join()

    def _serve(self) -> None:
        while (task := self.tasks.get()) is not None:
            future, work = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)


ObserveRuns = Callable[[int, int], FloatArray]  # (first run, count) to one row a run; a pure function
StopReason = Literal["enough", "runs", "budget", "interrupted"]

T = TypeVar("T")

CHUNK_SECONDS = 0.1  # long beside the overhead of a chunk (well under 1 ms), short beside anybody's patience
LARGEST_CHUNK = 1 << 14  # runs; a bound on memory
FIRST_PATIENCE = 1.0  # seconds; a budget too short for anything still gets a first chunk, if that takes no longer
FIRST_CHUNK = 1  # run, so that a slow policy has something to show soon; at most four times as many in the next chunk


class SamplingStatus(NamedTuple):
    """What a progress bar needs: totals so far, a guess of the runs needed, and the seconds."""

    totals: RunTotals
    aim: int | None
    seconds: float


@dataclass(frozen=True)
class RunPlan:
    """When to stop and with what means.

    `limit` counts observations (passes over the strata), None for no limit. `enough` is checked at the looks; `aim`
    guesses the observations needed. `chunk` fixes the runs of a chunk, for tests. `largest` bounds them; if it is
    larger than usual (a GPU plays many as quickly as one), so is the first chunk.
    """

    limit: int | None = None
    enough: Callable[[RunTotals], bool] | None = None
    aim: Callable[[RunTotals], int | None] | None = None
    budget_seconds: float | None = None
    threads: int | None = None
    chunk: int | None = None
    report: Callable[[SamplingStatus], None] | None = None
    executor: Callable[[int], Executor] = DaemonThreads
    largest: int = LARGEST_CHUNK


def drive(observe: ObserveRuns, start: RunTotals, plan: RunPlan) -> tuple[RunTotals, StopReason]:
    """Continue from `start` until the plan is fulfilled; Ctrl-C and a spent budget stop early and lose nothing."""
    deadline = Deadline(plan.budget_seconds)
    threads = plan.threads or available_threads()
    totals = start  # immutable, replaced as a whole: an interrupt between two statements finds it consistent
    try:
        if plan.enough is not None and start.count > 0 and _is_look(start.count) and plan.enough(start):
            return totals, "enough"
        patience = None if plan.budget_seconds is None else plan.budget_seconds + FIRST_PATIENCE
        with Deadline(patience).for_engines(), _pool(plan, threads) as pool:
            for rows in _chunks(pool, observe, start, plan, threads, deadline):
                for piece in _until_looks(rows, totals, plan):
                    totals = totals.plus(piece)
                    if plan.enough is not None and _is_look(totals.count) and plan.enough(totals):
                        return totals, "enough"
                if plan.report is not None:
                    plan.report(SamplingStatus(totals, _aim(totals, plan), deadline.seconds))
                else:
                    notebook_line(totals.runs, plan.limit and plan.limit * len(start.estimands.weights), "runs")
                if deadline.spent:
                    break
    except KeyboardInterrupt:
        if raises_interrupts():
            raise
        return totals, "interrupted"
    except OutOfTimeError:
        return totals, "budget"
    return totals, "runs" if plan.limit is not None and totals.count >= plan.limit else "budget"


class InlineExecutor(Executor):
    """Runs what is submitted at once, in this thread: for chunks that must not run in parallel."""

    def __init__(self, threads: int) -> None:
        del threads  # one is all there is

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:  # noqa: ANN401
        """A finished future; errors and interrupts pass through."""
        done: Future[T] = Future()
        done.set_result(work(*arguments, **named))
        return done


def looks(first: int) -> Iterator[int]:
    """The numbers of observations, from `first` on, at which sampling may stop: an eighth more each time.

    >>> from itertools import islice
    >>> list(islice(looks(15), 5)), list(islice(looks(1000), 3))
    ([15, 16, 18, 20, 22], [1045, 1175, 1321])
    """
    look = 1
    while True:
        if look >= first:
            yield look
        look += max(1, look // 8)


def first_chunk(largest: int) -> int:
    """The runs of a first chunk, by those of the largest: one on cores, and more where many take as long as one.

    >>> first_chunk(LARGEST_CHUNK), first_chunk(1 << 18)
    (1, 4096)
    """
    return FIRST_CHUNK * max(1, largest // LARGEST_CHUNK) ** 3


def available_threads() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _pool(plan: RunPlan, threads: int) -> Iterator[Executor]:
    pool = plan.executor(threads)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a chunk on its way ends by itself, soon; nobody waits for it


def _chunks(
    pool: Executor, observe: ObserveRuns, start: RunTotals, plan: RunPlan, threads: int, deadline: Deadline
) -> Iterator[FloatArray]:
    """The rows of successive chunks, in order, until the limit or the deadline; always at least one."""
    strata = len(start.estimands.weights)
    size = _passes(plan.chunk or first_chunk(plan.largest), strata)
    largest, fixed = _passes(plan.largest, strata), plan.chunk is not None
    waiting: deque[Future[tuple[FloatArray, float]]] = deque()
    asked, first = start.count, True
    while True:
        while len(waiting) < threads + 1 and (plan.limit is None or asked < plan.limit):
            count = size
            if plan.limit is not None:
                left = plan.limit - asked
                if not fixed and left <= size * threads:  # equal last chunks, so that no thread idles at the end
                    size, fixed = -(-left // threads), True
                count = min(size, left)
            waiting.append(pool.submit(_observe_timed, observe, asked * strata, count * strata))
            asked += count
        if not waiting:
            return
        try:
            wait = None if deadline.left is None else deadline.left + (FIRST_PATIENCE if first else 0.0)
            rows, seconds = waiting.popleft().result(wait)
        except TimeoutError:
            if deadline.spent:
                return
            raise  # by the chunk itself
        first = False
        if not fixed:
            size = max(1, min(largest, int(len(rows) // strata * min(4.0, CHUNK_SECONDS / max(seconds, 1e-9)))))
        yield rows


def _observe_timed(observe: ObserveRuns, first: int, count: int) -> tuple[FloatArray, float]:
    begun = time.perf_counter()
    return observe(first, count), time.perf_counter() - begun


def _passes(runs: int, strata: int) -> int:
    return max(1, runs // strata)


def _until_looks(rows: FloatArray, totals: RunTotals, plan: RunPlan) -> Iterator[FloatArray]:
    """The rows, cut at the looks; whole without a stopping rule."""
    strata, begin = len(totals.estimands.weights), totals.count
    end = begin + len(rows) // strata
    if plan.enough is None:
        yield rows
        return
    done = begin
    for look in looks(begin + 1):
        stop = min(look, end)
        yield rows[(done - begin) * strata : (stop - begin) * strata]
        done = stop
        if done == end:
            return


def _is_look(count: int) -> bool:
    return next(looks(count)) == count


def _aim(totals: RunTotals, plan: RunPlan) -> int | None:
    guess = None if plan.aim is None else plan.aim(totals)
    if plan.limit is not None:
        guess = plan.limit if guess is None else min(guess, plan.limit)
    return None if guess is None else guess * len(totals.estimands.weights)
