"""The five experiments of Shin, Lee and Ok (2022): five Bernoulli agents of .9, .8, .7, .6, .5 who know their means.

a, b: what the agent of .5 (or .9) earns when it registers N copies of its item. c, d: the regret when .5, or all but
.9, register 1,000 copies. e: every agent has items of .2 and .1 as well; the best two register (10, 100, 100), the
other three 1,000 of each. T = 100,000, 100 repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import outcomes
from cloneproof.market import Agent, Discrete, Market, Point, full_copies
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.sample import Sample
from cloneproof.reproduce.evidence.sample_strata import ArmCounts, ArmSample, RunsMean

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
        return play_runs(self.market, self._mechanism(name, make), self.copies, self.agent, runs, seed)

    def mean(self, name: str, runs: int, seed: int, make: Callable[..., Mechanism]) -> RunsMean:
        """The mean of what is shown over about so many runs: stratified where one sample is taken of all arms."""
        mechanism = self._mechanism(name, make)
        if isinstance(mechanism.sample, Sample) and mechanism.sample.scope == "all":
            return RunsMean.of(play_strata(self.market, mechanism, self.copies, self.agent, runs, seed))
        return RunsMean.of([(1.0, self.runs(name, runs, seed, make))])

    def _mechanism(self, name: str, make: Callable[..., Mechanism]) -> Mechanism:
        factor = SAMPLE_FACTORS.get((name, self.figure))
        return make(name, **({} if factor is None else {"sample_factor": factor}))


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
        chunks = pool.map(lambda first: _shown(job, agent, first, min(CHUNK, runs - first)), range(0, runs, CHUNK))
        return np.concatenate(list(chunks))


def play_strata(
    world: Market, mechanism: Mechanism, copies: ExperimentCopies, agent: str | None, runs: int, seed: int
) -> list[tuple[float, FloatArray]]:
    """Probability and runs of every stratum of a mechanism that takes one sample of all arms, about `runs` in all."""
    full = full_copies(world.agents, copies)
    arms = [number for each in world.agents for number in full[each.name]]
    if not isinstance(mechanism.sample, Sample):
        raise TypeError("expected a mechanism with one sample of all arms")
    sample = ArmSample.of(arms, mechanism.sample.size(world.horizon))
    on_sample = replace(mechanism, sample=None)
    randomness = np.random.default_rng(seed)
    strata = sample.strata(runs)
    drawn = [
        composition
        for stratum in strata
        for composition in sorted(sample.draw(stratum, randomness) for _ in range(stratum.runs))
    ]  # equal ones of a stratum are neighbours, and played together

    def play(numbers: range) -> FloatArray:
        job = Job(world, on_sample, _split(world, drawn[numbers[0]]), seed)
        return _shown(job, agent, numbers[0], len(numbers))

    with ThreadPoolExecutor() as pool:
        values = np.concatenate(list(pool.map(play, _neighbours(drawn))))
    ends = np.cumsum([stratum.runs for stratum in strata])
    return [(stratum.probability, own) for stratum, own in zip(strata, np.split(values, ends[:-1]), strict=True)]


def _neighbours(drawn: Sequence[ArmCounts]) -> list[range]:
    """Ranges of at most CHUNK equal compositions.

    >>> _neighbours([(1, 0), (1, 0), (0, 1)])
    [range(0, 2), range(2, 3)]
    """
    ranges = []
    for _, group in groupby(range(len(drawn)), key=drawn.__getitem__):
        numbers = list(group)
        ranges += [range(first, min(first + CHUNK, numbers[-1] + 1)) for first in numbers[::CHUNK]]
    return ranges


def _split(world: Market, drawn: ArmCounts) -> dict[str, ArmCounts]:
    """By agent; unlike in a market, an agent may be left without an arm: none of its own was drawn."""
    ends = np.cumsum([agent.count for agent in world.agents]).tolist()
    return {agent.name: drawn[end - agent.count : end] for agent, end in zip(world.agents, ends, strict=True)}


def _shown(job: Job, agent: str | None, first: int, count: int) -> FloatArray:
    """The payoff of the agent, or the regret, in a range of runs."""
    found = outcomes(job, first, count)
    return found.regret if agent is None else found.payoff[:, [each.name for each in job.market.agents].index(agent)]
