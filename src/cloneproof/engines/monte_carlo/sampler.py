"""Sampling a job: every agent's payoff and the regret, to a number of runs, a precision or a budget."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._checks import count, known, number_in, real
from cloneproof.engines.estimate import BoundsName, Evaluation
from cloneproof.engines.monte_carlo.driver import (
    LARGEST_CHUNK,
    DaemonThreads,
    InlineExecutor,
    RunPlan,
    SamplingStatus,
    StopReason,
    available_threads,
    drive,
    first_chunk,
)
from cloneproof.engines.monte_carlo.job import Job, Outcomes, SamplingJob, reference_outcomes
from cloneproof.engines.monte_carlo.statistics import Estimands, RunTotals, payoff_bounds, regret_bounds
from cloneproof.errors import EngineError, brief
from cloneproof.market.toml import market_to_toml

J = TypeVar("J", bound=SamplingJob[Any])
ChunkOutcomes = Callable[[J, int, int], Outcomes]  # of a job, (first run, count)

FREE: Final[BoundsName] = "distribution-free"
RUNS, FEW_RUNS = 1000, 50  # where nothing says when to stop: with kernels, and without
SLOW: Final = "sampled in plain Python: pip install 'cloneproof[fast]' makes it about a thousand times faster"
MOST_RUNS, MOST_THREADS = 10**12, 4096
PARTIAL: tuple[StopReason, ...] = ("budget", "interrupted")


@dataclass(frozen=True)
class SamplingResult:
    """The result of sampling.

    `stopped` says why: "enough" (the precision is reached), "runs", "budget" or "interrupted". The last two are
    partial; sampling that resumes with `totals` gives the same bits as if it had not stopped.
    """

    evaluation: Evaluation
    totals: RunTotals
    stopped: StopReason

    @property
    def runs(self) -> int:
        return self.totals.runs

    @property
    def partial(self) -> bool:
        """Whether it stopped before reaching what was asked for."""
        return self.stopped in PARTIAL


def kernels_installed() -> bool:
    """Whether the compiler of the kernels is installed: the extra `fast`."""
    return find_spec("numba") is not None


def kernel_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """The outcomes by the fastest kernel; the compiler is loaded when first needed.

    Without the compiler the reference simulator plays the runs: the same law, far slower.
    """
    if not kernels_installed():
        return reference_outcomes(job, first, count)
    from cloneproof.engines.monte_carlo.outcomes import outcomes

    return outcomes(job, first, count)


def sample(
    job: J,
    runs: int | None = None,
    precision: float | None = None,
    confidence: float = 0.99,
    budget_seconds: float | None = None,
    threads: int | None = None,
    progress: Callable[[SamplingStatus], None] | None = None,
    *,
    outcomes: ChunkOutcomes[J],
    executor: Callable[[int], Executor] = DaemonThreads,
    weights: Sequence[float] = (),
    resume: RunTotals | None = None,
    chunk: int | None = None,
    bounds: BoundsName = FREE,
    largest: int = LARGEST_CHUNK,
) -> SamplingResult:
    """Payoffs and regret with anytime-valid intervals, each at that confidence by itself.

    Stops after `runs`, when every half-width is at most `precision` (absolute, in the unit of the payoffs: share times
    rewards over the whole horizon), or when the budget is spent, whichever comes first; by default after 1000 runs (50
    without the kernels). With strata, `runs` is rounded up to whole passes over them.
    """
    check_sampling(runs, precision, confidence, budget_seconds, threads)
    weights = tuple(weights) if job.strata else (1.0,)
    if len(weights) != max(1, len(job.strata)):
        raise EngineError(f"expected {len(job.strata)} weights, one for each stratum, got {len(weights)}; list them")
    ranges = (payoff_bounds(job.market),) * len(job.market.agents) + (regret_bounds(job.market),)
    estimands = Estimands(ranges, weights, identity(job))
    enough = aim = None
    if precision is not None:
        enough = partial(is_precise, precision=precision, alpha=1 - confidence, bounds=bounds)
        aim = partial(expected_count, precision=precision, alpha=1 - confidence, bounds=bounds)
    start = RunTotals.empty(estimands) if resume is None else resume.check_same(estimands)
    plan = RunPlan(
        limit=limit_of(runs, precision, budget_seconds, len(weights)),
        enough=enough,
        aim=aim,
        budget_seconds=budget_seconds,
        threads=threads,
        chunk=chunk,
        report=progress,
        executor=executor,
        largest=largest,
    )
    totals, stopped = drive(partial(_rows, outcomes, job), start, plan)
    *payoffs, regret = totals.estimates(confidence, f"{totals.runs} runs, seed {job.seed}", bounds)
    names = [agent.name for agent in job.market.agents]
    notes = shortfalls(totals, stopped, runs, precision, confidence, bounds)
    if isinstance(job, Job) and kernels_installed():  # a black box is slow by itself
        from cloneproof.engines.monte_carlo.outcomes import slow_reason

        reason = slow_reason(job)
        notes += () if reason is None else (reason,)
    evaluation = Evaluation(dict(zip(names, payoffs, strict=True)), regret, "monte-carlo", notes, stopped in PARTIAL)
    return SamplingResult(evaluation, totals, stopped)


def _rows(outcomes: ChunkOutcomes[J], job: J, first: int, count: int) -> FloatArray:
    """One row per run: every payoff, then the regret."""
    played = outcomes(job, first, count)
    return np.column_stack([played.payoff, played.regret])


def identity(job: SamplingJob[Any], *more: object) -> str:
    """A short name of a job from its parts; the code of a user's function is not included."""
    to_dict = getattr(job.mechanism, "to_dict", None)  # a black box has none
    mechanism = to_dict() if to_dict is not None else type(job.mechanism).__name__
    parts = [market_to_toml(job.market), mechanism, sorted(job.copies.items()), job.seed, job.strata, more]
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()[:16]


