"""Costs and gains, drawn until they are precise enough to be read.

Both look at what was drawn after 64, 128, .. runs, and stop where half of the interval is small enough:

1. *A cost*: at most the larger of a tenth of it and a part of what perfect knowledge earns, after at most 4,096 runs.
   A mechanism that abandons items loses much in rare runs, which a sample may not hold, and no rule that looks at the
   sample alone can know. In n runs an event of probability ln(100) / n is missed with probability 1 %, and it costs at
   most M, what perfect knowledge earns less what showing a random item throughout does. So the interval is Student's,
   with ln(100) M / n more on the upper side; over all laws on two points it holds at least 99.2 % of the time. A
   mechanism that never abandons an item has no such runs, and its interval is an asymptotic confidence sequence.
2. *A gain* comes from pairs of runs with common random numbers: at most the larger of a tenth of honest pay and a third
   of the gain, after at most 1,024 pairs, as an asymptotic confidence sequence.

What is not precise by then shows the interval that there is. Samples decide, not time: one seed, one answer. Intervals
hold at `LEVEL`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import scipy

from cloneproof._lib.arrays import FloatArray
from cloneproof.evaluation.reference import runs_of
from cloneproof.laws.best import best_round, places_taken
from cloneproof.market.market import Copies, Market, full_copies
from cloneproof.mechanisms.facts import Setting
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate
from cloneproof.runs.kernel import ChunkOutcomes, Runs
from cloneproof.runs.sampler import ObserveRuns, RunPlan, drive, kernel_outcomes
from cloneproof.runs.statistics import (
    FIRST_TIME,
    Bounds,
    Estimands,
    RunTotals,
    asymptotic_widths,
    likely_part,
    regret_bounds,
    served_bounds,
    with_sum,
)

LEVEL = 0.99
MOST_RUNS, MOST_PAIRS = 4096, 1024
TENTH, THIRD = 0.1, 1 / 3
OF_BEST, OF_BEST_ABANDONING = 5e-4, 5e-3  # of what perfect knowledge earns: half of an interval that is precise


class Stakes(NamedTuple):
    """What there is to lose in a market, in all of its rounds."""

    best: float
    """What perfect knowledge earns."""
    random: float
    """What showing a random item throughout earns; on pages, a random item of random agents."""

    @property
    def most_lost(self) -> float:
        """What a run that goes on with a random item loses, on average."""
        return max(0.0, self.best - self.random)


def stakes(market: Market) -> Stakes:
    """Return what perfect knowledge and a random item earn in a market.

    >>> from cloneproof import Agent, Point
    >>> stakes(Market([Agent("ana", 2, Point(0.5)), Agent("bo", 2, Point(0.25))], horizon=1000))
    Stakes(best=500.0, random=375.0)
    """
    if market.segments:
        parts = [stakes(own) for own in market.by_segment.values()]
        return Stakes(math.fsum(part.best for part in parts), math.fsum(part.random for part in parts))
    best = best_round([agent.priors for agent in market.agents], market.places)
    if market.places:
        agents = [math.fsum(prior.mean for prior in agent.priors) / agent.count for agent in market.agents]
        shown = math.fsum(agents) / len(agents) * math.fsum(places_taken(market.places, len(agents)))
    else:
        shown = math.fsum(prior.mean for agent in market.agents for prior in agent.priors) / market.originals
    return Stakes(market.horizon * best, market.horizon * shown)


def abandons(market: Market, mechanism: Mechanism) -> bool:
    """Return whether a mechanism may stop showing an item for good; of a policy in Python nothing is known."""
    return mechanism.facts(Setting(len(market.agents), market.horizon, bool(market.places))).abandons


@dataclass(frozen=True)
class Drawing:
    """How runs are drawn: the seed, the most runs or pairs (None: as the module says), and the deadline.

    `play` plays chunks; policies in Python bring their own, one chunk at a time (`parallel` False). `stepped` plays
    every round, where otherwise long runs are played in blocks and a measured bias is added to the error.
    """

    seed: int = 0
    most: int | None = None
    clock: Deadline | None = None
    play: ChunkOutcomes = kernel_outcomes
    parallel: bool = True
    stepped: bool = False

    def totals(
        self,
        rows: ObserveRuns,
        bounds: Sequence[Bounds],
        most: int,
        enough: Callable[[RunTotals], bool],
        likely: float = 0.0,
    ) -> RunTotals:
        """Draw until it is enough, or as much as there may be; Ctrl-C is told to the clock."""
        start, clock = RunTotals.empty(Estimands(tuple(bounds), likely=likely)), self.clock or Deadline()
        if clock.spent:
            return start
        plan = RunPlan(limit=self.most or most, decided=enough, seconds=clock.left, parallel=self.parallel)
        totals, stopped = drive(rows, start, plan)
        if stopped == "interrupted":
            clock.interrupt()
        return totals


DRAWING: Final = Drawing()


def cost_interval(
    mean: float, variance: float, runs: int, most_lost: float | None, level: float = LEVEL
) -> tuple[float, float]:
    """Return the ends of the interval of a mean cost of runs with this sample variance.

    `most_lost` is M for a mechanism that abandons items, None for one that never does (`draw_cost`).

    >>> [round(end, 3) for end in cost_interval(10.0, 4.0, 1024, None)]
    [9.772, 10.228]
    >>> [round(end, 3) for end in cost_interval(10.0, 4.0, 1024, most_lost=100.0)]
    [9.839, 10.611]
    >>> cost_interval(10.0, 4.0, 15, None)
    (-inf, inf)
    """
    if runs < FIRST_TIME:
        return -math.inf, math.inf
    if most_lost is None:
        half = float(asymptotic_widths(np.array([variance]), runs, 1 - level)[0])
        return mean - half, mean + half
    half = float(scipy.special.stdtrit(runs - 1, (1 + level) / 2)) * math.sqrt(variance / runs)
    return mean - half, mean + half - math.log(1 - level) * most_lost / runs


def draw_cost(
    regrets: ObserveRuns,
    there: Stakes,
    abandoning: bool,
    bounds: Bounds,
    drawing: Drawing = DRAWING,
    bias: float = 0.0,
) -> Estimate:
    """Return a cost from runs that are drawn until it is precise.

    Parameters
    ----------
    regrets : callable
        `regrets(first, count)` plays runs and returns the regret of each, as a column.
    there : Stakes
        What there is to lose.
    abandoning : bool
        Whether the mechanism may stop showing an item for good.
    bounds : Bounds
        What the regret of a run lies between.
    drawing : Drawing, optional
        How runs are drawn.
    bias : float, default 0.0
        The part of the cost that the way of drawing may be off by; it is added to the error.
    """
    part = OF_BEST_ABANDONING if abandoning else OF_BEST

    def estimate(totals: RunTotals) -> Estimate:
        mean, variance = float(totals.means[0]), float(totals.variances[0])
        low, high = cost_interval(mean, variance, totals.count, there.most_lost if abandoning else None)
        off = bias * abs(mean)
        low, high = max(bounds.least, low - off), min(bounds.most, high + off)
        if totals.count < FIRST_TIME:
            low, high = -math.inf, math.inf
        method = f"{totals.count:,} runs, seed {drawing.seed}"
        return Estimate.between(low, mean, high, "confidence", method, LEVEL)

    def precise(totals: RunTotals) -> bool:
        found = estimate(totals)
        return found.error <= max(TENTH * abs(found.value), part * there.best)

    return estimate(drawing.totals(regrets, [bounds], MOST_RUNS, precise))


def cost(
    market: Market,
    mechanism: Mechanism,
    copies: Copies | None = None,
    drawing: Drawing = DRAWING,
) -> Estimate:
    """Return the regret of a mechanism in a market, drawn until it is precise.

    >>> from cloneproof import Agent, Beta, mechanism
    >>> market = Market([Agent(name, 3, Beta(2, 60)) for name in "abcde"], horizon=10_000)
    >>> found = cost(market, mechanism("ucb1"))
    >>> found.method, found.kind, found.error < max(0.1 * found.value, 5e-4 * stakes(market).best)
    ('256 runs, seed 0', 'confidence', True)
    """
    drawn = runs_of(market, mechanism, full_copies(market.agents, copies), drawing.seed, rough=not drawing.stepped)
    most = with_sum([regret_bounds(part.job.market) for part in drawn.parts])[0]
    regrets, abandoning = partial(_regrets, drawing.play, drawn), abandons(market, mechanism)
    return draw_cost(regrets, stakes(market), abandoning, most, drawing, drawn.bias)


def _regrets(play: ChunkOutcomes, drawn: Runs, first: int, count: int) -> FloatArray:
    return np.asarray(sum(play(part, first, count).regret for part in drawn.parts))[:, None]


class PreciseGain(NamedTuple):
    """What an agent is paid for honest and other copies, and the difference."""

    gain: Estimate
    honest: Estimate
    copied: Estimate


def draw_gain(
    pairs: ObserveRuns, bounds: Bounds, likely: float, drawing: Drawing = DRAWING, bias: float = 0.0
) -> PreciseGain:
    """Return a gain from pairs of runs that are drawn until it is precise.

    Parameters
    ----------
    pairs : callable
        `pairs(first, count)` plays pairs of runs and returns two columns: the payoffs without and with the copies.
    bounds : Bounds
        What a payoff lies between.
    likely : float
        The part of these bounds by which a pair may move that was not seen yet (`statistics.likely_part`).
    drawing : Drawing, optional
        How pairs are drawn.
    bias : float, default 0.0
        The part of honest pay that the way of drawing may be off by; it is added to the error.
    """

    def rows(first: int, count: int) -> FloatArray:
        paid = pairs(first, count)
        return np.column_stack([paid[:, 1] - paid[:, 0], paid])

    def estimates(totals: RunTotals) -> PreciseGain:
        found = totals.estimates(LEVEL, f"{totals.count:,} pairs of runs, seed {drawing.seed}", "asymptotic")
        gain, honest, copied = found
        return PreciseGain(replace(gain, error=gain.error + bias * abs(honest.value)), honest, copied)

    def precise(totals: RunTotals) -> bool:
        gain, honest, _ = estimates(totals)
        return gain.error <= max(TENTH * honest.value, THIRD * abs(gain.value))

    ranges = (Bounds(-bounds.high, bounds.high), bounds, bounds)
    return estimates(drawing.totals(rows, ranges, MOST_PAIRS, precise, likely))


def gain(
    market: Market,
    mechanism: Mechanism,
    agent: str,
    copies: Sequence[int],
    drawing: Drawing = DRAWING,
    others: Mapping[str, Sequence[int]] | None = None,
) -> PreciseGain:
    """Return what an agent gains by these copies (0: an item is withheld), drawn until it is precise.

    >>> from cloneproof import Agent, Beta, mechanism
    >>> market = Market([Agent(name, 3, Beta(2, 60)) for name in "abcde"], horizon=10_000)
    >>> found = gain(market, mechanism("ucb1"), "a", (5, 5, 5))
    >>> found.gain.low > 0, found.gain.error <= found.gain.value / 3
    (True, True)
    """
    number = [own.name for own in market.agents].index(agent)
    lists = [full_copies(market.agents, {**(others or {}), agent: own}) for own in ((1,) * len(copies), tuple(copies))]
    worlds = [runs_of(market, mechanism, own, drawing.seed, rough=not drawing.stepped) for own in lists]

    def pairs(first: int, count: int) -> FloatArray:
        played = [sum(drawing.play(part, first, count).served[:, number] for part in world.parts) for world in worlds]
        return np.column_stack(played)

    parts = [part.job.market for part in worlds[0].parts]
    most = with_sum([served_bounds(part, agent) for part in parts])[0]
    return draw_gain(pairs, most, max(likely_part(part, agent) for part in parts), drawing, worlds[0].bias)
