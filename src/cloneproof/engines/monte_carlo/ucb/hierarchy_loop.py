"""Runs of any shape: one level or two, few arms or thousands.

A run goes in stretches. The agents' leader is chosen, then its leading arm, or the leading group of arms with equal
statistics; and these are played, with everything they need in registers, until one of the two bars is reached.
A pull then costs one hash for the reward (two products of 64 bits bound it from below, about 3 ns), one index for each
level, and in a group the search for the member that the lot names. Each end of a stretch costs a mispredicted branch
and a look at the candidates, some 40 ns for ten: with stretches of six pulls that is half of the time.
Nothing grows with the number of arms but the start of a run, where they are sorted by hash.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.ucb.exploration_order import exploration, sample
from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import member
from cloneproof.engines.monte_carlo.ucb.groups.equal_statistics import close_group, empty_level, group_of, move, tally
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import BAR, COUNT, PULLS, STATISTIC, TOP, UNTIL
from cloneproof.engines.monte_carlo.ucb.groups.leading_group import find_top
from cloneproof.engines.monte_carlo.ucb.leader_pulls import explore, play_arm, play_constant_arm, play_group
from cloneproof.engines.monte_carlo.ucb.small_level import AHEAD, FIRST, NO, exact_leader, leader_and_bar
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import GOLDEN

FEW = 24
"""Up to so many candidates a look at all of them is cheaper than keeping groups."""

_EXPLORE, _TIE, _SAMPLE = np.uint64(0), np.uint64(1), np.uint64(1)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_BELOW_ONE = (1 << 60) - 1
_ALWAYS = 1 << 60


@nb.njit(nogil=True)
def run_levels(
    arm_table, agent_table, flat, horizon, arms, memory, work, machine_stream, constant, pulls_of, wins_of, trace
):
    """One run: adds up pulls by original and wins by agent."""
    root, reciprocal, reciprocal_root = arm_table.root, arm_table.reciprocal, arm_table.reciprocal_root
    exact, margin, shift = arm_table.exact, arm_table.margin, arm_table.shift
    agent_root, agent_margin, agent_shift = agent_table.root, agent_table.margin, agent_table.shift
    ints, floats, words, at = memory
    original_at, copy_at, agent_of, firsts = arms.original, arms.copy, arms.agent_of, arms.first
    kept, order, tape, pulls, sums = work.kept, work.order, work.tape, work.pulls, work.sums
    estimates, roots, streams, ties = work.estimates, work.roots, work.streams, work.ties
    counts, rounds, leader, until, bars = work.counts, work.rounds, work.leader, work.until, work.bars
    agent_pulls, agent_sums, agent_rests = work.agent_pulls, work.agent_sums, work.agent_rests
    agent_means, agent_roots = work.agent_means, work.agent_roots
    tapes, thresholds, means, ticks, classes = work.tapes, work.thresholds, work.means, work.ticks, work.classes
    levels = len(firsts) - 1
    base = word(word(machine_stream, _ZERO), _ZERO)
    for level in range(levels):
        streams[level] = word(base, _ZERO if flat else np.uint64(level + 1))
        ties[level] = word(streams[level], _TIE)
        counts[level] = rounds[level] = agent_pulls[level] = agent_sums[level] = 0
        until[level] = -1
        if constant:
            agent_rests[level] = 0
    agent_tie = word(word(base, _ZERO), _TIE)
    level, agent_until, agent_bar, ahead = 0, -1, -1.0, AHEAD
    if flat:
        agent_until = horizon
    else:
        exploration(word(word(base, _ZERO), _EXPLORE), work.agent_keys, work.agent_order)

    t = np.int64(1)
    while t <= horizon:
        # 1. the agent
        if not flat:
            if t <= levels:
                level, agent_until = work.agent_order[t - 1], t
            elif levels > 1:
                now = agent_root[t - agent_shift]
                ahead = min(1024, 2 * ahead) if t > agent_until else max(8, ahead >> 1)
                agent_until = min(t + ahead, horizon)
                level, agent_bar, sure = leader_and_bar(
                    agent_means, agent_roots, FIRST, levels, now, agent_root[agent_until - agent_shift], agent_margin
                )
                if not sure:
                    level = exact_leader(
                        agent_pulls, agent_sums, agent_rests, agent_means, agent_roots, FIRST, levels, NO,
                        agent_table.exact[t - agent_shift], now, agent_margin, agent_tie, t - 1,
                    )  # fmt: skip
                    agent_until = t
            else:
                agent_until = horizon

        # 2. its arm, or its group of arms
        first, count, n = firsts[level], counts[level], rounds[level]
        if n == 0:
            count = _open_level(arms, level, machine_stream, flat, streams[level], kept, order)
            counts[level] = count
            if count > FEW:
                empty_level(ints, floats, words, at, level, firsts[level])
        clock = n + 1 - shift
        g, p, bar, last = -1, first, -1.0, agent_until
        if n < count and count > FEW:
            p = -1
        elif n < count:
            p = first + order[first + n]
            arm = kept[p]
            tape[2 * p] = word(tapes[original_at[arm]], copy_at[arm]) + GOLDEN
            tape[2 * p + 1] = thresholds[original_at[arm]]
            pulls[p] = sums[p] = 0
            last = t
        elif count == 1:
            pass
        elif count <= FEW:
            p = leader[level]
            if not (clock <= until[level] and estimates[p] + root[clock] * roots[p] > bars[level]):
                until[level] = min(clock + AHEAD, len(root) - 1)
                p, bars[level], sure = leader_and_bar(
                    estimates, roots, first, count, root[clock], root[until[level]], margin
                )
                if not sure:
                    p = exact_leader(
                        pulls, sums, work.nothing, estimates, roots, first, count, constant, exact[clock], root[clock],
                        margin, ties[level], n,
                    )  # fmt: skip
                    until[level] = clock
                leader[level] = p
            bar, last = bars[level], min(last, t + until[level] - clock)
        else:
            row, bound = at.level + 8 * level, at.bound + 4 * level
            g, k = ints[row + TOP], -1
            if not (
                clock <= ints[row + UNTIL] and floats[2 * g] + root[clock] * floats[2 * g + 1] > floats[bound + BAR]
            ):
                k = find_top(
                    ints, floats, words, at, level, first, root, exact, clock, margin, ties[level], n, constant
                )
                g = ints[row + TOP]
            bar, last = floats[bound + BAR], min(last, t + ints[row + UNTIL] - clock)
            if k >= 0:
                last = t
            elif ints[8 * g + COUNT] == 1:
                k = np.int64(
                    member(
                        words, np.uint64(g * at.width), ints, np.uint64(at.size + g * at.blocks), np.uint64(at.blocks),
                        _ZERO,
                    )
                )  # fmt: skip
            p = first + k

        # 3. a stretch of rounds
        played, whole, rest, start = agent_pulls[level], agent_sums[level], np.int64(0), t
        if constant:
            rest = agent_rests[level]
        if p >= first:  # one arm
            arm = kept[p]
            original = original_at[arm]
            own, won = pulls[p], sums[p]
            if g >= 0:
                own, won = ints[8 * g + PULLS], ints[8 * g + STATISTIC]
            if constant:
                whole, rest, t = play_constant_arm(
                    arm_table, agent_table, flat, means[original], ticks[original], own, clock, bar, t, last, played,
                    whole, rest, agent_bar,
                )  # fmt: skip
                own, estimate, statistic = own + t - start, means[original], classes[original]
            else:
                tape[2 * p], statistic, t = play_arm(
                    arm_table, agent_table, flat, tape[2 * p], np.int64(tape[2 * p + 1]), own, won, clock, bar, t,
                    last, played, whole, agent_bar,
                )  # fmt: skip
                own, whole = own + t - start, whole + statistic - won
                estimate = statistic * reciprocal[own]
            if count <= FEW:
                pulls[p], sums[p], estimates[p], roots[p] = own, statistic, estimate, reciprocal_root[own]
            else:
                _regroup(
                    ints, floats, words, at, level, first, g, p - first, own, statistic, estimate, reciprocal_root[own],
                    root, margin,
                )  # fmt: skip
            if len(trace):
                trace[start - 1 : t - 1] = arm
        elif g < 0:
            whole, rest, t = explore(
                ints, floats, words, at, root, reciprocal, reciprocal_root, agent_root, agent_shift, margin, flat,
                constant, tape, kept, order, arms, tapes, thresholds, means, ticks, classes, level, first, n, count, t,
                last, played, whole, rest, agent_bar, trace,
            )  # fmt: skip
        else:
            lot = ties[level] + GOLDEN * np.uint64(n + 1)
            blocks = np.uint64(((count - 1) >> 9) + 1)
            tick = ticks[ints[8 * g + STATISTIC]] if constant else 0
            whole, rest, t = play_group(
                ints, floats, words, at, root, reciprocal, reciprocal_root, agent_root, agent_shift, margin, flat,
                constant, tape, tick, kept, level, first, blocks, g, lot, clock, t, last, played, whole, rest,
                agent_bar, trace,
            )  # fmt: skip
        played += t - start
        rounds[level] = n + t - start
        if not flat:
            agent_pulls[level], agent_sums[level], agent_roots[level] = played, whole, reciprocal_root[played]
            agent_means[level] = whole * reciprocal[played]
            if constant:
                agent_rests[level] = rest
                agent_means[level] = (whole + rest * 2.0**-60) * reciprocal[played]
    for level in range(levels):
        first = firsts[level]
        if counts[level] > FEW:
            tally(ints, words, at, level, first, original_at, pulls_of, wins_of, agent_of, kept)
            empty_level(ints, floats, words, at, level, first)
        else:
            for p in range(first, first + min(counts[level], rounds[level])):
                place = first + order[p]
                original = original_at[kept[place]]
                pulls_of[original] += pulls[place]
                wins_of[agent_of[original]] += sums[place]


@nb.njit(nogil=True)
def _regroup(ints, floats, words, at, level, first, g, k, pulls, statistic, mean, slope, root, margin):
    """Enter the statistics of candidate k after a stretch of its own; it was in group g (-1: in none)."""
    alone = g if g >= 0 and ints[8 * g + COUNT] == 1 else -1
    child = group_of(ints, floats, at, level, first, pulls, statistic, mean, slope, alone, root, margin)
    if child != g:
        move(ints, words, at, g, child, k)
        if g >= 0 and ints[8 * g + COUNT] == 0:
            close_group(ints, floats, at, level, first, g)


@nb.njit(nogil=True)
def _open_level(arms, level, machine_stream, flat, stream, kept, order):
    """Sample its arms if the mechanism does, put them in the order of exploration, and return their number."""
    first, count = arms.first[level], arms.first[level + 1] - arms.first[level]
    keys = arms.key[first : first + count]
    if arms.sample > 0 and arms.sample < count:
        samples = word(machine_stream, _SAMPLE)
        if not flat:
            samples = word(samples, np.uint64(level))
        count = arms.sample
        sample(samples, keys, count, kept[first : first + count])
        keys = keys[kept[first : first + count]]
    else:
        for k in range(count):
            kept[first + k] = k
    for k in range(count):
        kept[first + k] += first
    exploration(word(stream, _EXPLORE), keys, order[first : first + count])
    return count
