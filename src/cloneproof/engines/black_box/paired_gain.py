"""What an agent gains by copying under a black box: two worlds on the same means, tapes and seeds, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.box_outcomes import Tick, black_box_outcomes
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.black_box.workers import Workers
from cloneproof.engines.reference import SampleMean
from cloneproof.errors import MarketError, did_you_mean
from cloneproof.market.copies import full_copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.online.opening import checked_seed


class PairedGain(NamedTuple):
    """An agent's payoff when honest and when copying, and the paired difference of the two."""

    honest: SampleMean
    copied: SampleMean
    gain: SampleMean


def black_box_gain(
    market: Market,
    box: BlackBox,
    agent: str,
    copies: Sequence[int],
    runs: int = 100,
    seed: int = 0,
    processes: int | None = None,
    tick: Tick | None = None,
) -> PairedGain:
    """Means and standard errors over that many paired runs; `tick` is called after each run of each world.

    A standard error is no guarantee: with a small number of runs of a skewed payoff it may be too small.
    """
    names = [each.name for each in market.agents]
    if agent not in names:
        raise MarketError(f"unknown agent {agent!r}; {did_you_mean(agent, names)}the market has {', '.join(names)}")
    worlds = [full_copies(market.agents, given) for given in (None, {agent: copies})]
    jobs = [BlackBoxJob(market, box, world, checked_seed(seed)) for world in worlds]
    workers = None if processes is None else Workers(processes)
    try:
        honest, copied = (black_box_outcomes(job, 0, runs, workers, tick) for job in jobs)
    finally:
        if workers is not None:
            workers.close()
    before, after = (world.payoff[:, names.index(agent)] for world in (honest, copied))
    return PairedGain(*(SampleMean.of(values.tolist()) for values in (before, after, after - before)))
