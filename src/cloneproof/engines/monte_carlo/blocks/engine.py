"""Chunks of explore-then-commit runs: payoffs and regrets from block draws.

The choice of arms, ties included, is what the running mechanism would make of rewards with the same block sums. Where
agents are chosen uniformly at random in every round, their numbers of rounds are drawn at once: the same law, but not
the same choices as a session's round by round.
"""

from __future__ import annotations

import numpy as np

from cloneproof._arrays import IntArray
from cloneproof.engines.monte_carlo.blocks.block_kernel import BlockResults, run_blocks
from cloneproof.engines.monte_carlo.blocks.block_plan import blocks_apply, candidates_of, flat_epochs, plan_of
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.randomness.run_means import means_of_runs, run_streams
from cloneproof.mechanisms.epochs import Epoch, running_epochs

__all__ = ["block_outcomes", "blocks_apply", "blocks_of_run"]


def block_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1 of a job to which blocks apply."""
    return _outcomes(job, first, count, np.zeros((0, 4), np.int64))


def blocks_of_run(job: Job, run: int) -> tuple[Outcomes, IntArray]:
    """One run and its blocks as rows (arm, pulls, high, low), each arm's in order: sums are high + low / 2**60."""
    most = sum((sum(map(sum, job.copies.values())) + 2) * (len(flat_epochs(epoch)) + 2) for epoch in _epochs(job))
    trace = np.zeros((1 + most, 4), np.int64)
    outcomes = _outcomes(job, run, 1, trace)
    return outcomes, trace[1 : 1 + trace[0, 0]]


def _outcomes(job: Job, first: int, count: int, trace: IntArray) -> Outcomes:
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    payoff, regret = np.zeros((count, len(job.market.agents))), np.zeros(count)
    served = np.zeros_like(payoff)
    results = BlockResults(np.empty_like(payoff), np.empty_like(payoff), np.empty_like(regret), trace)
    for epoch in _epochs(job):
        plan = plan_of(job, epoch)
        run_blocks(plan, flat_epochs(epoch), candidates_of(job, plan.flat), means, streams, results)
        payoff, regret = payoff + results.payoff, regret + results.regret
        served = served + results.served
    return Outcomes(payoff * job.market.share, regret, served * job.market.share)


def _epochs(job: Job) -> list[Epoch]:
    return running_epochs(job.mechanism, len(job.market.agents), job.market.horizon)
