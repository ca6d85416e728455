"""Chunks of explore-then-commit runs: payoffs and regrets from block draws.

The choice of arms, ties included, is what the running mechanism would make of rewards with the same block sums. Where
agents are chosen uniformly at random in every round, their numbers of rounds are drawn at once: the same law, but not
the same choices as a session's round by round.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cloneproof.engines.monte_carlo.blocks.kernel import run_blocks
from cloneproof.engines.monte_carlo.blocks.plan import blocks_apply, candidates_of, epochs_of, plan_of
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.means import means_of_runs, run_streams

__all__ = ["block_outcomes", "blocks_apply", "blocks_of_run"]

Trace = npt.NDArray[np.int64]


def block_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1 of a job to which blocks apply."""
    return _outcomes(job, first, count, np.zeros((0, 4), np.int64))


def blocks_of_run(job: Job, run: int) -> tuple[Outcomes, Trace]:
    """One run and its blocks as rows (arm, pulls, high, low), each arm's in order: sums are high + low / 2**60."""
    most = (sum(map(sum, job.copies.values())) + 2) * (len(epochs_of(job)) + 2)
    trace = np.zeros((1 + most, 4), np.int64)
    found = _outcomes(job, run, 1, trace)
    return found, trace[1 : 1 + trace[0, 0]]


def _outcomes(job: Job, first: int, count: int, trace: Trace) -> Outcomes:
    plan = plan_of(job)
    payoff, regret = np.empty((count, plan.agents)), np.empty(count)
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    run_blocks(plan, epochs_of(job), candidates_of(job, plan.flat), trace, means, streams, payoff, regret)
    payoff *= job.market.share
    return Outcomes(payoff, regret)
