"""Stretches: one arm, or the members of one group, played until a bar is reached. Here the time goes.

Indices of arrays are unsigned, as Numba asks of a signed one whether it counts from the end, which is a third of all
instructions in loops as tight as these; and what is not needed between two pulls is not written down.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import two_members
from cloneproof.engines.monte_carlo.ucb.groups.equal_statistics import group_of, move
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import BAR, COUNT, PULLS, STATISTIC
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import GOLDEN, mixed

_1, _2, _6, _9, _63 = (np.uint64(number) for number in (1, 2, 6, 9, 63))
_BELOW_ONE = (1 << 60) - 1
_NONE, _ONCE = np.int64(-1), np.int64(1)  # not literals: see plain.py


@nb.njit(nogil=True, forceinline=True)
def play_arm(table, agent_table, flat, x, threshold, own, won, clock, bar, t, last, played, total, agent_bar):
    """Play one arm with random rewards; returns its tape, successes and the round after the stretch.

    `own` and `won` are its pulls and successes so far, `played` and `total` those of its agent.
    """
    root, reciprocal, reciprocal_root, agent_root = (
        table.root,
        table.reciprocal,
        table.reciprocal_root,
        agent_table.root,
    )
    n, now, stop, at = np.uint64(own), np.uint64(t), np.uint64(last), np.uint64(clock)
    all_, agent_at = np.uint64(played), np.uint64(t - agent_table.shift)
    rest = total - won
    while True:
        won += mixed(x) < threshold
        x += GOLDEN
        n += _1
        now += _1
        at += _1
        if now > stop or won * reciprocal[n] + root[at] * reciprocal_root[n] <= bar:
            break
        if not flat:
            all_ += _1
            agent_at += _1
            if (rest + won) * reciprocal[all_] + agent_root[agent_at] * reciprocal_root[all_] <= agent_bar:
                break
    return x, won, np.int64(now)


@nb.njit(nogil=True, forceinline=True)
def play_constant_arm(
    table, agent_table, flat, mean, ticks, own, clock, bar, t, last, played, whole, rest, agent_bar
):  # fmt: skip
    """Play one arm that always pays its mean; returns the sum of its agent and the round after the stretch."""
    while True:
        own += 1
        played += 1
        rest += ticks
        whole += rest >> 60
        rest &= _BELOW_ONE
        t += 1
        clock += 1
        if t > last or mean + table.root[clock] * table.reciprocal_root[own] <= bar:
            break
        if not flat:
            agent_mean = (whole + rest * 2.0**-60) * table.reciprocal[played]
            bonus = agent_table.root[t - agent_table.shift] * table.reciprocal_root[played]
            if agent_mean + bonus <= agent_bar:
                break
    return whole, rest, t


@nb.njit(nogil=True, forceinline=True)
def play_group(
    ints, floats, words, at, root, reciprocal, reciprocal_root, agent_root, agent_shift, margin, flat, constant,
    tape, ticks, kept, level, first, blocks, g, lot, clock, t, last, played, whole, rest, agent_bar, trace,
):  # fmt: skip
    """Play members of a group by lot, each of which then leaves it; returns the agent's sum and the next round.

    The group has two members or more, and one at least is left. While it is played nobody joins it, so the two groups
    to which its members go are looked up once. Members are searched for in pairs, before either is played: a rank
    among those left by the first is a rank among those there, one higher if it is not below the first one's.
    """
    own, statistic = ints[8 * g + PULLS] + 1, ints[8 * g + STATISTIC]
    value, slope = floats[2 * g], floats[2 * g + 1]
    size = ints[8 * g + COUNT]
    left = min(last - t + 1, size - 1)
    lost = gained = -1
    row, sizes, width = np.uint64(g * at.width), np.uint64(at.size + g * at.blocks), np.uint64(at.width)
    all_sizes, all_blocks, base = np.uint64(at.size), np.uint64(at.blocks), np.uint64(2 * first)
    begin, agent_at, n = t, np.uint64(t - agent_shift), np.uint64(played)
    wins = np.int64(0)
    while left > 0:
        rank = np.uint64((mixed(lot) + 0.5) * 2.0**-52 * size)
        other = np.uint64((mixed(lot + GOLDEN) + 0.5) * 2.0**-52 * (size - 1))
        other += np.uint64(other >= rank)
        k, other = two_members(words, row, ints, sizes, blocks, rank, other)
        # without a success in two rounds, does the agent still lead? Then neither round need ask
        sure = flat or (
            (whole + rest * 2.0**-60) * reciprocal[n + _2] + agent_root[agent_at] * reciprocal_root[n + _2] > agent_bar
        )
        for second in range(2):
            if second:
                k = other
            won = np.int64(0)
            if constant:
                rest += ticks
                whole += rest >> 60
                rest &= _BELOW_ONE
            else:
                x = tape[base + _2 * k]
                won = np.int64(mixed(x) < np.int64(tape[base + _2 * k + _1]))
                tape[base + _2 * k] = x + GOLDEN
                whole += won
            if len(trace):
                trace[t - 1] = kept[first + np.int64(k)]
            child = gained if won else lost
            if child < 0:
                estimate = value if constant else (statistic + won) * reciprocal[own]
                child = group_of(
                    ints,
                    floats,
                    at,
                    level,
                    first,
                    own,
                    statistic + won,
                    estimate,
                    reciprocal_root[own],
                    _NONE,
                    root,
                    margin,
                )
                if won:
                    gained = child
                else:
                    lost = child
                # only a new group can stop this one, whose index rises with the clock
                if (
                    value + root[min(clock + t + 1 - begin, len(root) - 1)] * slope
                    <= floats[at.bound + 4 * level + BAR]
                ):
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
            n += _1
            agent_at += _1
            left -= 1
            if not sure:
                agent_mean = (whole + rest * 2.0**-60) * reciprocal[n]
                if agent_mean + agent_root[agent_at] * reciprocal_root[n] <= agent_bar:
                    left = 0
            if left == 0:
                break
    ints[8 * g + COUNT] = size
    if gained >= 0:
        ints[8 * gained + COUNT] += wins
    if lost >= 0:
        ints[8 * lost + COUNT] += t - begin - wins
    return whole, rest, t


@nb.njit(nogil=True, forceinline=True)
def explore(
    ints, floats, words, at, root, reciprocal, reciprocal_root, agent_root, agent_shift, margin, flat, constant,
    tape, kept, order, arms, tapes, thresholds, means, ticks, classes, level, first, n, count, t, last, played, whole,
    rest, agent_bar, trace,
):  # fmt: skip
    """Play arms of a level that was never played, each once; returns the agent's sum and the next round."""
    lost = gained = -1
    while True:
        k = order[first + n]
        arm = kept[first + k]
        original = arms.original[arm]
        x = word(tapes[original], arms.copy[arm]) + GOLDEN
        won = np.int64(mixed(x) < thresholds[original])
        tape[2 * (first + k)], tape[2 * (first + k) + 1] = x + GOLDEN, thresholds[original]
        if len(trace):
            trace[t - 1] = arm
        if constant:
            child = group_of(
                ints, floats, at, level, first, _ONCE, classes[original], means[original], 1.0, _NONE, root, margin
            )
            rest += ticks[original]
            whole += rest >> 60
            rest &= _BELOW_ONE
        else:
            child = gained if won else lost
            whole += won
            if child < 0:
                child = group_of(ints, floats, at, level, first, _ONCE, won, np.float64(won), 1.0, _NONE, root, margin)
                if won:
                    gained = child
                else:
                    lost = child
        move(ints, words, at, _NONE, child, k)
        n += 1
        t += 1
        played += 1
        if t > last or n == count:
            break
        if not flat:
            agent_mean = whole * reciprocal[played]
            if constant:
                agent_mean = (whole + rest * 2.0**-60) * reciprocal[played]
            if agent_mean + agent_root[t - agent_shift] * reciprocal_root[played] <= agent_bar:
                break
    return whole, rest, t
