"""The rounds of one run: `mechanisms.online.state` with rewards that arrive at once, with one level or two."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.compiling import compiled, source_stamp, ticks, uncounted, uniform, word
from cloneproof.engines.monte_carlo.job import Job, Outcomes, means_of_runs, reference_run, run_streams
from cloneproof.engines.monte_carlo.runs import (
    ONE,
    ZERO,
    RunResults,
    admitted_arms,
    begin_run,
    close_run,
    level_stream,
    pay,
    rank_by_word,
    streams_of,
)
from cloneproof.engines.monte_carlo.stepping.functions import reward_at
from cloneproof.engines.monte_carlo.stepping.level import enter, open_level, pick
from cloneproof.engines.monte_carlo.stepping.loops import greedy_rounds, leader_rounds, thompson_rounds
from cloneproof.engines.monte_carlo.stepping.plan import Loop, functions_of, loop_of, plan_of, tables_of
from cloneproof.mechanisms.mechanism import Mechanism


@compiled
def any_rounds(plan, tables, streams, decisions):
    """All rounds of a run of any mechanism; False if it cannot continue. With two levels, row i is agent i."""
    plan = uncounted(plan)
    arms, rows, levels, paid, _ = uncounted(tables)
    agent_rule, arm_rule, agents, level = plan.agent_rule, plan.arm_rule, levels[0], levels[0]
    version, epoch_end, i = ZERO, ZERO, ZERO
    open_level(agents, rows, agent_rule.explore, level_stream(streams.levels, ZERO, ZERO), agent_rule.randomised)
    _open_arms(plan, rows, levels, streams.levels, version)
    for t in range(1, plan.horizon + 1):
        clock = t
        if plan.in_epochs and t > epoch_end:
            version += 1
            epoch_end, explore = plan.epochs[version, 0], plan.epochs[version, 1]
            open_level(level, rows, explore, level_stream(streams.levels, version, ZERO), arm_rule.randomised)
        if not plan.flat:
            i = pick(agents, t, agent_rule, plan.logarithms, rows)
            if i < 0:
                return False
            if version == 0 and plan.award and agents.rounds >= agents.needed:
                version = ONE
                _open_arms(plan, rows, levels, streams.levels, version)
            level = levels[1 + i]
            clock = level.rounds + 1
        arm_counts = not arm_rule.commits or level.rounds < level.needed
        k = pick(level, clock, arm_rule, plan.logarithms, rows)
        if k < 0:
            return False
        level.rounds += 1
        if len(decisions):
            decisions[t - 1] = rows[k].arm
        reward = _pull(plan, arms[rows[k].arm], paid)
        if reward != reward:
            return False
        if not plan.flat:
            if (not agent_rule.commits or agents.choice < 0) and _scores(plan, rows[i].arrived, level):
                enter(rows[i], reward, agent_rule.binarise, streams.coins, t)
            agents.rounds += 1
            level.served += 1
        if arm_counts:
            enter(rows[k], reward, arm_rule.binarise, streams.coins, t)
    return True


@compiled
def _open_arms(plan, rows, levels, stream, version):
    """Fresh levels for the arms of all agents, where agents are a level of their own."""
    rule = plan.arm_rule
    for i in range(len(levels) - 1):
        if version == 0:
            levels[1 + i].served = 0
        open_level(levels[1 + i], rows, rule.explore, level_stream(stream, version, i + 1), rule.randomised)


@compiled
def _scores(plan, judged, level):
    """Whether the reward of this trial round counts towards the score of the level's agent; its arm is picked."""
    if level.registered > plan.most_arms or judged >= plan.scored or level.served < level.skipped:
        return False
    return not plan.fresh or level.choice >= 0


@compiled
def _pull(plan, arm, paid):
    """The next reward of the arm's tape, paid to its agent; NaN if a session or an exact sum cannot take it."""
    reward = reward_at(plan.quantile, arm.mean, uniform(arm.tape, arm.pulls))
    arm.pulls += 1
    if not abs(reward) <= plan.largest:
        return np.nan
    if plan.checked:
        listed = len(plan.values) == 0
        for v in range(len(plan.values)):
            listed = listed or reward == plan.values[v]
        if not (listed and plan.low <= reward <= plan.high):
            return np.nan
    pay(paid, arm.agent, *ticks(reward))
    return reward


class SteppingTrace(NamedTuple):
    """The pulls of each original in each run of a chunk, and the arms of the last run; empty if not requested."""

    pulls: IntArray
    decisions: IntArray


@compiled
def _open_run(plan, tables, run_stream, means):
    """The tables of a run before its first round; returns its streams."""
    streams = streams_of(run_stream)
    begin_run(tables.arms, plan.arms, streams.tapes, means)
    tables.paid[:] = 0
    if plan.sample > 0:
        _sample_arms(plan, streams.sample, tables)
    return streams


@compiled
def _close_run(tables, results, trace, r, done):
    """Store the outcome of run r.

    A NaN reward leaves the run to the reference simulator: a priority was NaN, or a reward is outside its family's
    support or too large for exact sums.
    """
    arms = tables.arms
    close_run(arms, tables.paid, results, r)
    for a in range(len(arms)):
        trace.pulls[r, arms[a].column] += arms[a].pulls
    if not done:
        results.payoff[r] = np.nan


