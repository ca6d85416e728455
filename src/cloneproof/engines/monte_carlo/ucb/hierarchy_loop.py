"""Runs of any shape: one level or two, two arms or thousands.

    1. Choose the agent: the one of highest index, and a bound on the others' indices for some rounds.
    2. Choose its arm in the same way; in a large level, its group of arms with equal statistics.
    3. Pull that arm, or members of that group, with everything they need in registers, until one of the two indices
       falls to its bound; then go on with 1.

A pull costs one hash for the reward (two products of 64 bits bound it from below, about 3 ns), one index for each
level, and in a group the search for the member that the lot names. Each new choice costs a mispredicted branch and a
scan of the candidates, some 40 ns for ten: with six pulls between two choices that is half of the time.
Nothing grows with the number of arms but the start of a run, where they are sorted by hash.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream
from cloneproof.engines.monte_carlo.ucb.arm_pulls import (
    PlayedAgent,
    RandomArm,
    Span,
    pull_constant_arm,
    pull_random_arm,
)
from cloneproof.engines.monte_carlo.ucb.exploration_order import sort_for_exploration
from cloneproof.engines.monte_carlo.ucb.groups.group_lists import add_up_groups, empty_level, regroup
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import PULLS, STATISTIC, GroupLevel, GroupStatistics
from cloneproof.engines.monte_carlo.ucb.groups.group_pulls import explore_arms, pull_group
from cloneproof.engines.monte_carlo.ucb.leader_choice import LARGEST_SCAN, AgentLead, choose_agent, choose_arm
from cloneproof.engines.monte_carlo.ucb.leader_scan import AHEAD, FIRST
from cloneproof.engines.monte_carlo.ucb.tables.exact_index import TICK
from cloneproof.engines.monte_carlo.uncounted_arrays import uncounted
from cloneproof.mechanisms.online.streams import EXPLORE_STREAM, TIE_STREAM

_NOT_YET, _AHEAD = np.int64(-1), np.int64(AHEAD)


@compiled
def run_hierarchy(plan, groups, work, streams, results):
    """One run: adds pulls by original and wins by agent to the results."""
    plan, groups, work, results = uncounted(plan), uncounted(groups), uncounted(work), uncounted(results)
    agents_stream = level_stream(streams.levels, FIRST, FIRST)
    agent_ties = word(agents_stream, TIE_STREAM)
    _begin_run(plan, work, streams.levels)
    if not plan.flat:
        sort_for_exploration(word(agents_stream, EXPLORE_STREAM), work.agent_keys, work.agent_order)
    lead = AgentLead(FIRST, plan.horizon if plan.flat else _NOT_YET, -1.0, _AHEAD)
    t = np.int64(1)
    while t <= plan.horizon:
        lead = choose_agent(plan, work, agent_ties, lead, t)
        choice = choose_arm(plan, groups, work, streams, lead, t)
        t = _play(plan, groups, work, lead, choice, t, results.trace)
    _add_up(plan, groups, work, results)


@compiled
def _begin_run(plan, work, stream):
    """Levels and agents without statistics."""
    levels, agents = work.levels, work.agents
    for level in range(len(plan.arms.first) - 1):
        levels.streams[level] = level_stream(stream, FIRST, FIRST if plan.flat else level + 1)
        levels.ties[level] = word(levels.streams[level], TIE_STREAM)
        levels.counts[level] = levels.rounds[level] = agents.pulls[level] = agents.sums[level] = 0
        levels.until[level] = -1
        if plan.constant:
            agents.rests[level] = 0


@inlined
def _play(plan, groups, work, lead, choice, t, trace):
    """Step 3: rounds of the chosen arm or group, from t on; returns the round after them."""
    number, agents, agent_table = lead.level, work.agents, plan.agent_table
    level, span = GroupLevel(number, plan.arms.first[number]), Span(t, choice.last, choice.clock, choice.rivals)
    rest = agents.rests[number] if plan.constant else np.int64(0)
    agent = PlayedAgent(
        plan.flat, agent_table.root, agent_table.shift, agents.pulls[number], agents.sums[number], rest, lead.rivals
    )
    if choice.position >= 0:
        whole, rest, end = _pull_arm(plan, groups, work, level, choice, span, agent, trace)
    elif choice.group < 0:
        whole, rest, end = explore_arms(plan, groups, work, level, choice, span, agent, trace)
    else:
        whole, rest, end = pull_group(plan, groups, work, level, choice, span, agent, trace)
    work.levels.rounds[number] = choice.rounds + end - t
    if not plan.flat:
        pulls = agent.pulls + end - t
        agents.pulls[number], agents.sums[number] = pulls, whole
        agents.roots[number] = plan.arm_table.reciprocal_root[pulls]
        agents.means[number] = whole * plan.arm_table.reciprocal[pulls]
        if plan.constant:
            agents.rests[number] = rest
            agents.means[number] = (whole + rest * TICK) * plan.arm_table.reciprocal[pulls]
    return end


@inlined
def _pull_arm(plan, groups, work, level, choice, span, agent, trace):
    """Pull one arm and enter its statistics; returns the agent's sum and the next round."""
    table, arms, p, g, tape = plan.arm_table, work.arms, choice.position, choice.group, work.positions.tape
    arm = work.positions.arm[p]
    original = plan.arms.original[arm]
    pulls, wins = arms.pulls[p], arms.sums[p]
    if g >= 0:
        pulls, wins = groups.ints[8 * g + PULLS], groups.ints[8 * g + STATISTIC]
    if plan.constant:
        mean, statistic = work.originals.means[original], work.originals.classes[original]
        whole, rest, end = pull_constant_arm(mean, work.originals.ticks[original], pulls, span, table, agent)
        pulls += end - span.start
    else:
        random_arm = RandomArm(tape[2 * p], np.int64(tape[2 * p + 1]), pulls, wins)
        tape[2 * p], statistic, end = pull_random_arm(random_arm, span, table, agent)
        whole, rest = agent.whole + statistic - wins, agent.rest
        pulls += end - span.start
        mean = statistic * table.reciprocal[pulls]
    if choice.arms <= LARGEST_SCAN:
        arms.pulls[p], arms.sums[p], arms.means[p], arms.roots[p] = pulls, statistic, mean, table.reciprocal_root[pulls]
    else:
        statistics = GroupStatistics(pulls, statistic, mean, table.reciprocal_root[pulls])
        regroup(groups, level, g, p - level.first, statistics, table.root, table.margin)
    if len(trace):
        trace[span.start - 1 : end - 1] = arm
    return whole, rest, end


@compiled
def _add_up(plan, groups, work, results):
    """Add the statistics of all arms to the results, and forget the groups."""
    arms, levels, positions = plan.arms, work.levels, work.positions
    for number in range(len(arms.first) - 1):
        level = GroupLevel(np.int64(number), arms.first[number])
        if levels.counts[number] > LARGEST_SCAN:
            add_up_groups(groups, level, arms, positions, results)
            empty_level(groups, level)
        else:
            for p in range(level.first, level.first + min(levels.counts[number], levels.rounds[number])):
                place = level.first + positions.order[p]
                original = arms.original[positions.arm[place]]
                results.pulls[original] += work.arms.pulls[place]
                results.wins[arms.agent_of[original]] += work.arms.sums[place]
