"""The leader of a level by a scan of all its candidates, and how long it surely stays the leader.

Every index rises with the clock as long as its candidate is not played. So the best index that another candidate would
have some rounds ahead bounds all of them until then, and the leader stays while its index is above that bound, called
`rivals` here. Then one index is computed for a round; only where the bound is reached are all candidates scanned.

Indices are estimated as mean + root(t) / sqrt(n), some units in the last place from the session's. Where two of them
are closer than the table's margin (thousands of such units), the session's numbers decide, and equal ones are drawn by
lot.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform
from cloneproof.engines.monte_carlo.ucb.tables.exact_index import average, index
from cloneproof.engines.monte_carlo.uncounted_arrays import uncounted

AHEAD = 14
"""Rounds for which the bound holds: longer, and it is loose; shorter, and it is computed too often."""

FIRST, NO = np.int64(0), np.bool_(False)
"""A literal 0 or False as an argument is a type of its own to the compiler, which compiles the function again for it;
and so it would for a loop's variable that starts from a literal."""

_PACKED = 64
_LOW = np.int64(_PACKED - 1)


@inlined
def estimated_leader(statistics, first, count, table, clock, until):
    """The leader by estimated index (its position), the bound on its rivals, and whether they are clearly below it.

    The bound holds while the clock is at most `until`. Positive doubles compare as the integers of their bits, and the
    last six bits can carry the candidate's number (an error that the margin covers): the maximum is then found without
    branches, in two interleaved chains, which is several times as fast as comparing floats, as this loop waits for one
    comparison after the other.
    """
    means, roots, now, then = statistics.means, statistics.roots, table.root[clock], table.root[until]
    half = count >> 1
    top = first
    if count <= _PACKED:
        a = b = np.int64(0)
        for i in range(half):
            p, q = first + i, first + half + i
            a = max(a, (np.float64(means[p] + now * roots[p]).view(np.int64) & ~_LOW) | i)
            b = max(b, (np.float64(means[q] + now * roots[q]).view(np.int64) & ~_LOW) | (half + i))
        if count & 1:
            p = first + count - 1
            a = max(a, (np.float64(means[p] + now * roots[p]).view(np.int64) & ~_LOW) | (count - 1))
        top = first + (max(a, b) & _LOW)
    else:
        best = -math.inf
        for p in range(first, first + count):
            if means[p] + now * roots[p] > best:
                best, top = means[p] + now * roots[p], p
    mean = means[top]
    means[top] = -1e300  # so that the leader is no rival of itself
    a = b = c = d = np.int64(0)
    for i in range(half):
        p, q = first + i, first + half + i
        a = max(a, np.float64(means[p] + then * roots[p]).view(np.int64))
        b = max(b, np.float64(means[q] + then * roots[q]).view(np.int64))
        c = max(c, np.float64(means[p] + now * roots[p]).view(np.int64))
        d = max(d, np.float64(means[q] + now * roots[q]).view(np.int64))
    if count & 1:
        p = first + count - 1
        a = max(a, np.float64(means[p] + then * roots[p]).view(np.int64))
        c = max(c, np.float64(means[p] + now * roots[p]).view(np.int64))
    means[top] = mean
    rivals, second = np.int64(max(a, b)).view(np.float64), np.int64(max(c, d)).view(np.float64)
    return top, rivals + table.margin, mean + now * roots[top] > second + table.margin


@compiled
def exact_leader(statistics, first, count, constant, table, clock, tie_stream, rounds):
    """The leader by the session's index; ties by lot, in the order of the candidates.

    The exact mean is the estimated one where rewards are `constant`; else (sums + rests 2^-60) / pulls where there are
    rests, and sums / pulls where there are none.
    """
    table = uncounted(table)
    pulls, sums, rests, means, roots = uncounted(statistics)
    now, f = table.root[clock], table.exact[clock]
    best = near = -math.inf
    for p in range(first, first + count):
        near = max(near, means[p] + now * roots[p])
    values = np.full(count, -math.inf)
    ties = 0
    for k in range(count):
        p = first + k
        if means[p] + now * roots[p] < near - table.margin:
            continue
        if constant:
            mean = means[p]
        elif len(rests):
            mean = average(sums[p], rests[p], pulls[p])
        else:
            mean = sums[p] / pulls[p]
        values[k] = index(mean, pulls[p], f)
        if values[k] > best:
            best, ties = values[k], 1
        elif values[k] == best:
            ties += 1
    rank = np.int64(0)
    if ties > 1:
        rank = np.int64(uniform(tie_stream, rounds) * ties)
    for k in range(count):
        if values[k] == best:
            if rank == 0:
                return first + k
            rank -= 1
    return first
