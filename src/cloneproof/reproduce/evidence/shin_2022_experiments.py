"""The five experiments of Shin, Lee and Ok (2022): five Bernoulli agents of .9, .8, .7, .6, .5 who know their means.

a, b: what the agent of .5 (or .9) earns when it registers N copies of its item. c, d: the regret when .5, or all but
.9, register 1,000 copies. e: every agent has items of .2 and .1 as well; the best two register (10, 100, 100), the
other three 1,000 of each. T = 100,000, 100 repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import outcomes
from cloneproof.market import Agent, Discrete, Market, Point, full_copies
from cloneproof.mechanisms.mechanism import Mechanism

BEST = (0.9, 0.8, 0.7, 0.6, 0.5)
NAMES = ("ucb1", "h-ucb", "rh-ucb", "s-ucb")
SAMPLE_FACTORS = {("rh-ucb", "e"): 3.0, ("s-ucb", "e"): 15.0}  # L of the sample L ln T where it is not the usual one
CHUNK = 5
ExperimentCopies = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Experiment:
    """One number of one figure: what everybody registers, and whose payoff is shown (None: the regret)."""

    figure: str
    label: str
    market: Market
    copies: ExperimentCopies
    agent: str | None

    def runs(self, name: str, runs: int, seed: int, make: Callable[..., Mechanism]) -> FloatArray:
        """What is shown, in each run, under one of the four mechanisms."""
        factor = SAMPLE_FACTORS.get((name, self.figure))
        mechanism = make(name, **({} if factor is None else {"sample_factor": factor}))
        return play_runs(self.market, mechanism, self.copies, self.agent, runs, seed)


def market(horizon: int, extra: tuple[float, ...] = ()) -> Market:
    """Five agents who know their means; `extra` are further items that each of them has."""
    return Market(
        [Agent(f"{best:.1f}", prior=[Point(mean) for mean in (best, *extra)]) for best in BEST], horizon=horizon
    )


def bayesian_market(horizon: int, originals: int = 2) -> Market:
    """The same five agents who do not know their means: each item's is one of the five, with equal odds."""
    prior = Discrete(list(BEST), [1 / len(BEST)] * len(BEST))
    return Market([Agent(f"agent {k}", originals, prior) for k in range(1, len(BEST) + 1)], horizon=horizon)


def experiments(
    horizon: int, copies_a: Sequence[int] = (1, 100, 500), copies_b: Sequence[int] = (1, 500)
) -> list[Experiment]:
    """All of them, with these numbers of copies in figures a and b."""
    plain, rich = market(horizon), market(horizon, (0.2, 0.1))
    thousand: ExperimentCopies = dict.fromkeys(("0.8", "0.7", "0.6", "0.5"), (1000,))
    few: ExperimentCopies = dict.fromkeys(("0.9", "0.8"), (10, 100, 100))
    most: ExperimentCopies = dict.fromkeys(("0.7", "0.6", "0.5"), (1000, 1000, 1000))
    many = few | most
    return [
        *[Experiment("a", f"payoff of .5 at N = {n}", plain, {"0.5": (n,)}, "0.5") for n in copies_a],
        *[Experiment("b", f"payoff of .9 at N = {n}", plain, {"0.9": (n,)}, "0.9") for n in copies_b],
        Experiment("c", "regret, .5 × 1000", plain, {"0.5": (1000,)}, None),
        Experiment("d", "regret, all but .9 × 1000", plain, thousand, None),
        Experiment("e", "regret, items of .2 and .1 too", rich, many, None),
    ]


def play_runs(
    world: Market, mechanism: Mechanism, copies: ExperimentCopies, agent: str | None, runs: int, seed: int
) -> FloatArray:
    """The payoff of an agent, or the regret, in each run; chunks of runs on threads, the same bits on any number."""
    job = Job(world, mechanism, full_copies(world.agents, copies), seed)
    with ThreadPoolExecutor() as pool:
        chunks = list(pool.map(lambda first: outcomes(job, first, min(CHUNK, runs - first)), range(0, runs, CHUNK)))
    if agent is None:
        return np.concatenate([chunk.regret for chunk in chunks])
    column = [each.name for each in world.agents].index(agent)
    return np.concatenate([chunk.payoff[:, column] for chunk in chunks])
