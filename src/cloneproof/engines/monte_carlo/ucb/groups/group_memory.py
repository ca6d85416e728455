"""The memory of all levels' groups: three flat arrays and where things stand in them.

One array of integers instead of a dozen small ones keeps the kernels' pointers in registers, which matters at 30 ns a
pull.

A group's row of eight integers: its level, pulls, statistic (successes; the number of the mean where rewards are
constant), members, and its places in the lists of its level.
Its line is two floats, mean and 1/sqrt(pulls): the index is a line in root(t).
A level's row: how many groups it has, how many of them are on its short list, the leading group and until when the
bound on its rivals holds, until when the cut of the short list holds, how many rounds to look ahead, where its lists
begin. Its floats: the bound on the leader's rivals, the cut, and the cut's width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray, WordArray
from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import BLOCK_WORDS, WORD_BITS

LEVEL, PULLS, STATISTIC, COUNT, IN_LIVE, IN_SHORT = range(6)  # in a group's row
LIVE, SHORT, LEADER, UNTIL, CUT_UNTIL, AHEAD, BEGIN = range(7)  # in a level's row
RIVALS, CUT, WIDTH = range(3)  # in a level's floats

SMALLEST_TABLE = 1024


class Places(NamedTuple):
    """Where things begin: in the integers all but the lines, which are floats like the levels' bounds.

    At `free` stands the number of unused rows for groups, then the rows; at `used` the number of cells in use, then the
    size of the hash table less one: it grows with the groups, as a small table is a quick one.
    """

    level: int
    live: int
    short: int
    size: int
    cell: int
    free: int
    used: int
    short_line: int
    bound: int
    blocks: int
    width: int


class Groups(NamedTuple):
    """The arrays and the places in them. Group g has the integers from 8 g on, and the floats 2 g and 2 g + 1."""

    ints: IntArray
    floats: FloatArray
    words: WordArray
    at: Places


class GroupLevel(NamedTuple):
    """A level whose arms are kept in groups: its number, and where its arms begin (as its lists of groups do)."""

    number: np.int64
    first: np.int64


class GroupStatistics(NamedTuple):
    """What the members of a group have in common, `slope` being 1/sqrt(pulls)."""

    pulls: np.int64
    statistic: np.int64
    mean: float
    slope: float


def new_groups(counts: list[int]) -> Groups:
    """Memory for levels of so many candidates; what is never touched of it costs nothing."""
    rows, widest = sum(counts) + 2, max(counts)
    blocks = -(-widest // (WORD_BITS * BLOCK_WORDS))
    cells = SMALLEST_TABLE
    while cells < 4 * rows:
        cells *= 2
    sizes = {
        "group": 8 * rows, "level": 8 * len(counts), "live": rows, "short": rows, "size": rows * blocks,
        "cell": cells, "free": rows + 1, "used": 2,
    }  # fmt: skip
    ends = dict(zip(sizes, np.cumsum(list(sizes.values())).tolist(), strict=True))
    begin = {name: ends[name] - size for name, size in sizes.items()}
    ints = np.zeros(ends["used"], np.int64)
    ints[: begin["level"]] = -1
    ints[begin["cell"] : begin["free"]] = -1
    ints[begin["free"]] = rows
    ints[begin["free"] + 1 : begin["used"]] = np.arange(rows)[::-1]
    ints[begin["used"] + 1] = SMALLEST_TABLE - 1
    ints[begin["level"] + BEGIN : begin["live"] : 8] = np.cumsum([0, *counts[:-1]])
    del begin["group"]  # at 0
    at = Places(**begin, short_line=2 * rows, bound=4 * rows, blocks=blocks, width=blocks * BLOCK_WORDS)
    return Groups(ints, np.zeros(4 * rows + 4 * len(counts)), np.zeros(rows * at.width, np.uint64), at)
