"""Chunks of flat randomised rules on Bernoulli rewards: the reference simulator's decisions, several times quicker."""

from __future__ import annotations

from typing import Final

import numpy as np

from cloneproof.engines.monte_carlo.arm_table import arm_rows
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.randomised.click_table import CLICK_ARM
from cloneproof.engines.monte_carlo.randomised.run_kernel import RandomisedPlan, run_randomised
from cloneproof.engines.monte_carlo.randomness.run_means import means_of_runs, run_streams
from cloneproof.market.rewards import bernoulli
from cloneproof.mechanisms.rules import epsilon_greedy, thompson

PRIORITIES: Final = (thompson.posterior_draw, epsilon_greedy.priority)


def randomised_applies(job: Job) -> bool:
    """Whether the job is Thompson sampling or epsilon-greedy over all arms, with Bernoulli rewards and no restarts."""
    mechanism, rule = job.mechanism, job.mechanism.arm
    flat = mechanism.agent is None and mechanism.sample is None
    once = not (mechanism.clearing.planned_epochs or mechanism.clearing.flat_epochs)
    usual = rule.explore == 0 and not rule.commits and rule.draws == 0 and rule.clock == "current"
    known = rule.priority in PRIORITIES and job.market.family.quantile is bernoulli.quantile
    return flat and once and usual and known


def randomised_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1: payoffs bit for bit those of `simulate_run`."""
    rule, agents = job.mechanism.arm, len(job.market.agents)
    rows = arm_rows(job)
    arms = np.zeros(len(rows), CLICK_ARM)
    for field, values in zip(("agent", "number", "original", "copy", "column"), zip(*rows, strict=True), strict=True):
        arms[field] = values
    arms["key"] = (arms["agent"] << 32) + arms["number"]
    plan = RandomisedPlan(
        job.market.horizon,
        rule.priority is thompson.posterior_draw,
        float(rule.parameters[0]) if rule.parameters else 0.0,
    )
    payoff, served, regret = np.zeros((count, agents)), np.zeros((count, agents)), np.zeros(count)
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    run_randomised(plan, arms, means, streams, payoff, served, regret)
    return Outcomes(payoff * job.market.share, regret, served * job.market.share)
