"""Gain of a deviation: what it pays minus what honesty pays, by an exact engine or from pairs of runs.

`exact_payoffs` is what an agent is paid for a deviation, and `compared` the difference to honesty. `sampled_gain` draws
pairs of runs on the same random numbers, so that only what the deviation changes adds noise. `sample_worlds` does so
for several worlds at once, whose lists may be chosen with the means in hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof._lib.checks import one_of, whole
from cloneproof._lib.data import Data
from cloneproof._lib.sections import Result
from cloneproof.audits.deviations import CopiesOf, Deviation, World, honesty
from cloneproof.errors import MarketError, OutOfTimeError
from cloneproof.evaluation.evaluate import (
    ExactEngine,
    exact_evaluations,
)
from cloneproof.evaluation.reference import runs_of
from cloneproof.evaluation.search import SEARCH, Search
from cloneproof.market.market import Copies, FullCopies, Market, checked_market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.segments import plays
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import BoundsName, Estimate, Evaluation, weighted_sum
from cloneproof.runs.job import Job, Strata, strata_of
from cloneproof.runs.kernel import ChunkOutcomes, Outcomes, Runs
from cloneproof.runs.sampler import (
    DeviceName,
    RunPlan,
    RunSource,
    SamplingStatus,
    StopReason,
    check_sampling,
    drive,
    identity,
    kernel_outcomes,
    limit_of,
    nothing_sampled,
    run_source,
)
from cloneproof.runs.statistics import (
    TIGHTEST,
    TIGHTEST_OF_SLOW,
    Bounds,
    Estimands,
    RunTotals,
    in_groups,
    likely_part,
    reach_of,
    served_bounds,
    with_sum,
)
from cloneproof.runs.tapes import means_of_runs, run_streams, uniforms, words

PassLength = bool | Literal["short"]  # over the realisations of discrete priors: whole passes, none, or short ones
BOLD = 0.5  # of the stake: gains hug the middle of their range
CONFIDENCE = 0.99  # of what is sampled in several worlds
LISTS_STREAM = 3  # of a run's random numbers, after those of its means, tapes and session (`engines.reference`)


class Payoff(NamedTuple):
    """What an agent is paid, and how much of it in each segment of the market."""

    total: Estimate
    by_segment: Mapping[str, Estimate] = {}


@dataclass(frozen=True)
class Finding(Data):
    """What was found of a deviation; each kind of deviation adds what it was (`audit.result`).

    Attributes
    ----------
    honest, copied, gain : Estimate
        The payoff of honest registration, that of the deviation, and the difference.
    by_segment : dict of str to Finding
        The same in each segment of the market, if it was computed there.
    """

    honest: Estimate
    copied: Estimate
    gain: Estimate
    by_segment: Mapping[str, Finding] = field(default_factory=dict, kw_only=True)

    @property
    def numbers(self) -> tuple[Estimate, Estimate, Estimate]:
        """Both payoffs and the gain."""
        return self.honest, self.copied, self.gain

    @property
    def relative_gain(self) -> float:
        """Gain as a part of the honest payoff (infinite if that is zero)."""
        if self.honest.value > 0:
            return self.gain.value / self.honest.value
        return math.inf if self.gain.value > 0 else 0.0


def compared(honest: Payoff, paid: Payoff) -> Finding:
    """Return what a deviation gains, in all and in each segment."""
    parts = {name: compared(Payoff(own), Payoff(paid.by_segment[name])) for name, own in honest.by_segment.items()}
    return Finding(honest.total, paid.total, paid.total - honest.total, by_segment=parts)


def payoff_of(evaluation: Evaluation, agent: str) -> Payoff:
    """Return what an agent is paid in an evaluation."""
    return Payoff(evaluation.payoff[agent], {name: own.payoff[agent] for name, own in evaluation.by_segment.items()})


MarketUnder = tuple[Market, Mechanism]  # a market under a mechanism


def exact_payoffs(
    markets: Sequence[MarketUnder],
    deviation: Deviation,
    engine: ExactEngine = "auto",
) -> dict[int, Payoff]:
    """Return what the agent is paid for a deviation in one market at several horizons, by horizon.

    Several accounts are paid together, and worlds count as often as they are likely. Horizons share a pass of the tree.
    """
    if markets[0][0].segments and not isinstance(deviation, CopiesOf):
        return {market.horizon: _summed_payoff(market, mechanism, deviation, engine) for market, mechanism in markets}
    paid: dict[int, list[tuple[float, Estimate]]] = {market.horizon: [] for market, _ in markets}
    by_segment: dict[int, Mapping[str, Estimate]] = {}
    for worlds in zip(*(deviation.worlds(market) for market, _ in markets), strict=True):
        at_horizons = [(world.market, mechanism) for world, (_, mechanism) in zip(worlds, markets, strict=True)]
        evaluations, _ = exact_evaluations(at_horizons, worlds[0].copies, engine)
        for horizon, evaluation in evaluations.items():
            paid[horizon] += [(worlds[0].chance, evaluation.payoff[account]) for account in deviation.accounts]
            by_segment[horizon] = payoff_of(evaluation, deviation.agent).by_segment
    return {
        horizon: Payoff(parts[0][1] if len(parts) == 1 else weighted_sum(parts), by_segment[horizon])
        for horizon, parts in paid.items()
    }


def _summed_payoff(market: Market, mechanism: Mechanism, deviation: Deviation, engine: ExactEngine) -> Payoff:
    """Add up what is paid in the segments, each of which has its own realisations."""
    by_segment = {
        play.segment: exact_payoffs([(play.market, play.mechanism)], deviation, engine)[play.market.horizon].total
        for play in plays(market, mechanism)
    }
    return Payoff(weighted_sum([(1.0, own) for own in by_segment.values()]), by_segment)


def exact_gain(
    market: Market,
    mechanism: Mechanism,
    deviation: Deviation,
    engine: ExactEngine = "auto",
    *,
    against: Deviation | None = None,
) -> Finding:
    """Return what a deviation gains over honest registration, or over another deviation, by an exact engine."""
    honest, paid = (
        exact_payoffs([(market, mechanism)], registered, engine)[market.horizon]
        for registered in (against or honesty(market, deviation.agent), deviation)
    )
    return compared(honest, paid)


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
    outcomes: ChunkOutcomes | None = None
    chunk: int | None = None
    bounds: BoundsName = "asymptotic"
    device: DeviceName = "cpu"

    def is_decided(self, totals: RunTotals) -> bool:
        """Return whether the sign of the gain is known."""
        width, mean = float(totals.half_widths(1 - self.confidence, self.bounds)[0]), float(totals.means[0])
        return mean - width > 0 or mean + width <= 0


@contextmanager
def source_of_runs(drawn: Sequence[Runs], sampling: PairedSampling) -> Iterator[RunSource]:
    """Yield the source of runs: a store that has them, or what `run_source` says."""
    if sampling.outcomes is not None:
        yield RunSource(sampling.outcomes, parallel=drawn[0].kernel.opens is None)
        return
    limit = limit_of(sampling.runs, sampling.seconds, 1)
    with run_source(drawn, limit, sampling.device, sampling.threads, sampling.seconds) as source:
        yield source


def _pair_rows(outcomes: ChunkOutcomes, honest: Runs, copied: Runs, agent: int, first: int, count: int) -> FloatArray:
    """One row per run: what the copies changed, and the agent's rewards without and with them; by segment as well."""
    worlds = honest, copied
    before, after = ([outcomes(part, first, count).served[:, agent] for part in runs.parts] for runs in worlds)
    sums = zip(with_sum(before), with_sum(after), strict=True)
    return np.column_stack([column for old, new in sums for column in gain_columns(old, new)])


