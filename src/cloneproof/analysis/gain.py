"""Gain of a deviation, sampled in pairs of runs so that only what the copies change adds noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._checks import one_of, whole
from cloneproof._sections import Result
from cloneproof.analysis.evaluate import black_box_runs, check_mechanism_or_box
from cloneproof.analysis.search import SEARCH, Search
from cloneproof.engines.black_box import BlackBox, BlackBoxJob
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import BoundsName, Estimate
from cloneproof.engines.monte_carlo.job import Job, Strata, strata_of
from cloneproof.engines.monte_carlo.sampler import (
    ChunkOutcomes,
    DeviceName,
    J,
    RunPlan,
    RunSource,
    SamplingStatus,
    StopReason,
    check_sampling,
    drive,
    identity,
    limit_of,
    nothing_sampled,
    run_cost,
    run_source,
)
from cloneproof.engines.monte_carlo.statistics import (
    Bounds,
    Estimands,
    RunTotals,
    in_groups,
    reach_of,
    served_bounds,
    with_sum,
)
from cloneproof.errors import MarketError
from cloneproof.market.market import Copies, FullCopies, Market, checked_market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism

PassLength = bool | Literal["short"]  # over the realisations of discrete priors: whole passes, none, or short ones
BOLD = 0.5  # of the stake: gains hug the middle of their range


@dataclass(frozen=True)
class PairedSampling:
    """Options of `cloneproof.gain`; for stores that already have runs, where they are and how many at a time."""

    runs: int | None = None
    confidence: float = 0.99
    seed: int = 0
    stratify: PassLength = True
    stop_when_decided: bool = True
    seconds: float | None = None
    threads: int | None = None
    progress: Callable[[SamplingStatus], None] | None = None
    resume: RunTotals | None = None
    outcomes: ChunkOutcomes[Any] | None = None
    chunk: int | None = None
    bounds: BoundsName = "distribution-free"
    device: DeviceName = "cpu"

    def is_decided(self, totals: RunTotals) -> bool:
        """Return whether the sign of the gain is known."""
        width, mean = float(totals.half_widths(1 - self.confidence, self.bounds)[0]), float(totals.means[0])
        return mean - width > 0 or mean + width <= 0


def _job(market: Market, mechanism: Mechanism | BlackBox, *world: Any) -> Any:  # noqa: ANN401 (two kinds of jobs)
    return (
        BlackBoxJob(market, mechanism, *world)
        if isinstance(mechanism, BlackBox)
        else Job(market, mechanism, *world)
    )  # fmt: skip


def draw_pairs(
    market: Market,
    mechanism: Mechanism | BlackBox,
    agent: str,
    copies: FullCopies,
    sampling: PairedSampling,
    instead_of: tuple[int, ...] | None = None,
) -> tuple[RunTotals, StopReason, tuple[str, ...]]:
    """Return totals of as many pairs as needed, why it stopped, and where runs were drawn if not on the CPU.

    The columns are gain, honest and copied payoff. `instead_of` replaces the agent's honest copies in the comparison.
    """
    strata = strata_of(market, short=sampling.stratify == "short") if sampling.stratify else Strata()
    originals = {each.name: each.count for each in market.agents}
    honest = {**copies, agent: (1,) * originals[agent] if instead_of is None else instead_of}
    jobs = [_job(market, mechanism, world, sampling.seed, strata.means) for world in (honest, copies)]
    served = with_sum([served_bounds(part.market, agent) for part in jobs[0].parts])
    bounds = tuple(chain(*((Bounds(-each.high, each.high), each, each) for each in served)))
    estimands = Estimands(bounds, strata.weights, identity(jobs[1], agent), reach_of(strata.means, agent), BOLD)
    start = RunTotals.empty(estimands) if sampling.resume is None else sampling.resume.check_same(estimands)
    with _source(jobs, sampling) as source:
        rows = partial(_pair_rows, source.outcomes, jobs[0], jobs[1], list(originals).index(agent))
        plan = RunPlan(
            limit=limit_of(sampling.runs, sampling.seconds, len(strata.weights)),
            decided=sampling.is_decided if sampling.stop_when_decided else None,
            seconds=sampling.seconds,
            threads=sampling.threads,
            chunk=sampling.chunk,
            report=sampling.progress,
            parallel=source.parallel,
            largest=source.largest,
            cost=sum(map(run_cost, jobs)),
        )
        return *drive(rows, start, plan), source.notes


@contextmanager
def _source(jobs: Sequence[Any], sampling: PairedSampling) -> Iterator[RunSource]:
    """Yield the source of runs: a store that has them, processes for a black box, or the kernels."""
    box = isinstance(jobs[0], BlackBoxJob)
    if sampling.outcomes is not None:
        yield RunSource(sampling.outcomes, parallel=not box)
    elif box:
        with black_box_runs(sampling.threads, sampling.seconds) as outcomes:
            yield RunSource(outcomes, parallel=False)  # type: ignore[arg-type]
    else:
        yield run_source(sampling.device, jobs, limit_of(sampling.runs, sampling.seconds, 1))


def _pair_rows(outcomes: ChunkOutcomes[J], honest: J, copied: J, agent: int, first: int, count: int) -> FloatArray:
    """One row per run: what the copies changed, and the agent's rewards without and with them; by segment as well."""
    before, after = ([outcomes(part, first, count).served[:, agent] for part in job.parts] for job in (honest, copied))
    sums = zip(with_sum(before), with_sum(after), strict=True)
    return np.column_stack([column for old, new in sums for column in (new - old, old, new)])


