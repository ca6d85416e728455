"""A chunk of UCB runs."""

from __future__ import annotations

import math

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.randomness.run_means import means_of_runs, run_streams
from cloneproof.engines.monte_carlo.ucb.chunk_kernel import UcbResults, run_chunk
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import new_groups
from cloneproof.engines.monte_carlo.ucb.ucb_plan import ucb_plan
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
    if not _is_ucb(mechanism.arm) or (mechanism.agent is not None and not _is_ucb(mechanism.agent, or_slow=True)):
        return False
    if family.quantile not in (bernoulli.quantile, deterministic.quantile):
        return False
    arms = sum(map(sum, job.copies.values()))
    return job.market.horizon <= LONGEST and arms <= MOST_ARMS


def _is_ucb(rule: Rule, or_slow: bool = False) -> bool:
    """Whether a rule is UCB as the tables know it, with a constant for which no float overflows or vanishes."""
    if rule.priority is not ucb.index and not (or_slow and rule.priority is slow_ucb.index):
        return False
    explores_once = rule.explore == 1 and rule.order == "round-robin"
    return explores_once and not rule.commits and not rule.binarise and 1e-9 <= rule.parameters[0] <= 1e9


def ucb_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Payoffs and regret of runs first, first + 1, .."""
    means = means_of_runs(job, first, count)
    results = _results(job, first, means, np.empty((count, 0), np.int64))
    served = _served(job, results.pulls, means)
    return Outcomes(ucb_payoffs(job, results, means), ucb_regrets(results.pulls, means), served)


def ucb_decisions(job: Job, first: int, count: int) -> IntArray:
    """The registered arm of each round (runs x horizon, numbered through all agents): for tests."""
    trace = np.empty((count, job.market.horizon), np.int64)
    return _results(job, first, means_of_runs(job, first, count), trace).trace


def _results(job: Job, first: int, means: FloatArray, trace: IntArray) -> UcbResults:
    """Play the runs with these means (one row for each), of which the first has that number."""
    count, originals = means.shape
    plan = ucb_plan(job)
    counts = np.diff(plan.arms.first).tolist()
    pulls, wins = np.zeros((count, originals), np.int64), np.zeros((count, len(job.market.agents)), np.int64)
    results = UcbResults(pulls, wins, trace)
    work = new_work(sum(counts), len(counts), originals, plan.constant)
    run_chunk(plan, new_groups(counts), work, run_streams(job.seed, first, count), means, results)
    return results


def ucb_payoffs(job: Job, results: UcbResults, means: FloatArray) -> FloatArray:
    """Share times wins; share times the exact sum of pulls times means where rewards are constant."""
    share = job.market.share
    if job.market.family.quantile is not deterministic.quantile:
        return np.asarray(share * results.wins.astype(np.float64))
    ends = np.cumsum([agent.count for agent in job.market.agents])
    payoff = np.empty(results.wins.shape)
    ticks = np.rint(means * 2.0**60).astype(np.int64)
    for row, numbers, values in zip(payoff, results.pulls.tolist(), ticks.tolist(), strict=True):
        products = [n * v for n, v in zip(numbers, values, strict=True)]
        for i, end in enumerate(ends):
            row[i] = share * (sum(products[end - job.market.agents[i].count : end]) / (1 << 60))
    return payoff


def _served(job: Job, pulls: IntArray, means: FloatArray) -> FloatArray:
    """Share times the means of the pulls of each agent, added up in order."""
    served, column = np.zeros((len(means), len(job.market.agents))), 0
    for i, agent in enumerate(job.market.agents):
        for _ in range(agent.count):
            served[:, i] += pulls[:, column] * means[:, column]
            column += 1
    return served * job.market.share


def ucb_regrets(pulls: IntArray, means: FloatArray) -> FloatArray:
    """The sum of all rounds' losses, rounded once as `math.fsum` does: each product is split into two doubles."""
    losses = means.max(axis=1, keepdims=True) - means
    numbers = pulls.astype(np.float64)
    high = losses * (2.0**27 + 1)
    high = high - (high - losses)  # Veltkamp: the upper 26 bits; times a whole number below 2^27 that is exact
    parts = np.concatenate([numbers * high, numbers * (losses - high)], axis=1)
    return np.array([math.fsum(row) for row in parts.tolist()])