def limit_of(runs: int | None, precision: float | None, budget_seconds: float | None, strata: int) -> int | None:
    """The most observations, if there is a limit."""
    if runs is None:
        if precision is not None or budget_seconds is not None:
            return None
        runs = RUNS if kernels_installed() else FEW_RUNS
    return -(-runs // strata)


def is_precise(
    totals: RunTotals, precision: float, alpha: float, columns: slice = slice(None), bounds: BoundsName = FREE
) -> bool:
    """Whether every half-width is at most the precision."""
    return bool((totals.half_widths(alpha, bounds)[columns] <= precision).all())


def expected_count(
    totals: RunTotals, precision: float, alpha: float, columns: slice = slice(None), bounds: BoundsName = FREE
) -> int | None:
    """A guess of the observations for a precision, for progress bars: widths fall like the square root."""
    widest = float(totals.half_widths(alpha, bounds)[columns].max())
    return max(totals.count, math.ceil(totals.count * (widest / precision) ** 2))


def shortfalls(
    totals: RunTotals,
    stopped: StopReason,
    runs: int | None,
    precision: float | None,
    confidence: float,
    bounds: BoundsName = FREE,
) -> tuple[str, ...]:
    """What was asked for and not reached, in words."""
    notes = []
    if stopped in PARTIAL:
        why = "the budget is spent" if stopped == "budget" else "interrupted"
        notes.append(f"{why}: partial result of {totals.runs}{'' if runs is None else f' of {runs}'} runs")
    if precision is not None and stopped != "enough":
        widest = float(totals.half_widths(1 - confidence, bounds).max())
        if widest > precision:
            notes.append(
                f"precision {precision:g} undecided: the widest half-width is {widest:.3g} after {totals.runs} runs"
            )
    return tuple(notes)


def check_sampling(
    runs: object = None,
    precision: object = None,
    confidence: object = 0.99,
    budget_seconds: object = None,
    threads: object = None,
    progress: object = None,
    bounds: object = "distribution-free",
) -> None:
    """Raise an error for invalid options."""
    known(bounds, get_args(BoundsName), "bounds", EngineError)
    for name, value, most in (("runs", runs, MOST_RUNS), ("threads", threads, MOST_THREADS)):
        if value is not None:
            count(value, name, 1, most, EngineError)
    for name, value in (("precision", precision), ("budget_seconds", budget_seconds)):
        if value is not None:
            number_in(value, name, 0, error=EngineError, low_open=True)
    level = real(confidence)
    if level is None or not 0 < level < 1:
        raise EngineError(f"expected a confidence strictly between 0 and 1, got {brief(confidence)}; use e.g. 0.99")
    if progress is not None and not callable(progress):
        raise EngineError(f"expected progress to be a function of the status, got {brief(progress)}; or leave it out")


DeviceName = Literal["auto", "cpu", "gpu"]

CARD_CHUNK: Final = 1 << 18  # runs of a launch


class RunSource(NamedTuple):
    """What plays the runs of a job, on what threads, at most how many at a time; and what the notes say."""

    outcomes: ChunkOutcomes[Job]
    executor: Callable[[int], Executor]
    largest: int
    notes: tuple[str, ...]

    @property
    def first_step(self) -> int:
        """The number of first runs: one, or on a GPU as many as take no longer."""
        return first_chunk(self.largest)

    def ahead(self) -> ChunkOutcomes[Job]:
        """The outcomes for a race of many jobs; on a GPU, runs are drawn ahead and kept."""
        if self.outcomes is kernel_outcomes:
            return kernel_outcomes
        from cloneproof.engines.monte_carlo.gpu.launch import ReadAheadRuns

        return ReadAheadRuns()


def checked_device(device: object) -> DeviceName:
    """Return the device, or raise an error; also if a GPU is requested and there is none."""
    name = checked_device_name(device)
    if name == "gpu" and not kernels_installed():
        raise EngineError("expected a GPU for device 'gpu', got no compiler; pip install 'cloneproof[gpu]'")
    if name == "gpu":
        from cloneproof.engines.monte_carlo.gpu.launch import INSTALL, why_no_card

        reason = why_no_card()
        if reason is not None:
            raise EngineError(f"expected a GPU for device 'gpu', got none: {reason}; {INSTALL}")
    return name


def checked_device_name(device: object) -> DeviceName:
    """Return the name of a device here or elsewhere, or raise an error."""
    return known(device, get_args(DeviceName), "device", EngineError)  # type: ignore[return-value]


def run_source(device: DeviceName, jobs: Iterable[Job], runs: int | None) -> RunSource:
    """Where to draw these jobs: `auto` takes a GPU if it plays all of them and is done sooner than the cores.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> job = Job(Market([Agent("ana", 1, Point(0.5))], horizon=9), mechanism("ucb1"), {"ana": (1,)})
    >>> run_source("cpu", [job], 1000).notes
    ()
    """
    cores = RunSource(kernel_outcomes, DaemonThreads, LARGEST_CHUNK, () if kernels_installed() else (SLOW,))
    if device == "cpu" or (device == "auto" and find_spec("cupy") is None) or not kernels_installed():
        return cores
    listed = list(jobs)
    from cloneproof.engines.monte_carlo.gpu.kernels import card_pays, refusal
    from cloneproof.engines.monte_carlo.gpu.launch import card, gpu_outcomes, why_no_card

    reasons = [reason for reason in map(refusal, listed) if reason is not None]
    if reasons:
        told = f"drawn on the CPU, not on the GPU: {reasons[0]}"
        return cores if device == "auto" else cores._replace(notes=(told,))
    if device == "auto" and (not card_pays(listed, runs, available_threads()) or why_no_card() is not None):
        return cores
    return RunSource(gpu_outcomes, InlineExecutor, CARD_CHUNK, (f"drawn on the GPU ({card().name})",))
