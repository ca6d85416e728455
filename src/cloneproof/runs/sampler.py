"""Sampling a job: every agent's payoff and the regret, to a number of runs or a budget.

Chunks of runs are spread over threads and consumed in order. Results do not depend on threads, chunk sizes or
interruptions: totals are a left fold over runs in order, and the stopping rule is checked at fixed numbers of
observations. Kernels release Python's lock, so threads suffice. Memory holds as many chunks as there are threads.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof._lib.checks import count, known, number_in, real
from cloneproof._lib.clock import UNTIL, now, time_is_over
from cloneproof.errors import EngineError, OutOfTimeError, brief
from cloneproof.market.toml import market_to_toml
from cloneproof.runs.deadline import Deadline, notebook_line, raises_interrupts
from cloneproof.runs.estimate import BoundsName, Evaluation
from cloneproof.runs.job import check_sums
from cloneproof.runs.kernel import ChunkOutcomes, Outcomes, Runs
from cloneproof.runs.native import library
from cloneproof.runs.statistics import (
    FIRST_TIME,
    Estimands,
    RunTotals,
    in_groups,
    payoff_bounds,
    regret_bounds,
    with_sum,
)

ObserveRuns = Callable[[int, int], FloatArray]  # (first run, count) to one row a run; a pure function
StopReason = Literal["decided", "runs", "budget", "interrupted"]

T = TypeVar("T")
Submit = Callable[..., Future[T]]

CHUNK_SECONDS = 0.1  # far above the overhead of a chunk (under 1 ms), and short enough to stop soon when asked to
LARGEST_CHUNK = 1 << 14  # runs; a bound on memory
FIRST_PATIENCE = 1.0  # seconds by which a first chunk may exceed the budget: even a short budget gets some runs
RUNS, FEW_RUNS = 1000, 50  # by default, if no runs and no seconds are given: with the compiled kernels, and without
SLOW: Final = "sampled in plain Python, about a thousand times slower: "
FIRST_LOOK: Final = 64  # runs, before which sampling does not stop for what it found
MOST_RUNS, MOST_THREADS = 10**12, 4096
PARTIAL: tuple[StopReason, ...] = ("budget", "interrupted")
CARD_CHUNK: Final = 1 << 18  # runs of a launch
WORKER: Final = "cloneproof-work"  # name of a thread that the end of the process does not wait for


class SamplingStatus(NamedTuple):
    """Status for a progress bar: totals so far, the most runs (None: no limit), and the seconds."""

    totals: RunTotals
    most: int | None
    seconds: float


@dataclass(frozen=True)
class RunPlan:
    """When to stop and with what means.

    `limit` counts observations (passes over the strata), None for no limit. `decided` is checked at the looks. `chunk`
    fixes the runs of a chunk. `parallel` says whether chunks may run at the same time; else a chunk has at least a run
    for each of the `threads`, which may be processes. `largest` bounds the runs of a chunk; if it is larger than usual
    (a GPU plays many as quickly as one), so is the first chunk.
    """

    limit: int | None = None
    decided: Callable[[RunTotals], bool] | None = None
    seconds: float | None = None
    threads: int | None = None
    chunk: int | None = None
    report: Callable[[SamplingStatus], None] | None = None
    parallel: bool = True
    largest: int = LARGEST_CHUNK


def drive(observe: ObserveRuns, start: RunTotals, plan: RunPlan) -> tuple[RunTotals, StopReason]:
    """Continue from `start` until the plan is fulfilled; Ctrl-C and the deadline stop early and lose nothing."""
    deadline = Deadline(plan.seconds)
    threads = plan.threads or available_threads()
    totals = start  # immutable, replaced as a whole: an interrupt between two statements finds it consistent
    try:
        if plan.decided is not None and start.count > 0 and _is_look(start) and plan.decided(start):
            return totals, "decided"
        patience = None if plan.seconds is None else plan.seconds + FIRST_PATIENCE
        most = None if plan.limit is None else plan.limit * len(start.estimands.weights)
        with Deadline(patience).for_engines():
            for rows in _chunks(observe, start, plan, threads, deadline):
                for piece in _until_looks(rows, totals, plan):
                    totals = totals.plus(piece)
                    if plan.decided is not None and _is_look(totals) and plan.decided(totals):
                        return totals, "decided"
                if plan.report is not None:
                    plan.report(SamplingStatus(totals, most, deadline.seconds))
                else:
                    notebook_line(totals.runs, most, "runs")
                if deadline.spent:
                    break
    except KeyboardInterrupt:
        if raises_interrupts():
            raise
        return totals, "interrupted"
    except OutOfTimeError:
        return totals, "budget"
    return totals, "runs" if plan.limit is not None and totals.count >= plan.limit else "budget"


def nothing_sampled(drawn: Sequence[Runs], seconds: float | None) -> OutOfTimeError:
    """Return the error of a question without a single run, or pair of runs."""
    what = "one run" if len(drawn) == 1 else "one pair of runs"
    return OutOfTimeError(
        f"expected time for {what} of {drawn[0].job.market.horizon:,} rounds, got {seconds or 0.0:.4g} s",
        "give more, or ask for a shorter horizon",
    )


class InlineExecutor(Executor):
    """Runs what is submitted at once, in this thread: for chunks that must not run in parallel."""

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:  # noqa: ANN401
        """Return a finished future; errors and interrupts pass through."""
        done: Future[T] = Future()
        done.set_result(work(*arguments, **named))
        return done


_idle: deque[queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]]] = deque()
"""Of each thread that waits for work: where it gets it. Threads live as long as the process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a child has none of its parent's threads


