"""Pairs of runs, honest and copied, on the same means, tapes and ties: only what the copies change adds noise."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.black_box_runs import black_box_runs
from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.black_box.lockstep import lockstep_chunk
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.daemon_threads import DaemonThreads
from cloneproof.engines.monte_carlo.devices import DeviceName, run_source
from cloneproof.engines.monte_carlo.driver import (
    LARGEST_CHUNK,
    InlineExecutor,
    RunPlan,
    SamplingStatus,
    StopReason,
    drive,
)
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import (
    ChunkOutcomes,
    J,
    expected_count,
    identity,
    is_precise,
    limit_of,
)
from cloneproof.engines.monte_carlo.statistics.payoff_ranges import gain_bounds, reach_of, served_bounds
from cloneproof.engines.monte_carlo.statistics.run_totals import Estimands, RunTotals
from cloneproof.engines.monte_carlo.statistics.strata import Strata, strata_of
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

PassLength = bool | Literal["short"]  # over the realisations of discrete priors: whole passes, none, or short ones
BOLD = 0.5  # of the stake: gains hug the middle of their range
DIFFERENCE = slice(0, 1)  # the columns: copied minus honest, honest, copied


@dataclass(frozen=True)
class PairedSampling:
    """When to stop drawing pairs, and with what means; the fields are the options of `cloneproof.gain`."""

    runs: int | None = None
    precision: float | None = None
    confidence: float = 0.99
    seed: int = 0
    stratify: PassLength = True
    stop_when_decided: bool = True
    budget_seconds: float | None = None
    threads: int | None = None
    progress: Callable[[SamplingStatus], None] | None = None
    resume: RunTotals | None = None
    outcomes: ChunkOutcomes[Any] | None = None
    chunk: int | None = None
    bounds: BoundsName = "distribution-free"
    device: DeviceName = "cpu"

    @property
    def alpha(self) -> float:
        """The chance that an interval misses."""
        return 1 - self.confidence

    def is_precise(self, totals: RunTotals) -> bool:
        """Whether the gain is known to the precision asked for."""
        return self.precision is not None and is_precise(totals, self.precision, self.alpha, DIFFERENCE, self.bounds)

    def is_enough(self, totals: RunTotals) -> bool:
        """Whether the sign or the precision is reached."""
        width = float(totals.half_widths(self.alpha, self.bounds)[0])
        if self.precision is not None and width <= self.precision:
            return True
        mean = float(totals.means[0])
        return self.stop_when_decided and (mean - width > 0 or mean + width <= 0)


def draw_pairs(
    market: Market,
    mechanism: Mechanism | BlackBox,
    agent: str,
    copies: FullCopies,
    sampling: PairedSampling,
    instead_of: tuple[int, ...] | None = None,
) -> tuple[RunTotals, StopReason, tuple[str, ...]]:
    """The totals of as many pairs as it takes, why it stopped, and where runs were drawn if not on the CPU.

    The columns are gain, honest and copied payoff.

    `instead_of` are the agent's copies in the world that it is compared with, in place of honest ones.
    """
    strata = strata_of(market, short=sampling.stratify == "short") if sampling.stratify else Strata()
    originals = {each.name: each.count for each in market.agents}
    honest = {**copies, agent: (1,) * originals[agent] if instead_of is None else instead_of}
    position = list(originals).index(agent)

    def drive_jobs(
        before: J,
        after: J,
        outcomes: ChunkOutcomes[J],
        executor: Callable[[int], Executor],
        largest: int = LARGEST_CHUNK,
    ) -> tuple[RunTotals, StopReason]:
        served = served_bounds(market, agent)
        bounds = (gain_bounds(market, agent), served, served)
        estimands = Estimands(bounds, strata.weights, identity(after, agent), reach_of(strata.means, agent), BOLD)
        start = RunTotals.empty(estimands) if sampling.resume is None else sampling.resume.check_same(estimands)
        plan = _run_plan(sampling, len(strata.weights), executor, largest)
        return drive(partial(_pair_rows, outcomes, before, after, position), start, plan)

    if isinstance(mechanism, BlackBox):
        sampling = replace(sampling, chunk=sampling.chunk or lockstep_chunk(mechanism))
        boxes = [BlackBoxJob(market, mechanism, world, sampling.seed, strata.means) for world in (honest, copies)]
        if sampling.outcomes is not None:
            return *drive_jobs(boxes[0], boxes[1], sampling.outcomes, InlineExecutor), ()
        with black_box_runs(sampling.threads, sampling.budget_seconds) as outcomes:
            return *drive_jobs(boxes[0], boxes[1], outcomes, InlineExecutor), ()
    jobs = [Job(market, mechanism, world, sampling.seed, strata.means) for world in (honest, copies)]
    if sampling.outcomes is not None:
        return *drive_jobs(jobs[0], jobs[1], sampling.outcomes, DaemonThreads), ()
    source = run_source(sampling.device, jobs, limit_of(sampling.runs, sampling.precision, sampling.budget_seconds, 1))
    return *drive_jobs(jobs[0], jobs[1], source.outcomes, source.executor, source.largest), source.notes


def _run_plan(sampling: PairedSampling, strata: int, executor: Callable[[int], Executor], largest: int) -> RunPlan:
    precision = sampling.precision
    aim = None
    if precision is not None:
        bounds = sampling.bounds
        aim = partial(expected_count, precision=precision, alpha=sampling.alpha, columns=DIFFERENCE, bounds=bounds)
    return RunPlan(
        limit=limit_of(sampling.runs, precision, sampling.budget_seconds, strata),
        enough=sampling.is_enough,
        aim=aim,
        budget_seconds=sampling.budget_seconds,
        threads=sampling.threads,
        chunk=sampling.chunk,
        report=sampling.progress,
        executor=executor,
        largest=largest,
    )


def _pair_rows(outcomes: ChunkOutcomes[J], honest: J, copied: J, agent: int, first: int, count: int) -> FloatArray:
    """One row a run: what the copies changed, and what the agent was served without and with them."""
    before = outcomes(honest, first, count).served[:, agent]
    after = outcomes(copied, first, count).served[:, agent]
    return np.column_stack([after - before, before, after])


def variance_reduction(totals: RunTotals) -> tuple[float | None, float | None]:
    """(independent runs) / (what was done), and / (pairs without strata), by the variances met, per run."""
    if totals.count < 2:
        return None, None
    weights = np.array(totals.estimands.weights)[:, None]
    means, squares = totals.sums / totals.count, totals.squares / totals.count
    inside = squares - means**2
    inside = np.where(inside > 1e-12 * squares, inside, 0.0) * totals.count / (totals.count - 1)  # rounding is no noise
    over_all = (weights * inside).sum(axis=0) + (weights * (means - (weights * means).sum(axis=0)) ** 2).sum(axis=0)
    paired = float(len(weights) * (weights**2 * inside).sum(axis=0)[0])
    independent = float(over_all[1] + over_all[2])
    return _ratio(independent, paired), _ratio(independent, float(over_all[0]))


def _ratio(above: float, below: float) -> float | None:
    if below > 0:
        return above / below
    return float("inf") if above > 0 else None
