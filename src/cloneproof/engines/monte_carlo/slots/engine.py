"""Chunks of reservoirs, flat or with a contest: blocks where counts of coins are binomial, else round by round."""

from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.randomness.run_means import means_of_runs, run_streams
from cloneproof.engines.monte_carlo.slots.slot_kernel import run_slots
from cloneproof.engines.monte_carlo.slots.slot_plan import CONTESTS, FAMILIES, slot_plan, slot_tables
from cloneproof.market.rewards import bernoulli, deterministic, gaussian
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.rules.etc import average
from cloneproof.mechanisms.scores.champions import Champions

LARGEST_SUM = 2.0**61  # of rewards, that an exact sum can hold
FARTHEST = 9.0  # standard deviations of a Gaussian reward from a uniform number of 52 bits, at most


def slots_apply(job: Job) -> bool:
    """Whether the job's mechanism tests slots, flat or before a contest of champions, on rewards the kernel knows."""
    mechanism, rule, family = job.mechanism, job.mechanism.arm, job.market.family
    tests = rule.draws > 0 and rule.commits and rule.priority is average
    if (
        not tests
        or mechanism.clearing.planned_epochs
        or mechanism.fallback is not None
        or family.quantile not in FAMILIES
    ):
        return False
    if mechanism.agent is not None and not (_is_contest(mechanism.agent) and type(mechanism.scoring) is Champions):
        return False
    if family.quantile is not gaussian.quantile:
        return True
    coins = any(level.binarise for level in mechanism.rules)
    return not coins and job.market.horizon * (1.0 + FARTHEST * family.parameters[0]) < LARGEST_SUM


def slot_blocks_apply(job: Job) -> bool:
    """Whether a test's count and its rewards are one draw besides."""
    one_draw = job.market.family.quantile in (bernoulli.quantile, deterministic.quantile)
    return one_draw and slots_apply(job) and job.mechanism.arm.binarise


def slot_step_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1, round by round: payoffs bit for bit those of `simulate_run`."""
    return _outcomes(job, first, count, blocks=False)


def slot_block_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """The same runs with tests from block draws: the same law, other rewards. A contest is stepped all the same."""
    return _outcomes(job, first, count, blocks=True)


def _is_contest(rule: Rule) -> bool:
    return rule.priority in CONTESTS and not rule.commits and rule.order == "round-robin"


def _outcomes(job: Job, first: int, count: int, blocks: bool) -> Outcomes:
    plan = slot_plan(job, job.mechanism)
    payoff, served, regret = np.empty((count, plan.agents)), np.zeros((count, plan.agents)), np.empty(count)
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    run_slots(plan, slot_tables(job, plan), means, streams, payoff, served, regret, blocks)
    return Outcomes(payoff * job.market.share, regret, served * job.market.share)
