"""Who is played next: the leading agent, then its leading arm, or its leading group of arms with equal statistics."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.arm_table import admitted_arms
from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.ucb.exploration_order import sample_by_hash, sort_for_exploration
from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import member
from cloneproof.engines.monte_carlo.ucb.groups.group_lists import empty_level, members_of
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import COUNT, LEADER, RIVALS, UNTIL, GroupLevel
from cloneproof.engines.monte_carlo.ucb.groups.leading_group import find_leading_group
from cloneproof.engines.monte_carlo.ucb.leader_scan import AHEAD, FIRST, NO, estimated_leader, exact_leader
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import GOLDEN
from cloneproof.mechanisms.online.streams import EXPLORE_STREAM

LARGEST_SCAN = 24
"""Up to so many candidates a scan of all of them is cheaper than keeping groups."""

_NONE = np.int64(-1)
_ZERO = np.uint64(0)


class AgentLead(NamedTuple):
    """The agent to be played, by the number of its level, and until which round it leads if nothing falls.

    No other agent's index exceeds `rivals` until then. The next bound is computed for `ahead` rounds.
    """

    level: np.int64
    until: np.int64
    rivals: float
    ahead: np.int64


class ArmChoice(NamedTuple):
    """What is played of a level of so many `arms` after so many `rounds`.

    One arm, by its `position`; or, where that is -1, members of a `group`; or, where that is -1 too, arms that were
    never pulled. The clock of the level shows `clock`, `last` is the last round of this choice, and no other arm's
    index exceeds `rivals` until then.
    """

    arms: np.int64
    rounds: np.int64
    clock: np.int64
    position: np.int64
    group: np.int64
    last: np.int64
    rivals: float


@inlined
def choose_agent(plan, work, tie_stream, lead, t):
    """Step 1: the agent of round t, after the `lead` that ended."""
    table, levels = plan.agent_table, len(plan.arms.first) - 1
    if plan.flat:
        return lead
    if t <= levels:
        return AgentLead(work.agent_order[t - 1], t, lead.rivals, lead.ahead)
    if levels == 1:
        return AgentLead(lead.level, plan.horizon, lead.rivals, lead.ahead)
    ahead = min(1024, 2 * lead.ahead) if t > lead.until else max(8, lead.ahead >> 1)
    until, clock = min(t + ahead, plan.horizon), t - table.shift
    level, rivals, sure = estimated_leader(work.agents, FIRST, levels, table, clock, until - table.shift)
    if not sure:
        level = exact_leader(work.agents, FIRST, levels, NO, table, clock, tie_stream, t - 1)
        until = t
    return AgentLead(level, until, rivals, ahead)


@inlined
def choose_arm(plan, groups, work, streams, lead, t):
    """Step 2: the arm of that agent, or its group of arms."""
    level, levels = lead.level, work.levels
    first, count, rounds = plan.arms.first[level], levels.counts[level], levels.rounds[level]
    if rounds == 0:
        count = _open_level(plan, work, streams, level)
        levels.counts[level] = count
        if count > LARGEST_SCAN:
            empty_level(groups, GroupLevel(level, first))
    clock = rounds + 1 - plan.arm_table.shift
    if rounds < count:
        if count > LARGEST_SCAN:
            return ArmChoice(count, rounds, clock, _NONE, _NONE, lead.until, -1.0)
        p = first + work.positions.order[first + rounds]
        _start_tape(plan.arms, work, p)
        return ArmChoice(count, rounds, clock, p, _NONE, t, -1.0)
    if count == 1:
        return ArmChoice(count, rounds, clock, first, _NONE, lead.until, -1.0)
    if count <= LARGEST_SCAN:
        p = _scanned_arm(plan, work, level, count, clock)
        last = min(lead.until, t + levels.until[level] - clock)
        return ArmChoice(count, rounds, clock, p, _NONE, last, levels.rivals[level])
    return _grouped_arm(plan, groups, work, lead, count, clock, t)


@inlined
def _scanned_arm(plan, work, level, count, clock):
    """The leading arm of a small level; all are scanned where the last leader may not lead any more."""
    table, levels, means, roots = plan.arm_table, work.levels, work.arms.means, work.arms.roots
    p = levels.leader[level]
    if clock <= levels.until[level] and means[p] + table.root[clock] * roots[p] > levels.rivals[level]:
        return p
    first, until = plan.arms.first[level], min(clock + AHEAD, len(table.root) - 1)
    p, rivals, sure = estimated_leader(work.arms, first, count, table, clock, until)
    if not sure:
        rounds = levels.rounds[level]
        p = exact_leader(work.arms, first, count, plan.constant, table, clock, levels.ties[level], rounds)
        until = clock
    levels.leader[level], levels.until[level], levels.rivals[level] = p, until, rivals
    return p


@inlined
def _grouped_arm(plan, groups, work, lead, count, clock, t):
    """The leading group of a large level, and the arm where the group has only one or a tie was drawn."""
    ints, floats, _, at = groups
    level, table = GroupLevel(lead.level, plan.arms.first[lead.level]), plan.arm_table
    row, bound, rounds = at.level + 8 * level.number, at.bound + 4 * level.number, work.levels.rounds[level.number]
    g, k = ints[row + LEADER], _NONE
    if not (
        clock <= ints[row + UNTIL] and floats[2 * g] + table.root[clock] * floats[2 * g + 1] > floats[bound + RIVALS]
    ):
        k = find_leading_group(groups, level, table, clock, work.levels.ties[level.number], rounds, plan.constant)
        g = ints[row + LEADER]
    last = min(lead.until, t + ints[row + UNTIL] - clock)
    if k >= 0:
        last = t
    elif ints[8 * g + COUNT] == 1:
        k = np.int64(member(members_of(groups, g, np.uint64(at.blocks)), _ZERO))
    position = level.first + k if k >= 0 else _NONE
    return ArmChoice(count, rounds, clock, position, g, last, floats[bound + RIVALS])


@compiled
def _open_level(plan, work, streams, level):
    """Sample its arms if the mechanism does, put them in the order of exploration, and return their number."""
    arms, kept = plan.arms, work.positions.arm
    first, count = arms.first[level], arms.first[level + 1] - arms.first[level]
    keys = arms.key[first : first + count]
    stream = streams.sample
    if not plan.flat:
        stream = word(stream, np.uint64(level))
    size = arms.sample if arms.admitted == 0 else admitted_arms(stream, count, arms.admitted)
    if size > 0 and size < count:
        count = size
        sample_by_hash(stream, keys, count, kept[first : first + count])
        keys = keys[kept[first : first + count]]
    else:
        for k in range(count):
            kept[first + k] = k
    for k in range(count):
        kept[first + k] += first
    stream = word(work.levels.streams[level], EXPLORE_STREAM)
    sort_for_exploration(stream, keys, work.positions.order[first : first + count])
    return count


@inlined
def _start_tape(arms, work, p):
    """Start the reward tape and the statistics of the arm at position p."""
    arm, tape = work.positions.arm[p], work.positions.tape
    original = arms.original[arm]
    tape[2 * p] = word(work.originals.tapes[original], arms.copy[arm]) + GOLDEN
    tape[2 * p + 1] = work.originals.thresholds[original]
    work.arms.pulls[p] = work.arms.sums[p] = 0
