"""Registered arms as a table, for the kernels that go round by round or block by block.

Tables are arrays of records: one argument instead of twenty keeps compilation short, and a row is one cache line.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.market.copies import arms_of
from cloneproof.mechanisms.sample import ADMISSION

ArmTable = npt.NDArray[Any]
NEVER: Final = 1 << 62  # more rounds than any horizon has
ZERO, ONE, NONE = np.int64(0), np.int64(1), np.int64(-1)
"""64-bit numbers: a literal among the arguments of a compiled function would have it compiled once more."""

ARM_FIELDS: Final = [
    ("agent", "i8"),
    ("number", "i8"),  # of the arm inside its agent
    ("original", "i8"),  # inside its agent
    ("copy", "i8"),
    ("column", "i8"),  # of the original in an array of means
    ("tape", "u8"),
    ("mean", "f8"),
    ("loss", "f8"),  # against the best original
]


def arm_rows(job: Job) -> list[tuple[int, int, int, int, int]]:
    """The first five fields of every arm that the copies of a job register, in the order of registration."""
    rows, column = [], 0
    for i, agent in enumerate(job.market.agents):
        arms = enumerate(arms_of(job.copies[agent.name]))
        rows += [(i, number, original, copy, column + original) for number, (original, copy) in arms]
        column += agent.count
    return rows


@compiled
def begin_run(arms, count, tapes, means):
    """The tape, the mean and the loss of each of the first `count` rows; equal originals and copies share a tape."""
    best = means[0]
    for o in range(1, len(means)):
        best = max(best, means[o])
    for a in range(count):
        arms[a].tape = word(word(word(tapes, arms[a].agent), arms[a].original), arms[a].copy)
        arms[a].mean = means[arms[a].column]
        arms[a].loss = best - arms[a].mean


@compiled
def rank_by_word(rows, begin, end):
    """Put the positions 0, 1, .. of the rows into their fields `rank`, in increasing order of `word`.

    Shell's sort: a few lines to compile, and quick enough for thousands of rows.
    """
    count = end - begin
    for k in range(count):
        rows[begin + k].rank = k
    gap = count // 2
    while gap > 0:
        for k in range(gap, count):
            here = rows[begin + k].rank
            value = rows[begin + here].word
            at = k
            while at >= gap:
                other = rows[begin + at - gap].rank
                before = rows[begin + other].word
                if before < value or (before == value and other < here):
                    break
                rows[begin + at].rank = other
                at -= gap
            rows[begin + at].rank = here
        gap = 1 if gap == 2 else gap * 5 // 11


@compiled
def admitted_arms(stream, arms, first):
    """How many of so many arms `mechanisms.sample.Admission` keeps; `stream` is that of the sample."""
    coins, kept = word(stream, np.uint64(ADMISSION)), 0
    for k in range(1, arms + 1):
        if uniform(coins, k) * k < first:
            kept += 1
    return kept


@compiled
def all_explored(candidates, rounds):
    """The rounds that exploration takes, at most NEVER: a product that cannot overflow."""
    return candidates * rounds if rounds <= NEVER // candidates else NEVER
