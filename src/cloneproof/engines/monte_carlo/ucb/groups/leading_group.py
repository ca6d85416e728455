"""The leading group of a level.

Where statistics are nearly all distinct there are as many groups as candidates. So only a short list is scanned: the
groups whose index some rounds ahead is above a `cut`; nobody else can lead until then, or until the short list's best
falls to the cut. As in `leader_scan`, a leading group stays while its index is above the bound on its rivals.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform
from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import holds, member_of_union
from cloneproof.engines.monte_carlo.ucb.groups.group_lists import add_to_short_list
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import (
    AHEAD,
    COUNT,
    CUT,
    CUT_UNTIL,
    IN_SHORT,
    LEADER,
    LIVE,
    PULLS,
    RIVALS,
    SHORT,
    STATISTIC,
    UNTIL,
    WIDTH,
)  # fmt: skip
from cloneproof.engines.monte_carlo.ucb.tables.exact_index import index

SHORT_ENOUGH = 40


@compiled
def _make_short_list(groups, level, root, clock):
    """Choose a cut and list the groups that may come above it for some rounds."""
    ints, floats, _, at = groups
    row, bound, live = at.level + 8 * level.number, at.bound + 4 * level.number, at.live + level.first
    count = ints[row + LIVE]
    for p in range(ints[row + SHORT]):
        ints[8 * ints[at.short + level.first + p] + IN_SHORT] = -1
    ints[row + SHORT] = 0
    if count <= SHORT_ENOUGH:
        floats[bound + CUT], ints[row + CUT_UNTIL] = -math.inf, len(root) - 1
        for p in range(count):
            add_to_short_list(groups, level, ints[live + p])
        return
    best, now = -math.inf, root[clock]
    for p in range(count):
        g = ints[live + p]
        best = max(best, floats[2 * g] + now * floats[2 * g + 1])
    until = min(clock + max(64, clock >> 6), len(root) - 1)
    cut, then = best - floats[bound + WIDTH], root[until]
    floats[bound + CUT], ints[row + CUT_UNTIL] = cut, until
    for p in range(count):
        g = ints[live + p]
        if floats[2 * g] + then * floats[2 * g + 1] > cut:
            add_to_short_list(groups, level, g)
    if ints[row + SHORT] > 2 * SHORT_ENOUGH:
        floats[bound + WIDTH] *= 0.6
    elif 2 * ints[row + SHORT] < SHORT_ENOUGH:
        floats[bound + WIDTH] *= 1.5


@compiled
def find_leading_group(groups, level, table, clock, tie_stream, rounds, constant):
    """Find the leading group and the bound on its rivals; returns the candidate (-1: any member by lot).

    The candidate is named where groups of different statistics have the session's index in common.
    """
    ints, floats, _, at = groups
    root, margin = table.root, table.margin
    row, bound = at.level + 8 * level.number, at.bound + 4 * level.number
    if clock > ints[row + CUT_UNTIL]:
        _make_short_list(groups, level, root, clock)
    ahead = min(1024, 2 * ints[row + AHEAD]) if clock > ints[row + UNTIL] else max(8, ints[row + AHEAD] >> 1)
    ints[row + AHEAD] = ahead
    now = root[clock]
    while True:
        until = min(clock + ahead, ints[row + CUT_UNTIL], len(root) - 1)
        then = root[until]
        top = top_then = -1
        best = second = best_then = second_then = -math.inf
        lines = at.short_line + 2 * level.first
        for p in range(ints[row + SHORT]):
            mean, slope = floats[lines + 2 * p], floats[lines + 2 * p + 1]
            value = mean + now * slope
            if value > second:
                if value > best:
                    best, second, top = value, best, p
                else:
                    second = value
            value = mean + then * slope
            if value > second_then:
                if value > best_then:
                    best_then, second_then, top_then = value, best_then, p
                else:
                    second_then = value
        if best > floats[bound + CUT] + 2 * margin:
            break
        _make_short_list(groups, level, root, clock)
    rivals = max(floats[bound + CUT], second_then if top == top_then else best_then)
    ints[row + LEADER], ints[row + UNTIL] = ints[at.short + level.first + top], until
    floats[bound + RIVALS] = rivals + margin
    if second < best - margin:
        return -1
    return _find_exact_leader(groups, level, table, clock, best - margin, tie_stream, rounds, constant)


@compiled
def _find_exact_leader(groups, level, table, clock, near, tie_stream, rounds, constant):
    """The same by the session's index, among the groups whose estimates are at least `near`."""
    ints, floats, words, at = groups
    row, now, f = at.level + 8 * level.number, table.root[clock], table.exact[clock]
    tied = np.empty(ints[row + SHORT], np.int64)
    best, number, members = -math.inf, 0, 0
    for p in range(ints[row + SHORT]):
        g = ints[at.short + level.first + p]
        if floats[2 * g] + now * floats[2 * g + 1] < near:
            continue
        pulls = ints[8 * g + PULLS]
        mean = floats[2 * g] if constant else ints[8 * g + STATISTIC] / pulls
        value = index(mean, pulls, f)
        if value > best:
            best, number, members = value, 0, 0
        if value == best:
            tied[number] = g
            number += 1
            members += ints[8 * g + COUNT]
    ints[row + LEADER], ints[row + UNTIL] = tied[0], clock  # look again in the next round
    if number == 1:
        return -1
    k = member_of_union(words, at.width, tied, number, np.int64(uniform(tie_stream, rounds) * members))
    for p in range(number):
        if holds(words, tied[p] * at.width, k):
            ints[row + LEADER] = tied[p]
    return k
