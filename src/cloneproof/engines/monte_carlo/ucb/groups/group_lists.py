"""Groups of candidates with equal statistics: make, fill, empty, and find them by their statistics.

Copies of an arm have a small number of distinct statistics (pulls, successes), so the best *group* is sought, and
within it the session's lot is a rank: the member of that rank in the order of registration is found among the group's
bits. A played candidate moves to the group of its new statistics.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import BitSet, flip, ones
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import (
    AHEAD,
    BEGIN,
    COUNT,
    CUT,
    CUT_UNTIL,
    IN_LIVE,
    IN_SHORT,
    LEADER,
    LEVEL,
    LIVE,
    PULLS,
    RIVALS,
    SHORT,
    SMALLEST_TABLE,
    STATISTIC,
    UNTIL,
    WIDTH,
)  # fmt: skip

_MIX = np.uint64(0x9E3779B97F4A7C15)
_1, _22, _29, _34, _44 = (np.uint64(number) for number in (1, 22, 29, 34, 44))


@compiled
def empty_level(groups, level):
    """Forget all groups of a level."""
    ints, floats, words, at = groups
    row, bound = at.level + 8 * level.number, at.bound + 4 * level.number
    for p in range(ints[row + LIVE]):
        g = ints[at.live + level.first + p]
        ints[8 * g + PULLS] = -1
        for w in range(g * at.width, (g + 1) * at.width):
            words[w] = 0
        for b in range(at.size + g * at.blocks, at.size + (g + 1) * at.blocks):
            ints[b] = 0
        ints[at.free] += 1
        ints[at.free + ints[at.free]] = g
    ints[row + LIVE] = ints[row + SHORT] = ints[row + LEADER] = 0
    ints[row + UNTIL], ints[row + CUT_UNTIL], ints[row + AHEAD] = -1, 1 << 40, 16
    floats[bound + CUT], floats[bound + WIDTH] = -math.inf, 0.01


@inlined
def members_of(groups, g, blocks):
    """The members of group g as a set of bits, so many blocks of which are in use."""
    at = groups.at
    return BitSet(groups.words, np.uint64(g * at.width), groups.ints, np.uint64(at.size + g * at.blocks), blocks)


@inlined
def move(groups, g, child, k):
    """Make candidate k a member of `child` and no more of g (-1: it was in none)."""
    ints, words, at = groups.ints, groups.words, groups.at
    flip(words, child * at.width, k)
    ints[at.size + child * at.blocks + (k >> 9)] += 1
    ints[8 * child + COUNT] += 1
    if g >= 0:
        flip(words, g * at.width, k)
        ints[at.size + g * at.blocks + (k >> 9)] -= 1
        ints[8 * g + COUNT] -= 1


@compiled
def group_of(groups, level, statistics, alone, root, margin):
    """The group of these statistics: one that exists, or `alone` with new statistics (-1: none), or a new one.

    `alone` is the group of the candidate played if it has no other member: it keeps its row, and its lead.
    """
    ints, floats, _, at = groups
    pulls, statistic, mean, slope = statistics
    if 2 * ints[at.used] > ints[at.used + 1]:
        _rehash(ints, at)
    mask = ints[at.used + 1]
    cell = _cell(level.number, pulls, statistic) & mask
    while ints[at.cell + cell] >= 0:
        g = ints[at.cell + cell]
        # an entry whose group was closed is told by the group's row
        if (
            ints[8 * g + PULLS] == pulls
            and ints[8 * g + STATISTIC] == statistic
            and ints[8 * g + LEVEL] == level.number
        ):
            return g
        cell = (cell + 1) & mask
    row, bound = at.level + 8 * level.number, at.bound + 4 * level.number
    g = alone
    if alone < 0:
        g = ints[at.free + ints[at.free]]
        ints[at.free] -= 1
        ints[8 * g + LEVEL], ints[8 * g + COUNT] = level.number, 0
        ints[8 * g + IN_LIVE], ints[8 * g + IN_SHORT] = ints[row + LIVE], -1
        ints[at.live + level.first + ints[row + LIVE]] = g
        ints[row + LIVE] += 1
    ints[at.cell + cell] = g
    ints[at.used] += 1
    ints[8 * g + PULLS], ints[8 * g + STATISTIC] = pulls, statistic
    floats[2 * g], floats[2 * g + 1] = mean, slope
    if ints[8 * g + IN_SHORT] >= 0:
        place = at.short_line + 2 * (level.first + ints[8 * g + IN_SHORT])
        floats[place], floats[place + 1] = mean, slope
    elif mean + root[min(ints[row + CUT_UNTIL], len(root) - 1)] * slope > floats[bound + CUT]:
        add_to_short_list(groups, level, g)
    if alone < 0 and ints[row + UNTIL] >= 0:
        floats[bound + RIVALS] = max(floats[bound + RIVALS], mean + root[ints[row + UNTIL]] * slope + margin)
    return g


@inlined
def _cell(level, pulls, statistic):
    key = (np.uint64(level) << _44) + (np.uint64(pulls) << _22) + np.uint64(statistic)
    return np.int64(((key ^ (key >> _29)) * _MIX) >> _34)


@compiled
def _rehash(ints, at):
    """Enter all groups anew, into a table of at least eight cells for each."""
    levels = (at.live - at.level) // 8
    groups = 0
    for level in range(levels):
        groups += ints[at.level + 8 * level + LIVE]
    mask = np.int64(SMALLEST_TABLE - 1)
    while mask < 8 * groups and mask < at.free - at.cell - 1:
        mask = 2 * mask + 1
    for cell in range(at.cell, at.cell + mask + 1):
        ints[cell] = -1
    ints[at.used], ints[at.used + 1] = groups, mask
    for level in range(levels):
        begin = at.live + ints[at.level + 8 * level + BEGIN]
        for p in range(begin, begin + ints[at.level + 8 * level + LIVE]):
            g = ints[p]
            cell = _cell(level, ints[8 * g + PULLS], ints[8 * g + STATISTIC]) & mask
            while ints[at.cell + cell] >= 0:
                cell = (cell + 1) & mask
            ints[at.cell + cell] = g


@inlined
def add_to_short_list(groups, level, g):
    """Add a group to the short list, its line included: lines side by side are quick to compare."""
    ints, floats, at = groups.ints, groups.floats, groups.at
    row = at.level + 8 * level.number
    ints[8 * g + IN_SHORT] = ints[row + SHORT]
    place = level.first + ints[row + SHORT]
    ints[at.short + place] = g
    floats[at.short_line + 2 * place] = floats[2 * g]
    floats[at.short_line + 2 * place + 1] = floats[2 * g + 1]
    ints[row + SHORT] += 1


@compiled
def close_group(groups, level, g):
    """Take a group without members off the lists."""
    ints, floats, at, first = groups.ints, groups.floats, groups.at, level.first
    row = at.level + 8 * level.number
    # the row may soon serve another level, so its lead must end here and not where it is next looked at
    if ints[row + LEADER] == g:
        ints[row + UNTIL] = -1
    ints[row + LIVE] -= 1
    last = ints[at.live + first + ints[row + LIVE]]
    ints[at.live + first + ints[8 * g + IN_LIVE]] = last
    ints[8 * last + IN_LIVE] = ints[8 * g + IN_LIVE]
    if ints[8 * g + IN_SHORT] >= 0:
        ints[row + SHORT] -= 1
        end, place = first + ints[row + SHORT], first + ints[8 * g + IN_SHORT]
        last = ints[at.short + end]
        ints[at.short + place] = last
        ints[8 * last + IN_SHORT] = ints[8 * g + IN_SHORT]
        floats[at.short_line + 2 * place] = floats[at.short_line + 2 * end]
        floats[at.short_line + 2 * place + 1] = floats[at.short_line + 2 * end + 1]
    ints[8 * g + PULLS] = -1
    ints[at.free] += 1
    ints[at.free + ints[at.free]] = g


@compiled
def regroup(groups, level, g, k, statistics, root, margin):
    """Enter the new statistics of candidate k, which was in group g (-1: in none)."""
    ints = groups.ints
    alone = g if g >= 0 and ints[8 * g + COUNT] == 1 else -1
    child = group_of(groups, level, statistics, alone, root, margin)
    if child != g:
        move(groups, g, child, k)
        if g >= 0 and ints[8 * g + COUNT] == 0:
            close_group(groups, level, g)


@compiled
def add_up_groups(groups, level, arms, positions, results):
    """Add the pulls of each original and the successes of each agent over the members of all groups."""
    ints, _, words, at = groups
    for p in range(ints[at.level + 8 * level.number + LIVE]):
        g = ints[at.live + level.first + p]
        pulls, wins = ints[8 * g + PULLS], ints[8 * g + STATISTIC]
        for w in range(at.width):
            word = words[g * at.width + w]
            while word != 0:
                bit = np.int64(ones(~word & (word - _1)))
                original = arms.original[positions.arm[level.first + 64 * w + bit]]
                results.pulls[original] += pulls
                results.wins[arms.agent_of[original]] += wins
                word &= word - _1
