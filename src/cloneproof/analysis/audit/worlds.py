"""Worlds in which what is registered depends on the means, sampled together on the same random numbers.

A market draws its means from priors, and copies are chosen before. Here a *list* is chosen with the means in hand, or
has items that are not originals (variants): a `World` turns the drawn means into those of its own market. Every world
of a run has the same draws, so that only the lists differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.job import Job, Outcomes, means_of_runs, run_streams, uniforms, words
from cloneproof.engines.monte_carlo.sampler import RunPlan, drive, kernel_outcomes, limit_of, run_cost
from cloneproof.engines.monte_carlo.statistics import Bounds, Estimands, RunTotals
from cloneproof.errors import EngineError
from cloneproof.market.market import FullCopies, Market
from cloneproof.mechanisms.mechanism import Mechanism

CONFIDENCE = 0.99
LISTS_STREAM = 3  # of a run's random numbers, after those of its means, tapes and session (`engines.reference`)


@dataclass(frozen=True)
class World:
    """A market whose means are a function of the drawn ones, and what is registered there.

    `means` gets the drawn means (runs x originals, agent by agent) and as many uniform numbers as `numbers` says (runs
    x numbers), and returns the means of this market's originals.
    """

    market: Market
    copies: FullCopies
    means: Callable[[FloatArray, FloatArray], FloatArray]


def sample_worlds(
    market: Market,
    mechanism: Mechanism,
    worlds: Sequence[World],
    numbers: int,
    observe: Callable[[FloatArray, FloatArray, Sequence[Outcomes]], FloatArray],
    bounds: Sequence[Bounds],
    search: Search,
    clock: Deadline,
) -> list[Estimate]:
    """Return the means of the columns that `observe` makes of drawn means, uniform numbers and each world's outcomes.

    Intervals are asymptotic, at 99 % each: no verdict rests on them.
    """
    drawn = Job(market, mechanism, {}, search.seed)

    def rows(first: int, count: int) -> FloatArray:
        means = means_of_runs(drawn, first, count)
        streams = words(run_streams(search.seed, first, count), LISTS_STREAM)
        levels = np.stack([uniforms(streams, number) for number in range(numbers)], axis=1)
        played = []
        for world in worlds:
            own = np.roll(world.means(means, levels), first % count, axis=0)  # run r takes row r modulo their number
            ends = np.cumsum([agent.count for agent in world.market.agents])[:-1]
            parts = [block.tolist() for block in np.split(own, ends, axis=1)]
            names = [agent.name for agent in world.market.agents]
            strata = tuple(dict(zip(names, map(tuple, run), strict=True)) for run in zip(*parts, strict=True))
            job = Job(world.market, mechanism, world.copies, search.seed, strata)
            played.append(kernel_outcomes(job, first, count))
        return observe(means, levels, played)

    plan = RunPlan(
        limit=limit_of(search.runs, None, 1),
        seconds=clock.left,
        cost=sum(run_cost(Job(world.market, mechanism, world.copies)) for world in worlds),
    )
    totals, _ = drive(rows, RunTotals.empty(Estimands(tuple(bounds))), plan)
    if not totals.count:
        raise EngineError("the budget was spent before a run ended")
    return totals.estimates(
        CONFIDENCE, f"{totals.runs} worlds with common random numbers, seed {search.seed}", "asymptotic"
    )