GainDecision = Literal["pays", "does not pay", "undecided"]


@dataclass(frozen=True, repr=False)
class Gain(Result):
    """Gain of a deviation: its payoff minus that of honest registration. The result of `cp.gain`.

    Attributes
    ----------
    agent : str
        Who deviates.
    copies : dict of str to tuple of int
        What everybody registers.
    estimate, honest, copied : Estimate
        The gain, the honest payoff and the payoff with the copies. Each holds at `confidence` by itself, whenever the
        sampling stopped.
    confidence : float
        The probability with which each interval holds.
    runs : int
        How many pairs of runs were drawn.
    stopped : {"decided", "runs", "budget", "interrupted"}
        Why the sampling ended.
    progress : RunTotals
        The sums of all pairs.
    by_segment : dict of str to Estimate
        The gain in each segment, each at `confidence` by itself; empty in a market without segments.
    """

    keys_of_data = (
        "agent", "copies", "gain=estimate", "honest", "copied", "decided", "confidence", "runs", "stopped",
        "partial", "by_segment?",
    )  # fmt: skip

    said_in = "answers"
    agent: str
    copies: FullCopies
    estimate: Estimate
    honest: Estimate
    copied: Estimate
    confidence: float
    runs: int
    stopped: StopReason
    progress: RunTotals
    by_segment: dict[str, Estimate] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Gain(agent={self.agent!r}, copies={self.copies[self.agent]}, gain={self.estimate.value:.6g} "
            f"± {self.estimate.error:.2g} at {self.confidence:.4g}, {self.decided}, runs={self.runs})"
        )

    @property
    def decided(self) -> GainDecision:
        """Whether it pays, in words."""
        if self.estimate.low > 0:
            return "pays"
        return "does not pay" if self.estimate.high <= 0 else "undecided"

    @property
    def partial(self) -> bool:
        """Whether it stopped before reaching what was asked for."""
        return self.stopped in ("budget", "interrupted")


def gain(
    market: Market,
    mechanism: Mechanism | BlackBox,
    agent: str,
    copies: Sequence[int] | Copies,
    *,
    confidence: float = 0.99,
    stratify: PassLength = True,
    stop_when_decided: bool = True,
    threads: int | None = None,
    search: Search = SEARCH,
    progress: Callable[[SamplingStatus], None] | None = None,
) -> Gain:
    """Estimate what an agent gains by registering these copies, sampled in pairs of runs.

    Both worlds, honest and copied, use the same random numbers, so that only what the copies change adds noise.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism or BlackBox
        The platform's algorithm.
    agent : str
        Who deviates.
    copies : sequence of int, or mapping of str to sequence of int
        The agent's copies; or a mapping in which the copies of others are fixed as well.
    confidence : float, default 0.99
        The probability with which each interval holds, whenever the sampling stopped.
    stratify : bool or "short", default True
        Sample a market of at most 256 realisations of its discrete priors in passes over all of them. In a short pass
        each is drawn once, however likely: for a first look with few pairs.
    stop_when_decided : bool, default True
        Stop as soon as the sign of the gain is decided.
    threads : int, optional
        How many threads; the bits do not depend on them.
    search : Search, optional
        The most pairs of runs (1000 without another limit), the seed, the time, the bounds, the device.
    progress : callable, optional
        Called with the status of the sampling.

    Returns
    -------
    Gain
        With `estimate`, and `decided`: "pays", "does not pay" or "undecided".

    Raises
    ------
    CloneproofError
        If an argument is invalid, or no pair of runs ended in time.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, gain, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7, rewards="deterministic")
    >>> found = gain(market, mechanism("ucb1"), "ana", (2, 1))
    >>> found.decided, found.runs < 1000
    ('pays', True)
    """
    checked_market(market)
    check_sampling(confidence=confidence, threads=threads, progress=progress)
    check_mechanism_or_box(mechanism)
    one_of(agent, [each.name for each in market.agents], "agent", MarketError)
    full = full_copies(market.agents, copies if isinstance(copies, Mapping) else {agent: copies})
    sampling = PairedSampling(
        search.runs, confidence, search.seed, stratify, stop_when_decided, search.seconds, whole(threads),
        progress, bounds=search.bounds, device=search.device,
    )  # fmt: skip
    found = sampled_gain(market, mechanism, agent, full, sampling)
    if found.runs:
        return found
    if found.stopped == "interrupted":
        raise KeyboardInterrupt  # before there was anything to tell
    honest = full | {agent: (1,) * len(full[agent])}
    raise nothing_sampled([_job(market, mechanism, world) for world in (honest, full)], Deadline(search.seconds))


def sampled_gain(
    market: Market, mechanism: Mechanism | BlackBox, agent: str, copies: FullCopies, sampling: PairedSampling
) -> Gain:
    """`gain` for full copies and options that are already checked."""
    totals, stopped, notes = draw_pairs(market, mechanism, agent, copies, sampling)
    method = f"{totals.runs} pairs of runs with common random numbers, seed {sampling.seed}"
    if len(totals.estimands.weights) > 1:
        method += f", {len(totals.estimands.weights)} strata"
    method = ", ".join([method, *notes])
    (change, honest, copied), *parts = in_groups(totals.estimates(sampling.confidence, method, sampling.bounds), 3)
    by_segment = dict(zip(market.segments, (gain for gain, *_ in parts), strict=True)) if parts else {}
    numbers = (sampling.confidence, totals.runs, stopped, totals)
    return Gain(agent, copies, change, honest, copied, *numbers, by_segment)
