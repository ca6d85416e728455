"""One level that explores and then commits, without its rounds: who was pulled how often, and who is chosen.

The order of exploration, the judgement and the ties are those of `mechanisms.level`, from the same streams. A level is
the rows of a table from `begin` to `end`.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ZERO, rank_by_word
from cloneproof.engines.monte_carlo.blocks.block_plan import INDEX, ROUND_ROBIN
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.engines.monte_carlo.randomness.exact_sums import average
from cloneproof.mechanisms.online.streams import EXPLORE_STREAM, TIE_STREAM


@nb.njit(nogil=True)
def pulls_until(position, order, explore, stream, rows, begin, end):
    """Put into `pulls` those of every candidate when `position` rounds of exploration are over, at most all of them.

    Nothing is sorted where the order cannot matter.
    """
    count = end - begin
    if order == ROUND_ROBIN:
        each, extra = position // count, position % count
        if extra:
            _rank(each, stream, rows, begin, end)
        for k in range(begin, end):
            rows[k].pulls = each
        for k in range(extra):
            rows[begin + rows[begin + k].rank].pulls += 1
        return
    full, part = position // explore, position % explore
    sorted_order = order != INDEX and position < count * explore
    if sorted_order:
        _rank(ZERO, stream, rows, begin, end)
    for k in range(count):
        at = begin + (rows[begin + k].rank if sorted_order else k)
        rows[at].pulls = explore if k < full else part if k == full else 0


@nb.njit(nogil=True)
def _rank(sweep, stream, rows, begin, end):
    """The order in which a sweep visits the candidates."""
    explore_stream = word(stream, EXPLORE_STREAM)
    for k in range(begin, end):
        rows[k].word = word(word(explore_stream, rows[k].key), sweep)
    rank_by_word(rows, begin, end)


@nb.njit(nogil=True)
def committed(rounds, stream, rows, begin, end):
    """The row of highest average, ties uniformly at random; one with nothing to be judged by comes last."""
    best, ties = -np.inf, 0
    for k in range(begin, end):
        row = rows[k]
        value = average(row.high, row.low, row.judged) if row.judged > 0 else -np.inf
        if value > best:
            best, ties = value, 0
        if value == best:
            rows[begin + ties].rank = k
            ties += 1
    if ties == 1:
        return rows[begin].rank
    return rows[begin + np.int64(uniform(word(stream, TIE_STREAM), rounds) * ties)].rank
