"""Shared parts of the runs of all kernels: tables of arms, and results.

A kernel says of each run what every agent is paid and how often each original is seen; `RunResults.outcomes` says what
follows from that. So what agents are served, and the regret, are computed alike whoever plays the runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof._lib.arrays import FloatArray, IntArray, WordArray
from cloneproof.runs.job import Job, Outcomes, means_of_runs, reference_run, run_streams

ARM: Final = [
    ("agent", "i8"),
    ("original", "i8"),  # inside its agent
    ("copy", "i8"),
    ("column", "i8"),  # of the original in an array of means
    ("key", "u8"),  # by which its level knows it
]


ArmTable = npt.NDArray[Any]


def first_arms(job: Job) -> IntArray:
    """Return where the arms of each agent begin in the order of registration, and where all end."""
    return np.cumsum([0, *(sum(job.copies[agent.name]) for agent in job.market.agents)], dtype=np.int64)


def arm_table(job: Job, flat: bool) -> ArmTable:
    """Make a row for each arm that a job's copies register, in order."""
    copies = np.array([number for agent in job.market.agents for number in job.copies[agent.name]])
    owners = np.array([(i, o) for i, agent in enumerate(job.market.agents) for o in range(agent.count)])
    column = np.repeat(np.arange(len(copies)), copies)
    arms, numbers = np.zeros(len(column), ARM), np.arange(len(column))
    arms["column"], arms["agent"], arms["original"] = column, owners[column, 0], owners[column, 1]
    arms["copy"] = numbers - (np.cumsum(copies) - copies)[column]
    arms["key"] = numbers - first_arms(job)[arms["agent"]] + ((arms["agent"] << 32) if flat else 0)
    return arms


class RunResults(NamedTuple):
    """Of each run of a chunk: what every agent is paid before the share, and the views of each original in each place.

    Without positions there is one place, and a pull is a view. A run that the kernel cannot play has payoffs of NaN.
    """

    payoff: FloatArray
    views: IntArray

    @classmethod
    def empty(cls, job: Job, runs: int) -> RunResults:
        market = job.market
        views = np.zeros((runs, market.originals, max(1, len(market.places))), np.int64)
        return cls(np.zeros((runs, len(market.agents))), views)

    def outcomes(self, job: Job, means: FloatArray) -> Outcomes:
        """Return the outcomes of runs with these means.

        Originals are added up in order, one by one, so that the last bit does not depend on the chunk.
        """
        market, owners = job.market, owners_of(job)
        served, rounds = np.zeros((2, *self.payoff.shape))
        regret, losses = np.zeros(len(means)), means.max(axis=1, keepdims=True) - means
        if market.places:
            regret, losses = market.horizon * best_pages(job, means), -means
        for original, owner in enumerate(owners):
            views = self.views[:, original]
            seen = sum(attention * views[:, place] for place, attention in enumerate(market.places or (1.0,)))
            served[:, owner] += seen * means[:, original]
            regret += seen * losses[:, original]
            rounds[:, owner] += views.sum(axis=1)
        return Outcomes(self.payoff * market.share, regret, served * market.share, rounds)


Kernel = Callable[[Job, FloatArray, WordArray, RunResults], None]
"""Plays runs of a job with these means and streams, a row each, and fills in empty results."""


def played(kernel: Kernel, job: Job, first: int, count: int) -> Outcomes:
    """Play runs first, .., first + count - 1 of a job; the reference simulator plays those that the kernel cannot."""
    means, results = means_of_runs(job, first, count), RunResults.empty(job, count)
    kernel(job, means, run_streams(job.seed, first, count), results)
    outcomes = results.outcomes(job, means)
    unplayed = np.flatnonzero(np.isnan(results.payoff[:, 0]))
    for r in unplayed:
        run = reference_run(job, first + int(r))  # says what is wrong, or does what compiled code cannot
        outcomes.payoff[r], outcomes.served[r] = list(run.payoff.values()), list(run.served.values())
        outcomes.regret[r] = run.regret
    return outcomes._replace(rounds=None) if len(unplayed) else outcomes


def owners_of(job: Job) -> IntArray:
    """Return the agent of each original, by number."""
    return np.repeat(np.arange(len(job.market.agents)), [agent.count for agent in job.market.agents])


def best_pages(job: Job, means: FloatArray) -> FloatArray:
    """Return what a page of the best slate of different agents is worth in each run."""
    begin = np.cumsum([0, *(agent.count for agent in job.market.agents)])[:-1]
    best = -np.sort(-np.maximum.reduceat(means, begin, axis=1), axis=1)
    worth = np.zeros(len(means))
    for attention, mean in zip(job.market.places, best.T, strict=False):
        worth += attention * mean
    return worth