def gain_columns(honest: FloatArray, paid: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what each run gained, its honest payoff and what it paid."""
    return paid - honest, honest, paid


def world_rows(
    market: Market,
    mechanism: Mechanism,
    worlds: Sequence[World],
    observe: Callable[[FloatArray, FloatArray, Sequence[Outcomes]], FloatArray],
    seed: int,
) -> Callable[[int, int], FloatArray]:
    """Return the function that plays some runs of all worlds and observes them."""
    drawn, numbers = Job(market, {}, seed), max(world.numbers for world in worlds)

    def rows(first: int, count: int) -> FloatArray:
        means = means_of_runs(drawn, first, count)
        streams = words(run_streams(seed, first, count), LISTS_STREAM)
        levels = np.array([uniforms(streams, number) for number in range(numbers)]).reshape(numbers, count).T
        played = []
        for world in worlds:
            own = np.roll(world.means(means, levels), first % count, axis=0)  # run r takes row r modulo their number
            ends = np.cumsum([agent.count for agent in world.market.agents])[:-1]
            parts = [block.tolist() for block in np.split(own, ends, axis=1)]
            names = [agent.name for agent in world.market.agents]
            strata = tuple(dict(zip(names, map(tuple, run), strict=True)) for run in zip(*parts, strict=True))
            played.append(kernel_outcomes(runs_of(world.market, mechanism, world.copies, seed, strata), first, count))
        return observe(means, levels, played)

    return rows


def sample_worlds(
    market: Market,
    mechanism: Mechanism,
    worlds: Sequence[World],
    observe: Callable[[FloatArray, FloatArray, Sequence[Outcomes]], FloatArray],
    bounds: Sequence[Bounds],
    search: Search,
    clock: Deadline,
) -> list[Estimate]:
    """Return the means of the columns that `observe` makes of drawn means, uniform numbers and each world's outcomes.

    Every world of a run has the same draws, so that only the lists differ. Intervals are asymptotic, at 99 % each: no
    verdict rests on them.
    """
    rows = world_rows(market, mechanism, worlds, observe, search.seed)
    plan = RunPlan(
        limit=limit_of(search.runs, None, 1),
        seconds=clock.left,
    )
    totals, _ = drive(rows, RunTotals.empty(Estimands(tuple(bounds))), plan)
    if not totals.count:
        raise OutOfTimeError("time was over before a run ended", "give more seconds")
    return totals.estimates(
        CONFIDENCE, f"{totals.runs} worlds with common random numbers, seed {search.seed}", "asymptotic"
    )


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
    def finding(self) -> Finding:
        """Both payoffs and the gain."""
        return Finding(self.honest, self.copied, self.estimate)

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
    mechanism: Mechanism,
    agent: str,
    copies: Sequence[int] | Copies,
    *,
    confidence: float = 0.99,
    stratify: PassLength = True,
    stop_when_decided: bool = True,
    threads: int | None = None,
    search: Search = SEARCH,
    seconds: float | None = None,
    progress: Callable[[SamplingStatus], None] | None = None,
) -> Gain:
    """Estimate what an agent gains by registering these copies, sampled in pairs of runs.

    Both worlds, honest and copied, use the same random numbers, so that only what the copies change adds noise.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism
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
    search, seconds : Search or float, optional
        The most pairs of runs (1000 without another limit), the seed, the time (`seconds` alone, too), the bounds, the
        device.
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
    checked_mechanism(mechanism)
    one_of(agent, [other.name for other in market.agents], "agent", MarketError)
    full = full_copies(market.agents, copies if isinstance(copies, Mapping) else {agent: copies})
    search = search.within(seconds)
    sampling = PairedSampling(
        search.runs, confidence, search.seed, stratify, stop_when_decided, search.seconds, whole(threads),
        progress, bounds=search.bounds, device=search.device,
    )  # fmt: skip
    drawn = sampled_gain(market, mechanism, CopiesOf(agent, full[agent], full), sampling)
    if drawn.runs:
        return drawn
    if drawn.stopped == "interrupted":
        raise KeyboardInterrupt  # before there was anything to tell
    honest = full | {agent: (1,) * len(full[agent])}
    raise nothing_sampled([runs_of(market, mechanism, world) for world in (honest, full)], search.seconds)


def sampled_gain(
    market: Market,
    mechanism: Mechanism,
    deviation: CopiesOf,
    sampling: PairedSampling,
    against: tuple[int, ...] | None = None,
) -> Gain:
    """`gain` for a deviation and options that are already checked; `against` replaces honest copies.

    Pairs are drawn until there are enough. Their columns are gain, honest and copied payoff, in all and by segment.
    """
    agent, names = deviation.agent, [other.name for other in market.agents]
    strata = strata_of(market, short=sampling.stratify == "short") if sampling.stratify else Strata()
    own = honesty(market, agent).copies if against is None else against
    honest = replace(deviation, copies=own)
    worlds = [
        runs_of(market, mechanism, registered.sampled(market).copies, sampling.seed, strata.means)
        for registered in (honest, deviation)
    ]
    served = with_sum([served_bounds(part.job.market, agent) for part in worlds[0].parts])
    bounds = tuple(chain(*((Bounds(-most.high, most.high), most, most) for most in served)))
    likely = max(likely_part(part.job.market, agent) for part in worlds[0].parts)
    drawn = identity(worlds[1], agent)
    tightest = TIGHTEST if worlds[0].kernel.opens is None else TIGHTEST_OF_SLOW
    estimands = Estimands(bounds, strata.weights, drawn, reach_of(strata.means, agent), BOLD, likely, tightest)
    start = RunTotals.empty(estimands) if sampling.resume is None else sampling.resume.check_same(estimands)
    with source_of_runs(worlds, sampling) as source:
        rows = partial(_pair_rows, source.outcomes, worlds[0], worlds[1], names.index(agent))
        plan = RunPlan(
            limit=limit_of(sampling.runs, sampling.seconds, len(strata.weights)),
            decided=sampling.is_decided if sampling.stop_when_decided else None,
            seconds=sampling.seconds,
            threads=sampling.threads,
            chunk=sampling.chunk,
            report=sampling.progress,
            parallel=source.parallel,
            largest=source.largest,
        )
        totals, stopped = drive(rows, start, plan)
    method = f"{totals.runs} pairs of runs with common random numbers, seed {sampling.seed}"
    if len(totals.estimands.weights) > 1:
        method += f", {len(totals.estimands.weights)} strata"
    method = ", ".join([method, *source.notes])
    (change, before, after), *parts = in_groups(totals.estimates(sampling.confidence, method, sampling.bounds), 3)
    by_segment = dict(zip(market.segments, (gain for gain, *_ in parts), strict=True)) if parts else {}
    numbers = (sampling.confidence, totals.runs, stopped, totals)
    return Gain(agent, deviation.sampled(market).copies, change, before, after, *numbers, by_segment)