def in_thread(work: Callable[..., T], *arguments: Any) -> Future[T]:  # noqa: ANN401
    """Call in a daemon thread, which does not delay the end of the interpreter, and return the future.

    >>> in_thread(pow, 2, 10).result()
    1024
    """
    future: Future[T] = Future()
    context = copy_context()  # the deadline of the engines is part of it
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = queue.SimpleQueue()
        threading.Thread(target=_work, args=(inbox,), daemon=True, name=WORKER).start()
    inbox.put((future, partial(context.run, work, *arguments)))
    return future


def _work(inbox: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]]) -> None:
    while True:
        future, call = inbox.get()
        threading.current_thread().name = WORKER
        error, value = None, None
        try:
            value = call()
        except BaseException as problem:
            error = problem
        del call  # and what it holds, while the thread waits
        threading.current_thread().name = f"{WORKER}-idle"
        _idle.append(inbox)
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
        del future, value, error


def by_deadline(work: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401
    """Call what looks at no clock itself, such as compilers and kernels; leave it running if time is over first."""
    if math.isinf(UNTIL.get()):
        return work(*arguments)
    future = in_thread(work, *arguments)
    while not future.done():
        if time_is_over():
            name = getattr(work, "__name__", "a computation")
            raise OutOfTimeError(f"time was over within {name}", "give more seconds")
        futures.wait([future], max(0.0, UNTIL.get() - now()))
    return future.result()


def looks(strata: int, after: int) -> Iterator[int]:
    """Yield the numbers of observations, more than `after`, at which sampling may stop: they double.

    The first has 64 runs at least, and as many observations as an interval needs.

    >>> from itertools import islice
    >>> list(islice(looks(1, 0), 3)), list(islice(looks(3, 64), 3))
    ([64, 128, 256], [88, 176, 352])
    """
    look = max(FIRST_TIME, -(-FIRST_LOOK // strata))
    while True:
        if look > after:
            yield look
        look *= 2


def first_chunk(largest: int) -> int:
    """Return the runs of a first chunk, by those of the largest: one on cores, more where many take as long as one.

    A slow policy then has something to show soon. The next chunk has at most four times as many.

    >>> first_chunk(LARGEST_CHUNK), first_chunk(1 << 18)
    (1, 4096)
    """
    return max(1, largest // LARGEST_CHUNK) ** 3


def available_threads() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chunks(
    observe: ObserveRuns, start: RunTotals, plan: RunPlan, threads: int, deadline: Deadline
) -> Iterator[FloatArray]:
    """Yield the rows of successive chunks, in order, until the limit or the deadline; always at least one."""
    strata = len(start.estimands.weights)
    at_once, least = (threads, 1) if plan.parallel else (1, -(-threads // strata))
    size = max(1, plan.chunk // strata) if plan.chunk else max(least, first_chunk(plan.largest) // strata)
    largest, fixed = max(least, plan.largest // strata), plan.chunk is not None
    waiting: deque[Future[tuple[FloatArray, float]]] = deque()
    asked, first = start.count, True
    submit: Submit[tuple[FloatArray, float]] = in_thread if plan.parallel else InlineExecutor().submit
    while True:
        while len(waiting) < at_once and (plan.limit is None or asked < plan.limit):
            count = size
            if plan.limit is not None:
                left = plan.limit - asked
                if not fixed and left <= size * at_once:  # equal last chunks, so that no thread idles at the end
                    size, fixed = -(-left // at_once), True
                count = min(size, left)
            waiting.append(submit(_observe_timed, observe, asked * strata, count * strata))
            asked += count
        if not waiting:
            return
        chunk = waiting.popleft()
        patience = Deadline(None if deadline.left is None else deadline.left + (FIRST_PATIENCE if first else 0.0))
        while not chunk.done() and not patience.spent:
            futures.wait([chunk], patience.left)
        if not chunk.done():
            return
        rows, seconds = chunk.result()
        first = False
        if not fixed:
            size = max(least, min(largest, int(len(rows) // strata * min(4.0, CHUNK_SECONDS / max(seconds, 1e-9)))))
        yield rows


def _observe_timed(observe: ObserveRuns, first: int, count: int) -> tuple[FloatArray, float]:
    begun = time.perf_counter()
    return observe(first, count), time.perf_counter() - begun


def _until_looks(rows: FloatArray, totals: RunTotals, plan: RunPlan) -> Iterator[FloatArray]:
    """Yield the rows, cut at the looks; whole without a stopping rule."""
    strata, begin = len(totals.estimands.weights), totals.count
    end = begin + len(rows) // strata
    if plan.decided is None:
        yield rows
        return
    done = begin
    for look in looks(strata, begin):
        stop = min(look, end)
        yield rows[(done - begin) * strata : (stop - begin) * strata]
        done = stop
        if done == end:
            return


def _is_look(totals: RunTotals) -> bool:
    return next(looks(len(totals.estimands.weights), totals.count - 1)) == totals.count


def kernels_installed() -> bool:
    """Whether the kernels are there: they are built with the package where there is a C++ compiler."""
    return library.missing() is None


def kernel_outcomes(runs: Runs, first: int, count: int) -> Outcomes:
    """Return the outcomes by the fastest kernel, before the time of the engines is over."""
    check_sums(runs.job)
    return by_deadline(_played, runs, first, count)


def _played(runs: Runs, first: int, count: int) -> Outcomes:
    return runs(first, count)


def sample(
    drawn: Runs,
    runs: int | None = None,
    confidence: float = 0.99,
    seconds: float | None = None,
    threads: int | None = None,
    progress: Callable[[SamplingStatus], None] | None = None,
    *,
    outcomes: ChunkOutcomes,
    parallel: bool = True,
    chunk: int | None = None,
    bounds: BoundsName = "asymptotic",
    largest: int = LARGEST_CHUNK,
    unseen: Sequence[float] = (),
) -> Evaluation:
    """Sample payoffs and regret with anytime-valid intervals, each at that confidence by itself.

    Stops after `runs` or when the budget is spent, whichever comes first; by default after 1000 runs (50 without the
    kernels). `unseen` has what is added to the upper end of each regret, times the number of runs: losses that a sample
    may have missed.
    """
    check_sampling(runs, confidence, seconds, threads)
    market, parts = drawn.job.market, drawn.parts
    names = [agent.name for agent in market.agents]
    paid = with_sum([payoff_bounds(part.job.market) for part in parts])
    lost = with_sum([regret_bounds(part.job.market) for part in parts])
    ranges = tuple(chain(*((*(one,) * len(names), other) for one, other in zip(paid, lost, strict=True))))
    plan = RunPlan(
        limit=limit_of(runs, seconds, 1),
        seconds=seconds,
        threads=threads,
        chunk=chunk,
        report=progress,
        parallel=parallel,
        largest=largest,
    )
    totals, stopped = drive(partial(_rows, outcomes, drawn), RunTotals.empty(Estimands(ranges)), plan)
    if not totals.runs and stopped == "budget":
        raise nothing_sampled([drawn], seconds)
    numbers = totals.estimates(confidence, f"{totals.runs} runs, seed {drawn.job.seed}", bounds)
    notes: tuple[str, ...] = ()
    if stopped in PARTIAL:
        why = "the budget is spent" if stopped == "budget" else "interrupted"
        notes = (f"{why}: partial result of {totals.runs}{'' if runs is None else f' of {runs}'} runs",)
    if kernels_installed():
        reasons = dict.fromkeys(part.kernel.slow for part in parts)
        notes += tuple(reason for reason in reasons if reason is not None)
    groups, most = in_groups(numbers, len(names) + 1), [*unseen] or [0.0] * len(lost)
    whole, *by_segment = (
        Evaluation(
            dict(zip(names, payoffs, strict=True)),
            regret.raised(more / max(1, totals.runs)),
            "runs",
            (),
            stopped in PARTIAL,
        )
        for (*payoffs, regret), more in zip(groups, most, strict=True)
    )
    return replace(whole, notes=notes, by_segment=dict(zip(market.segments, by_segment, strict=False)))


def _rows(outcomes: ChunkOutcomes, drawn: Runs, first: int, count: int) -> FloatArray:
    """Return one row per run: every payoff, then the regret; of a market with segments, in all and in each."""
    played = [outcomes(part, first, count) for part in drawn.parts]
    return np.column_stack(with_sum([np.column_stack([chunk.payoff, chunk.regret]) for chunk in played]))


def identity(runs: Runs, *more: object) -> str:
    """Return a short name of runs from what they are of; the code of a user's function is not included."""
    job = runs.job
    parts = [market_to_toml(job.market), runs.mechanism.to_dict(), sorted(job.copies.items()), job.seed, job.strata]
    return hashlib.sha256(json.dumps([*parts, more], default=repr).encode()).hexdigest()[:16]


def limit_of(runs: int | None, seconds: float | None, strata: int) -> int | None:
    """Return the largest number of observations, or None without a limit."""
    if runs is None:
        if seconds is not None:
            return None
        runs = RUNS if kernels_installed() else FEW_RUNS
    return -(-runs // strata)


def check_sampling(
    runs: object = None,
    confidence: object = 0.99,
    seconds: object = None,
    threads: object = None,
    progress: object = None,
    bounds: object = "asymptotic",
) -> None:
    """Raise an error for invalid options."""
    known(bounds, get_args(BoundsName), "bounds", EngineError)
    for name, value, most in (("runs", runs, MOST_RUNS), ("threads", threads, MOST_THREADS)):
        if value is not None:
            count(value, name, 1, most, EngineError)
    if seconds is not None:
        number_in(seconds, "seconds", 0, error=EngineError, low_open=True)
    level = real(confidence)
    if level is None or not 0 < level < 1:
        raise EngineError(f"expected a confidence strictly between 0 and 1, got {brief(confidence)}; use e.g. 0.99")
    if progress is not None and not callable(progress):
        raise EngineError(f"expected progress to be a function of the status, got {brief(progress)}; or leave it out")


DeviceName = Literal["auto", "cpu", "gpu"]


class RunSource(NamedTuple):
    """Source of runs: what plays them, whether in parallel, how many at a time, and notes about it."""

    outcomes: ChunkOutcomes
    parallel: bool = True
    largest: int = LARGEST_CHUNK
    notes: tuple[str, ...] = ()

    def ahead(self) -> ChunkOutcomes:
        """Return the outcomes for a race of many worlds; on a GPU, runs are drawn ahead and kept."""
        if self.largest < CARD_CHUNK:
            return self.outcomes
        from cloneproof.runs.gpu.launch import ReadAheadRuns

        return ReadAheadRuns()


def checked_device(device: object) -> DeviceName:
    """Return the device, or raise an error; also if a GPU is requested and there is none."""
    name: DeviceName = known(device, get_args(DeviceName), "device", EngineError)  # type: ignore[assignment]
    if name == "gpu":
        from cloneproof.runs.gpu.launch import require_card

        require_card()
    return name


@contextmanager
def run_source(
    drawn: Sequence[Runs],
    runs: int | None = None,
    device: DeviceName = "cpu",
    threads: int | None = None,
    seconds: float | None = None,
) -> Iterator[RunSource]:
    """Say where to draw these runs: `auto` takes a GPU if it plays all of them and is done sooner than the cores.

    Policies are played in as many processes as there are threads, for so many seconds.
    """
    opens = by_deadline(lambda: drawn[0].kernel.opens)
    if opens is None:
        yield _source(drawn, runs, device)
        return
    with opens(threads, seconds) as outcomes:
        yield RunSource(outcomes, parallel=False)


def _source(drawn: Sequence[Runs], runs: int | None, device: DeviceName) -> RunSource:
    cores = RunSource(kernel_outcomes, notes=() if kernels_installed() else (f"{SLOW}{library.missing()}",))
    if device == "cpu" or (device == "auto" and find_spec("cupy") is None):
        return cores
    from cloneproof.runs.gpu.launch import card, gpu_outcomes, why_no_card
    from cloneproof.runs.gpu.records import card_pays

    listed = [part for each in drawn for part in each.parts]
    reasons = [part.kernel.card for part in listed if isinstance(part.kernel.card, str)]
    if reasons:
        told = f"drawn on the CPU, not on the GPU: {reasons[0]}"
        return cores if device == "auto" else cores._replace(notes=(told,))
    if device == "auto" and (not card_pays(listed, runs, available_threads()) or why_no_card() is not None):
        return cores
    return RunSource(gpu_outcomes, False, CARD_CHUNK, (f"drawn on the GPU ({card().name})",))
