"""The memory of a level's groups: three flat arrays and where things stand in them.

One array of integers instead of a dozen small ones keeps the kernels' pointers in registers, and an array that is
passed on as it is needs no reference counted; both matter at 30 ns a pull.

A group's row of eight integers: its level, pulls, statistic (successes; the number of the mean where rewards are
constant), members, and its places in the lists of its level.
Its line is two floats, mean and 1/sqrt(pulls): the index is a line in root(t).
A level's row: how many groups it has, how many of them are listed short, the leading group and until when its bar
holds, until when the cut of the short list holds, how far to look ahead, where its lists begin. Its floats: bar, cut,
and the cut's width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.ucb.groups.bit_sets import BLOCK_WORDS, WORD_BITS

LEVEL, PULLS, STATISTIC, COUNT, IN_LIVE, IN_SHORT = range(6)
LIVE, SHORT, TOP, UNTIL, CUT_UNTIL, REACH, BEGIN = range(7)
BAR, CUT, WIDTH = range(3)

SMALLEST_TABLE = 1024


class Places(NamedTuple):
    """Where things begin: in the integers all but the lines, which are floats like the levels' bounds.

    At `free` stands the number of free slots, then they; at `used` the number of cells in use, then the size of the
    hash table less one: it grows with the groups, as a small table is a quick one.
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


class Memory(NamedTuple):
    """The arrays and the places in them."""

    ints: Any
    floats: Any
    words: Any
    at: Places


def new_memory(counts: list[int]) -> Memory:
    """Room for levels of so many candidates; memory that is never touched costs nothing."""
    slots, widest = sum(counts) + 2, max(counts)
    blocks = -(-widest // (WORD_BITS * BLOCK_WORDS))
    cells = SMALLEST_TABLE
    while cells < 4 * slots:
        cells *= 2
    sizes = {
        "slot": 8 * slots, "level": 8 * len(counts), "live": slots, "short": slots, "size": slots * blocks,
        "cell": cells, "free": slots + 1, "used": 2,
    }  # fmt: skip
    ends = dict(zip(sizes, np.cumsum(list(sizes.values())).tolist(), strict=True))
    begin = {name: ends[name] - size for name, size in sizes.items()}
    ints = np.zeros(ends["used"], np.int64)
    ints[: begin["level"]] = -1
    ints[begin["cell"] : begin["free"]] = -1
    ints[begin["free"]] = slots
    ints[begin["free"] + 1 : begin["used"]] = np.arange(slots)[::-1]
    ints[begin["used"] + 1] = SMALLEST_TABLE - 1
    ints[begin["level"] + BEGIN : begin["live"] : 8] = np.cumsum([0, *counts[:-1]])
    del begin["slot"]
    at = Places(**begin, short_line=2 * slots, bound=4 * slots, blocks=blocks, width=blocks * BLOCK_WORDS)
    return Memory(ints, np.zeros(4 * slots + 4 * len(counts)), np.zeros(slots * at.width, np.uint64), at)
