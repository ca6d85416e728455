"""Tapes: the random numbers of a run, by their place, and what is drawn from them.

The reward of a pull is a function of (seed, run, agent, original, copy, pull), so two strategies see the same rewards
from the same arm. Numbers are drawn for one run, or for many at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from cloneproof._lib.arrays import FloatArray, WordArray
from cloneproof._lib.randomness import GOLDEN, substream, uniform, word
from cloneproof.market.market import FullCopies, Market, Means, arms_of
from cloneproof.market.priors import quantiles
from cloneproof.market.segments import rates_of
from cloneproof.runs.job import Job

MEANS_STREAM, TAPE_STREAM, SESSION_STREAM, DELAYS_STREAM = range(4)


def words(streams: WordArray | np.uint64, index: int | WordArray) -> WordArray:
    """Return `cloneproof._lib.randomness.word` of many streams, or of many numbers of one stream."""
    with np.errstate(over="ignore"):
        x = np.atleast_1d(np.asarray(streams, np.uint64)) + np.uint64(GOLDEN) * np.asarray(index + 1, np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), np.uint64)


def uniforms(streams: WordArray, index: int | WordArray) -> FloatArray:
    """Return `cloneproof._lib.randomness.uniform` of many streams."""
    return np.asarray(((words(streams, index) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def run_streams(seed: int, first: int, count: int) -> WordArray:
    """Return the stream of each run: `substream(0, seed, run)`."""
    return words(np.uint64(substream(0, seed)), np.arange(first, first + count, dtype=np.uint64))


def means_of_runs(job: Job, first: int, count: int) -> FloatArray:
    """Return runs x originals (agent by agent), drawn from the priors or taken from the strata."""
    if job.strata:
        return np.asarray(job.rows[np.arange(first, first + count) % len(job.rows)])
    streams = words(run_streams(job.seed, first, count), MEANS_STREAM)
    columns = []
    for i, agent in enumerate(job.market.agents):
        agent_streams = words(streams, i)
        columns += [quantiles(prior, uniforms(agent_streams, o)) for o, prior in enumerate(agent.priors)]
    return np.stack(columns, axis=1)


def drawn_means(market: Market, seed: int, run: int) -> Means:
    """Return the means of all originals in that run, drawn from the priors."""
    stream = substream(0, seed, run, MEANS_STREAM)
    return {
        agent.name: tuple(prior.quantile(uniform(word(stream, i), o)) for o, prior in enumerate(agent.priors))
        for i, agent in enumerate(market.agents)
    }


def drawn_rates(market: Market, seed: int, run: int) -> dict[str, Means]:
    """Return the means of all originals in each segment of the market in that run, drawn from their joint laws."""
    stream, names = substream(0, seed, run, MEANS_STREAM), list(market.segments)
    drawn = {
        agent.name: [
            rates_of(law, names, partial(uniform, substream(stream, i, o))) for o, law in enumerate(agent.laws)
        ]
        for i, agent in enumerate(market.agents)
    }
    return {name: {agent: tuple(rates[name] for rates in items) for agent, items in drawn.items()} for name in names}


class Run(NamedTuple):
    """Outcome of one whole run: what each agent was paid, and the platform's regret.

    `served` is what each agent would have been paid if every pull had paid its arm's mean.
    """

    payoff: dict[str, float]
    regret: float
    served: dict[str, float]


class TapedArm:
    """A registered arm in a simulation: its agent's number, its mean, its tape, how often it was pulled and seen.

    A pull in a place of a page is seen as often as its attention says, any other one once.
    """

    __slots__ = ("agent", "loss", "mean", "pulls", "seen", "tape")

    def __init__(self, agent: int, mean: float, loss: float, tape: int) -> None:
        self.agent, self.mean, self.loss, self.tape, self.pulls = agent, mean, loss, tape, 0
        self.seen = 0.0


def taped_arms(means: Means, copies: FullCopies, seed: int, run: int) -> dict[str, list[TapedArm]]:
    """Return the registered arms of each agent in that run."""
    best = max(mean for of_agent in means.values() for mean in of_agent)  # of the first place of a page
    tapes = substream(0, seed, run, TAPE_STREAM)
    return {
        name: [
            TapedArm(i, of_agent[original], best - of_agent[original], substream(tapes, i, original, copy))
            for original, copy in arms_of(copies[name])
        ]
        for i, (name, of_agent) in enumerate(means.items())
    }


def served(share: float, arms: Mapping[str, Iterable[TapedArm]]) -> dict[str, float]:
    """Return the worth of each agent's pulls: the share of the sum of their means."""
    return {name: share * math.fsum(arm.seen * arm.mean for arm in of_agent) for name, of_agent in arms.items()}
