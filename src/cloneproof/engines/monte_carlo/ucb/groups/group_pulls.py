"""Pulls of a level whose arms are kept in groups: its exploration, and consecutive pulls of members of one group.

Indices of arrays are unsigned in the loop, for the reason that `arm_pulls` gives.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import inlined
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import two_members
from cloneproof.engines.monte_carlo.ucb.groups.group_lists import group_of, members_of, move
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import COUNT, PULLS, RIVALS, STATISTIC, GroupStatistics
from cloneproof.engines.monte_carlo.ucb.tables.exact_index import BELOW_ONE, TICK
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import GOLDEN, mixed

_1, _2, _6, _9, _63 = (np.uint64(number) for number in (1, 2, 6, 9, 63))
_NONE, _ONCE = np.int64(-1), np.int64(1)  # not literals: see `leader_scan`


@inlined
def pull_group(plan, groups, work, level, choice, span, agent, trace):  # noqa: PLR0912, PLR0915 (one loop in registers)
    """Pull members of a group by lot, each of which then leaves it; returns the agent's sum and the next round.

    The group has two members or more, and one at least is left. While it is played nobody joins it, so the two groups
    to which its members go (after a failure, after a success) are looked up once. Members are searched for in pairs,
    before either is played: a rank among those left by the first is a rank among those there, one higher if it is not
    below that of the first.
    """
    ints, floats, words, at = groups
    table, constant, tape = plan.arm_table, plan.constant, work.positions.tape
    root, reciprocal, reciprocal_root = table.root, table.reciprocal, table.reciprocal_root
    g, t, whole, rest = choice.group, span.start, agent.whole, agent.rest
    pulls, statistic, size = ints[8 * g + PULLS] + 1, ints[8 * g + STATISTIC], ints[8 * g + COUNT]
    ticks = work.originals.ticks[statistic] if constant else 0
    mean, slope = floats[2 * g], floats[2 * g + 1]
    lot = work.levels.ties[level.number] + GOLDEN * np.uint64(choice.rounds + 1)
    left = min(span.last - t + 1, size - 1)
    members = members_of(groups, g, np.uint64(((choice.arms - 1) >> 9) + 1))
    row, sizes, width = members.row, members.sizes, np.uint64(at.width)
    all_sizes, all_blocks, base = np.uint64(at.size), np.uint64(at.blocks), np.uint64(2 * level.first)
    agent_clock, agent_pulls = np.uint64(t - agent.shift), np.uint64(agent.pulls)
    failed = succeeded = -1  # the groups of members after a failure and after a success, once known
    wins = np.int64(0)
    while left > 0:
        rank = np.uint64((mixed(lot) + 0.5) * 2.0**-52 * size)
        other = np.uint64((mixed(lot + GOLDEN) + 0.5) * 2.0**-52 * (size - 1))
        other += np.uint64(other >= rank)
        k, other = two_members(members, rank, other)
        # without a success in two rounds, does the agent still lead? Then neither round need ask
        sure = agent.flat or (
            (whole + rest * TICK) * reciprocal[agent_pulls + _2]
            + agent.root[agent_clock] * reciprocal_root[agent_pulls + _2]
            > agent.rivals
        )
        for second in range(2):
            if second:
                k = other
            won = np.int64(0)
            if constant:
                rest += ticks
                whole += rest >> 60
                rest &= BELOW_ONE
            else:
                x = tape[base + _2 * k]
                won = np.int64(mixed(x) < np.int64(tape[base + _2 * k + _1]))
                tape[base + _2 * k] = x + GOLDEN
                whole += won
            if len(trace):
                trace[t - 1] = work.positions.arm[level.first + np.int64(k)]
            child = succeeded if won else failed
            if child < 0:
                estimate = mean if constant else (statistic + won) * reciprocal[pulls]
                statistics = GroupStatistics(pulls, statistic + won, estimate, reciprocal_root[pulls])
                child = group_of(groups, level, statistics, _NONE, root, table.margin)
                if won:
                    succeeded = child
                else:
                    failed = child
                # only a new group can end the lead of this one, whose index rises with the clock
                clock = min(span.clock + t + 1 - span.start, len(root) - 1)
                if mean + root[clock] * slope <= floats[at.bound + 4 * level.number + RIVALS]:
                    left = 1
            w, bit, block, to = k >> _6, _1 << (k & _63), k >> _9, np.uint64(child)
            words[row + w] ^= bit
            ints[sizes + block] -= 1
            words[to * width + w] ^= bit
            ints[all_sizes + to * all_blocks + block] += 1
            wins += won
            lot += GOLDEN
            size -= 1
            t += 1
            agent_pulls += _1
            agent_clock += _1
            left -= 1
            if not sure:
                agent_mean = (whole + rest * TICK) * reciprocal[agent_pulls]
                if agent_mean + agent.root[agent_clock] * reciprocal_root[agent_pulls] <= agent.rivals:
                    left = 0
            if left == 0:
                break
    ints[8 * g + COUNT] = size
    if succeeded >= 0:
        ints[8 * succeeded + COUNT] += wins
    if failed >= 0:
        ints[8 * failed + COUNT] += t - span.start - wins
    return whole, rest, t


@inlined
def explore_arms(plan, groups, work, level, choice, span, agent, trace):
    """Pull arms that were never pulled, each once and in order; returns the agent's sum and the next round."""
    table, arms, positions, originals = plan.arm_table, plan.arms, work.positions, work.originals
    t, n, whole, rest, agent_pulls = span.start, choice.rounds, agent.whole, agent.rest, agent.pulls
    failed = succeeded = -1
    while True:
        k = positions.order[level.first + n]
        p = level.first + k
        arm = positions.arm[p]
        original = arms.original[arm]
        x = word(originals.tapes[original], arms.copy[arm]) + GOLDEN
        won = np.int64(mixed(x) < originals.thresholds[original])
        positions.tape[2 * p], positions.tape[2 * p + 1] = x + GOLDEN, originals.thresholds[original]
        if len(trace):
            trace[t - 1] = arm
        if plan.constant:
            statistics = GroupStatistics(_ONCE, originals.classes[original], originals.means[original], 1.0)
            child = group_of(groups, level, statistics, _NONE, table.root, table.margin)
            rest += originals.ticks[original]
            whole += rest >> 60
            rest &= BELOW_ONE
        else:
            child = succeeded if won else failed
            whole += won
            if child < 0:
                statistics = GroupStatistics(_ONCE, won, np.float64(won), 1.0)
                child = group_of(groups, level, statistics, _NONE, table.root, table.margin)
                if won:
                    succeeded = child
                else:
                    failed = child
        move(groups, _NONE, child, k)
        n += 1
        t += 1
        agent_pulls += 1
        if t > span.last or n == choice.arms:
            break
        if not agent.flat:
            agent_mean = whole * table.reciprocal[agent_pulls]
            if plan.constant:
                agent_mean = (whole + rest * TICK) * table.reciprocal[agent_pulls]
            if agent_mean + agent.root[t - agent.shift] * table.reciprocal_root[agent_pulls] <= agent.rivals:
                break
    return whole, rest, t
