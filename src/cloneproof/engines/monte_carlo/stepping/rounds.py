"""Stepping kernel: the rounds of runs, one by one.

The rounds are those of `mechanisms.online.state` with rewards that arrive at once, with one level or two. One loop
plays any of them and calls the picks of its rules, which are compiled for each rule, by their addresses.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Final

import numba as nb
import numpy as np
from numba.core.errors import NumbaError

from cloneproof._arrays import FloatArray, WordArray
from cloneproof.engines.monte_carlo.compiling import compiled, inlined, source_stamp, ticks, uncounted, uniform, word
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.numba_runs import (
    ONE,
    ZERO,
    admitted_arms,
    begin_run,
    close_run,
    level_stream,
    pay,
    rank_by_word,
    streams_of,
)
from cloneproof.engines.monte_carlo.runs import RunResults
from cloneproof.engines.monte_carlo.stepping.functions import (
    RuleFunctions,
    compiled_family,
    reward_at,
)
from cloneproof.engines.monte_carlo.stepping.levels import (
    candidate_to_explore,
    enter,
    native_pick,
    open_level,
    open_window,
    pick_at,
    show_siblings,
    specialised_pick,
)
from cloneproof.engines.monte_carlo.stepping.plan import plan_of, tables_of


@compiled
def play_rounds(plan, tables, streams):
    """Play all rounds of a run; False if it cannot continue. With two levels, row i is agent i."""
    plan = uncounted(plan)
    arms, rows, levels, paid = uncounted(tables)
    agent_rule, arm_rule, agents, level = plan.agent_rule, plan.arm_rule, levels[0], levels[0]
    version, epoch_end, i = ZERO, ZERO, ZERO
    open_level(agents, rows, agent_rule.explore, level_stream(streams.levels, ZERO, ZERO))
    _open_arms(plan, rows, levels, streams.levels, version)
    # Each round as the session plays it: clear what an epoch or the award clears, pick an agent, pick an arm, then
    # enter the reward where it counts. Whether it counts for the arm is decided before the pick, since a committing
    # level judges its explored rounds only.
    for t in range(1, plan.horizon + 1):
        clock = t
        if plan.in_epochs and t > epoch_end:
            version += 1
            epoch_end, explore = plan.epochs[version, 0], plan.epochs[version, 1]
            open_level(level, rows, explore, level_stream(streams.levels, version, ZERO))
        if not plan.flat:
            i = _pick(agents, t, agent_rule, rows)
            if i < 0:
                return False
            if version == 0 and plan.award and agents.rounds >= agents.needed:
                version = ONE
                _open_arms(plan, rows, levels, streams.levels, version)
            level = levels[1 + i]
            clock = level.rounds + 1
        arm_counts = not arm_rule.commits or level.rounds < level.needed
        k = _pick(level, clock, arm_rule, rows)
        if k < 0:
            return False
        level.rounds += 1
        # A tape is read by position, so pull number p of an arm has the same reward in every world that has the arm.
        arm = arms[rows[k].arm]
        u = uniform(arm.tape, arm.pulls)
        arm.pulls += 1
        high, low, hit = np.int64(u < arm.mean), ZERO, np.int64(u < arm.mean)
        if not plan.coins:
            reward = _reward(plan, arm.mean, u)
            if reward != reward:
                return False
            high, low = ticks(reward)
            hit = np.int64(uniform(streams.coins, t) < reward)  # the coin that stands for it
        pay(paid, arm.agent, high, low)
        if not plan.flat:
            if (not agent_rule.commits or agents.choice < 0) and _scores(plan, rows[i].arrived, level):
                enter(rows[i], hit if agent_rule.binarise else high, ZERO if agent_rule.binarise else low)
            agents.rounds += 1
            level.served += 1
        if arm_counts:
            enter(rows[k], hit if arm_rule.binarise else high, ZERO if arm_rule.binarise else low)
    return True


@inlined
def _pick(level, clock, rule, rows):
    """Return the candidate to play in the level's round `clock` (from 1)."""
    if level.choice >= 0:
        return level.choice
    if level.rounds < level.needed:
        return candidate_to_explore(level, rule.order, rows)
    clock -= np.int64(rule.completed)
    if clock > level.until:
        open_window(level, clock, rule.logarithms)
    if rule.siblings:
        show_siblings(level, rows)
    log_clock = rule.logarithms[clock] if len(rule.logarithms) else 0.0
    k = pick_at(rule.pick, level, rows, clock, log_clock)
    if rule.commits:
        level.choice = k
    return k


@compiled
def _open_arms(plan, rows, levels, stream, version):
    """Open levels for the arms of all agents, where agents are a level of their own."""
    rule = plan.arm_rule
    for i in range(len(levels) - 1):
        if version == 0:
            levels[1 + i].served = 0
        open_level(levels[1 + i], rows, rule.explore, level_stream(stream, version, i + 1))


@compiled
def _scores(plan, judged, level):
    """Whether the reward of this trial round counts towards the score of the level's agent; its arm is picked."""
    if level.registered > plan.most_arms or judged >= plan.scored or level.served < level.skipped:
        return False
    return not plan.fresh or level.choice >= 0


@compiled
def _reward(plan, mean, u):
    """Return the reward of an arm with this mean at level u; NaN if a session or an exact sum cannot take it."""
    # The first check is written so that a NaN fails it as well. The second is made only for a user's reward family,
    # whose values may lie outside of the support that it declares.
    reward = reward_at(plan.quantile, mean, u)
    if not abs(reward) <= plan.largest:
        return np.nan
    if plan.checked:
        listed = len(plan.values) == 0
        for v in range(len(plan.values)):
            listed = listed or reward == plan.values[v]
        if not (listed and plan.low <= reward <= plan.high):
            return np.nan
    return reward


@compiled
def _open_run(plan, tables, run_stream, means):
    """Prepare the tables of a run for its first round; return its streams."""
    streams = streams_of(run_stream)
    begin_run(tables.arms, plan.arms, streams.tapes, means)
    tables.paid[:] = 0
    if plan.sample > 0:
        _sample_arms(plan, streams.sample, tables)
    return streams


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


def _any(sources):
    @nb.njit(cache=True, nogil=True)
    def run_any(plan, tables, means, run_streams, results):
        for r in range(len(run_streams) if sources else 0):
            streams = _open_run(plan, tables, run_streams[r], means[r])
            done = play_rounds(plan, tables, streams)
            close_run(tables.arms, tables.paid, results, r)
            # A priority was NaN, or a reward is outside its family's support or too large for exact sums.
            if not done:
                results.payoff[r] = np.nan

    return run_any


run_any: Final = _any(source_stamp())
"""Compiled once for these sources."""


def stepping_applies(job: Job) -> bool:
    """Whether rules and reward family compile; built-in ones do. Planned epochs and slots do not."""
    if job.mechanism.in_epochs or job.mechanism.draws:
        return False
    rules = job.mechanism.at_horizon(len(job.market.agents), job.market.horizon).rules
    picks = [specialised_pick(RuleFunctions.of(rule)) for rule in rules]
    return compiled_family(job.market.family) is not None and None not in picks


def play_stepping(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a job that compiles: payoffs are bits of `simulate_run`."""
    running = job.mechanism.at_horizon(len(job.market.agents), job.market.horizon)
    family = compiled_family(job.market.family)
    assert family is not None
    picks = list(map(native_pick, running.rules))
    plan = plan_of(job, running, picks, family[0])
    try:
        run_any(plan, tables_of(job, running, plan), means, streams, results)
    except NumbaError:
        raise
    except Exception:  # a user's priority raised: the reference says in which round
        results.payoff[:] = np.nan
