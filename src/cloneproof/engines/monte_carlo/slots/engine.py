"""Chunks of the flat reservoir: blocks where counts of coins are binomial draws, else round by round."""

from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.randomness.run_means import means_of_runs, run_streams
from cloneproof.engines.monte_carlo.slots.slot_kernel import run_slots
from cloneproof.engines.monte_carlo.slots.slot_plan import FAMILIES, slot_plan, slot_tables
from cloneproof.market.rewards import bernoulli, deterministic
from cloneproof.mechanisms.rules.etc import average


def slots_apply(job: Job) -> bool:
    """Whether the job is a flat mechanism that tests slots on coins, with rewards that the kernel knows."""
    mechanism, rule = job.mechanism, job.mechanism.arm
    flat = mechanism.agent is None and not mechanism.clearing.planned_epochs
    tests = rule.draws > 0 and rule.commits and rule.binarise and rule.priority is average
    return flat and tests and job.market.family.quantile in FAMILIES


def slot_blocks_apply(job: Job) -> bool:
    """Whether a test's count and its rewards are one draw besides."""
    return slots_apply(job) and job.market.family.quantile in (bernoulli.quantile, deterministic.quantile)


def slot_step_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1, round by round: payoffs bit for bit those of `simulate_run`."""
    return _outcomes(job, first, count, blocks=False)


def slot_block_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """The same runs from block draws: the same law, other rewards."""
    return _outcomes(job, first, count, blocks=True)


def _outcomes(job: Job, first: int, count: int, blocks: bool) -> Outcomes:
    plan = slot_plan(job, job.mechanism.arm)
    payoff, regret = np.empty((count, plan.agents)), np.empty(count)
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    run_slots(plan, slot_tables(job, plan), means, streams, payoff, regret, blocks)
    return Outcomes(payoff * job.market.share, regret)
