"""The leading group of a level.

Where statistics are nearly all distinct there are as many groups as candidates. So only a short list is looked at: the
groups whose index some rounds ahead is above a `cut`; nobody else can lead until then, or until the short list's best
falls to the cut. As in `plain`, a leading group stays while its index is above the bar.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform
from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import holds, member_of_union
from cloneproof.engines.monte_carlo.ucb.groups.equal_statistics import enlist
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import (
    BAR,
    COUNT,
    CUT,
    CUT_UNTIL,
    IN_SHORT,
    LIVE,
    PULLS,
    REACH,
    SHORT,
    STATISTIC,
    TOP,
    UNTIL,
    WIDTH,
)  # fmt: skip
from cloneproof.engines.monte_carlo.ucb.tables.exact_index import index

SHORT_ENOUGH = 40


@nb.njit(nogil=True)
def _shortlist(ints, floats, at, level, first, root, clock):
    """Choose a cut and list the groups that may come above it for some rounds."""
    row, bound, live = at.level + 8 * level, at.bound + 4 * level, at.live + first
    count = ints[row + LIVE]
    for p in range(ints[row + SHORT]):
        ints[8 * ints[at.short + first + p] + IN_SHORT] = -1
    ints[row + SHORT] = 0
    if count <= SHORT_ENOUGH:
        floats[bound + CUT], ints[row + CUT_UNTIL] = -math.inf, len(root) - 1
        for p in range(count):
            enlist(ints, floats, at, level, first, ints[live + p])
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
            enlist(ints, floats, at, level, first, g)
    if ints[row + SHORT] > 2 * SHORT_ENOUGH:
        floats[bound + WIDTH] *= 0.6
    elif 2 * ints[row + SHORT] < SHORT_ENOUGH:
        floats[bound + WIDTH] *= 1.5


@nb.njit(nogil=True)
def find_top(ints, floats, words, at, level, first, root, exact, clock, margin, tie_stream, rounds, constant):
    """Find the leading group, the bar for it, and the candidate (-1: any member by lot).

    The candidate is named where groups of different statistics have the machine's index in common.
    """
    row, bound = at.level + 8 * level, at.bound + 4 * level
    if clock > ints[row + CUT_UNTIL]:
        _shortlist(ints, floats, at, level, first, root, clock)
    reach = min(1024, 2 * ints[row + REACH]) if clock > ints[row + UNTIL] else max(8, ints[row + REACH] >> 1)
    ints[row + REACH] = reach
    now = root[clock]
    while True:
        until = min(clock + reach, min(ints[row + CUT_UNTIL], len(root) - 1))
        then = root[until]
        top = top_then = -1
        best = second = best_then = second_then = -math.inf
        lines = at.short_line + 2 * first
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
        _shortlist(ints, floats, at, level, first, root, clock)
    bar = max(floats[bound + CUT], second_then if top == top_then else best_then)
    ints[row + TOP], ints[row + UNTIL], floats[bound + BAR] = ints[at.short + first + top], until, bar + margin
    if second < best - margin:
        return -1
    return _exact_top(
        ints, floats, words, at, level, first, clock, now, exact[clock], best - margin, tie_stream, rounds, constant
    )


@nb.njit(nogil=True)
def _exact_top(ints, floats, words, at, level, first, clock, now, f, near, tie_stream, rounds, constant):
    """The same by the machine's own index, among the groups whose estimates are near the best."""
    row = at.level + 8 * level
    tied = np.empty(ints[row + SHORT], np.int64)
    best, number, members = -math.inf, np.int64(0), np.int64(0)
    for p in range(ints[row + SHORT]):
        g = ints[at.short + first + p]
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
    ints[row + TOP], ints[row + UNTIL] = tied[0], clock  # look again in the next round
    if number == 1:
        return -1
    k = member_of_union(words, at.width, tied, number, np.int64(uniform(tie_stream, rounds) * members))
    for p in range(number):
        if holds(words, tied[p] * at.width, k):
            ints[row + TOP] = tied[p]
    return k
