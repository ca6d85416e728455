"""A chunk of UCB runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.randomness.run_means import means_of_runs, run_streams
from cloneproof.engines.monte_carlo.ucb.chunk_runs import run_all
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import new_memory
from cloneproof.engines.monte_carlo.ucb.ucb_plan import registered, table
from cloneproof.engines.monte_carlo.ucb.work_arrays import new_work
from cloneproof.market.rewards import bernoulli, deterministic
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.rules import slow_ucb, ucb

LONGEST = 2_000_000
MOST_ARMS = 100_000


def ucb_applies(job: Job) -> bool:
    """Whether these kernels run the job."""
    mechanism, family = job.mechanism, job.market.family
    if mechanism.restart is not None or not mechanism.scoring.counts_all or mechanism.fallback is not None:
        return False
    if not _runs(mechanism.arm, slow=False) or (mechanism.agent is not None and not _runs(mechanism.agent, slow=True)):
        return False
    if family.quantile not in (bernoulli.quantile, deterministic.quantile):
        return False
    arms = sum(map(sum, job.copies.values()))
    return job.market.horizon <= LONGEST and arms <= MOST_ARMS


def _runs(rule: Rule, slow: bool) -> bool:
    """Whether a rule is UCB as the tables know it, with a constant that leaves floats room."""
    if rule.priority is not ucb.index and not (slow and rule.priority is slow_ucb.index):
        return False
    plain = rule.explore == 1 and rule.order == "round-robin" and not rule.commits and not rule.binarise
    return plain and 1e-9 <= rule.parameters[0] <= 1e9


def ucb_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Payoffs and regret of runs first, first + 1, .."""
    pulls, wins, means = _played(job, first, count, np.empty((count, 0), np.int64))
    return Outcomes(_payoffs(job, pulls, wins, means), _regrets(pulls, means))


def ucb_decisions(job: Job, first: int, count: int) -> Any:
    """The registered arm of each round (runs x horizon, numbered through all agents): for tests."""
    trace = np.empty((count, job.market.horizon), np.int64)
    _played(job, first, count, trace)
    return trace


def _played(job: Job, first: int, count: int, trace: Any) -> tuple[Any, Any, FloatArray]:
    arms, market, mechanism = registered(job), job.market, job.mechanism
    means = means_of_runs(job, first, count)
    arm_table = table(mechanism.arm, market.horizon)
    agent_table = arm_table if mechanism.agent is None else table(mechanism.agent, market.horizon)
    constant = market.family.quantile is deterministic.quantile
    counts = np.diff(arms.first).tolist()
    work = new_work(sum(counts), len(counts), means.shape[1], constant)
    pulls = np.zeros((count, means.shape[1]), np.int64)
    wins = np.zeros((count, len(market.agents)), np.int64)
    run_all(
        arm_table, agent_table, mechanism.agent is None, market.horizon, arms, new_memory(counts), work,
        run_streams(job.seed, first, count), means, constant, pulls, wins, trace,
    )  # fmt: skip
    return pulls, wins, means


def _payoffs(job: Job, pulls: Any, wins: Any, means: FloatArray) -> FloatArray:
    share = job.market.share
    if job.market.family.quantile is not deterministic.quantile:
        return np.asarray(share * wins.astype(np.float64))
    ends = np.cumsum([agent.count for agent in job.market.agents])
    payoff = np.empty(wins.shape)
    for row, numbers, values in zip(
        payoff, pulls.tolist(), np.rint(means * 2.0**60).astype(np.int64).tolist(), strict=True
    ):
        products = [n * v for n, v in zip(numbers, values, strict=True)]
        for i, end in enumerate(ends):
            row[i] = share * (sum(products[end - job.market.agents[i].count : end]) / (1 << 60))
    return payoff


def _regrets(pulls: Any, means: FloatArray) -> FloatArray:
    """The sum of all rounds' losses, rounded once as `math.fsum` does: each product is split into two doubles."""
    losses = means.max(axis=1, keepdims=True) - means
    numbers = pulls.astype(np.float64)
    high = losses * (2.0**27 + 1)
    high = high - (high - losses)  # Veltkamp: the upper 26 bits; times a whole number below 2^27 that is exact
    parts = np.concatenate([numbers * high, numbers * (losses - high)], axis=1)
    return np.array([math.fsum(row) for row in parts.tolist()])
