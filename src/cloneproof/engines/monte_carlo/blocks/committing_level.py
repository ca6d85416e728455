"""One level that explores and then commits, without its rounds: who was pulled how often, and who is chosen.

The order of exploration, the judgement and the ties are those of `mechanisms.online.level`, from the same streams.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ZERO, rank_by_word
from cloneproof.engines.monte_carlo.blocks.block_plan import INDEX, ROUND_ROBIN
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.engines.monte_carlo.randomness.exact_sums import average
from cloneproof.mechanisms.online.streams import EXPLORE_STREAM, TIE_STREAM


class CommittingLevel(NamedTuple):
    """A level: the rows of its candidates, its random stream, and how it explores each of them, in which order."""

    begin: np.int64
    end: np.int64
    stream: np.uint64
    explore: np.int64
    order: np.int64


@compiled
def set_pulls(level, position, rows):
    """Put into `pulls` those of every candidate when `position` rounds of exploration are over, at most all of them.

    Nothing is sorted where the order cannot matter.
    """
    begin, end, _, explore, order = level
    count = end - begin
    if order == ROUND_ROBIN:
        each, extra = position // count, position % count
        if extra:
            _rank(level, each, rows)
        for k in range(begin, end):
            rows[k].pulls = each
        for k in range(extra):
            rows[begin + rows[begin + k].rank].pulls += 1
        return
    full, part = position // explore, position % explore
    sorted_order = order != INDEX and position < count * explore
    if sorted_order:
        _rank(level, ZERO, rows)
    for k in range(count):
        at = begin + (rows[begin + k].rank if sorted_order else k)
        rows[at].pulls = explore if k < full else part if k == full else 0


@compiled
def _rank(level, sweep, rows):
    """The order in which a sweep visits the candidates."""
    explore_stream = word(level.stream, EXPLORE_STREAM)
    for k in range(level.begin, level.end):
        rows[k].word = word(word(explore_stream, rows[k].key), sweep)
    rank_by_word(rows, level.begin, level.end)


@compiled
def choose(level, rounds, rows):
    """The row of highest average, ties uniformly at random; one with nothing to be judged by comes last."""
    begin, best, ties = level.begin, -np.inf, 0
    for k in range(begin, level.end):
        row = rows[k]
        value = average(row.high, row.low, row.judged) if row.judged > 0 else -np.inf
        if value > best:
            best, ties = value, 0
        if value == best:
            rows[begin + ties].rank = k
            ties += 1
    if ties == 1:
        return rows[begin].rank
    return rows[begin + np.int64(uniform(word(level.stream, TIE_STREAM), rounds) * ties)].rank