@compiled
def _sample_arms(plan, sample_stream, tables):
    """Keep the uniform sample of the arms of each agent, or of all arms, that the session keeps, in their order."""
    arms, rows, levels = tables.arms, tables.candidates, tables.levels
    begin = np.int64(0)
    for i in range(np.int64(0 if plan.flat else 1), len(levels)):
        level = levels[i]
        end = begin + level.registered
        stream = sample_stream if plan.flat else word(sample_stream, i - 1)
        for a in range(begin, end):
            arms[a].word = word(stream, arms[a].key)
        rank_by_word(arms, begin, end)
        if plan.admitted > 0:
            level.end = level.begin + admitted_arms(stream, end - begin, plan.admitted)
        kept = level.end - level.begin
        for k in range(end - begin):
            arms[begin + arms[begin + k].rank].word = np.uint64(k < kept)
        at = level.begin
        for a in range(begin, end):
            if arms[a].word == np.uint64(1):
                rows[at].arm, rows[at].key = a, arms[a].key
                at += 1
        begin = end


def _cached(sources: int) -> dict[Loop, Any]:
    """The kernels, each compiled when first needed and kept on disk for these sources.

    Their names are unique, since Numba links cached functions by name.
    """

    @nb.njit(cache=True, nogil=True)
    def run_any(plan, tables, means, run_streams, results, trace):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            _close_run(tables, results, trace, r, any_rounds(plan, tables, streams, trace.decisions))

    @nb.njit(cache=True, nogil=True)
    def run_leader(plan, tables, means, run_streams, results, trace):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            _close_run(tables, results, trace, r, leader_rounds(plan, tables, streams, trace.decisions))

    @nb.njit(cache=True, nogil=True)
    def run_thompson(plan, tables, means, run_streams, results, trace):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            _close_run(tables, results, trace, r, thompson_rounds(plan, tables, streams, trace.decisions))

    @nb.njit(cache=True, nogil=True)
    def run_greedy(plan, tables, means, run_streams, results, trace):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            _close_run(tables, results, trace, r, greedy_rounds(plan, tables, streams, trace.decisions))

    return {"any": run_any, "leader": run_leader, "thompson": run_thompson, "greedy": run_greedy}


RUN_CHUNK: Final = _cached(source_stamp())


def stepping_applies(job: Job) -> bool:
    """Whether rules and reward family compile; built-in ones do. Planned epochs and slots do not."""
    if job.mechanism.clearing.planned_epochs or job.mechanism.arm.draws:
        return False
    return functions_of(job, _running(job)) is not None


def step_outcomes(job: Job, first: int, count: int, loop: Loop | None = None) -> Outcomes:
    """Runs first, .., first + count - 1 of a job that compiles: payoffs bit for bit those of `simulate_run`.

    Uses the fastest loop for the job; all loops make the same decisions.
    """
    return _outcomes(job, first, count, np.zeros(0, np.int64), loop or loop_of(job))


def decisions_of_run(job: Job, run: int, loop: Loop | None = None) -> IntArray:
    """The arm of every round of a run, numbered through all agents in the order of registration."""
    decisions = np.zeros(job.market.horizon, np.int64)
    _outcomes(job, run, 1, decisions, loop or loop_of(job))
    return decisions


def _outcomes(job: Job, first: int, count: int, decisions: IntArray, loop: Loop) -> Outcomes:
    running = _running(job)
    functions = functions_of(job, running)
    assert functions is not None
    plan, share = plan_of(job, running, functions, loop), job.market.share
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    results = RunResults.empty(count, plan.agents)
    trace = SteppingTrace(np.zeros(means.shape, np.int64), decisions)
    RUN_CHUNK[loop](plan, tables_of(job, running, plan, loop == "leader"), means, streams, results, trace)
    payoff, served, regret = results.payoff * share, results.served * share, results.regret
    if loop_of(job) == "leader":  # UCB's sums are those by original, however it was played
        return Outcomes(payoff, exact_regrets(trace.pulls, means), served_by_original(job, trace.pulls, means))
    for r in np.flatnonzero(np.isnan(payoff[:, 0])):
        run = reference_run(job, first + int(r))  # says what is wrong, or does what compiled code cannot
        payoff[r], served[r], regret[r] = list(run.payoff.values()), list(run.served.values()), run.regret
    return Outcomes(payoff, regret, served)


def served_by_original(job: Job, pulls: IntArray, means: FloatArray) -> FloatArray:
    """Share times the means of the pulls of each agent, added up in the order of its originals."""
    served, column = np.zeros((len(means), len(job.market.agents))), 0
    for i, agent in enumerate(job.market.agents):
        for _ in range(agent.count):
            served[:, i] += pulls[:, column] * means[:, column]
            column += 1
    return served * job.market.share


def exact_regrets(pulls: IntArray, means: FloatArray) -> FloatArray:
    """The sum of all rounds' losses, rounded once as `math.fsum` does: each product is split into two doubles."""
    losses = means.max(axis=1, keepdims=True) - means
    numbers = pulls.astype(np.float64)
    high = losses * (2.0**27 + 1)
    high = high - (high - losses)  # Veltkamp: the upper 26 bits; times a whole number below 2^27 that is exact
    parts = np.concatenate([numbers * high, numbers * (losses - high)], axis=1)
    return np.array([math.fsum(row) for row in parts.tolist()])


def _running(job: Job) -> Mechanism:
    return job.mechanism.at_horizon(len(job.market.agents), job.market.horizon)
