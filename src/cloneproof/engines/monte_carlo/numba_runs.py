"""Shared parts of the kernels in Numba: random streams as in `engines.reference`, and results."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.compiling import average, compiled, inlined, plus, uniform, word
from cloneproof.engines.reference import SESSION_STREAM, TAPE_STREAM
from cloneproof.mechanisms.online.streams import COINS_STREAM, LEVELS_STREAM, SAMPLE_STREAM, STATE_STREAM
from cloneproof.mechanisms.sample import ADMISSION

NEVER: Final = 1 << 62  # more rounds than any horizon has
ZERO, ONE, NONE = np.int64(0), np.int64(1), np.int64(-1)
"""64-bit numbers: a literal among the arguments of a compiled function would have it compiled once more."""
ROUND_ROBIN, BLOCK, INDEX = range(3)
ORDERS: Final = {"round-robin": ROUND_ROBIN, "block": BLOCK, "index": INDEX}


class RunStreams(NamedTuple):
    """Streams of one run: of its reward tapes, its levels, its sample of the arms, and its binarising coins."""

    tapes: np.uint64
    levels: np.uint64
    sample: np.uint64
    coins: np.uint64


@compiled
def streams_of(run_stream):
    """Return the streams of a run, from `substream(0, seed, run)`."""
    session = word(np.uint64(0), word(run_stream, SESSION_STREAM) >> np.uint64(1))
    state = word(session, STATE_STREAM)
    return RunStreams(
        word(run_stream, TAPE_STREAM), word(state, LEVELS_STREAM), word(state, SAMPLE_STREAM),
        word(session, COINS_STREAM),
    )  # fmt: skip


@compiled
def level_stream(levels, version, key):
    """Return the stream of a level, as `mechanisms.online.levels.level_stream`."""
    return word(word(levels, version), key)


@inlined
def close_run(arms, paid, results, r):
    """Enter what each agent is paid in run r, from exact sums; and add the pulls of its arms."""
    for a in range(len(arms)):
        results.views[r, arms[a].column, 0] += arms[a].pulls
    for i in range(len(paid)):
        results.payoff[r, i] = average(paid[i, 0], paid[i, 1], ONE)


@compiled
def pay(paid, agent, high, low):
    """Pay an agent an exact sum."""
    paid[agent, 0], paid[agent, 1] = plus(paid[agent, 0], paid[agent, 1], high, low)


@inlined
def begin_run(arms, count, tapes, means):
    """Set the tape and the mean of the first `count` rows, with no pulls; equal originals and copies share a tape."""
    for a in range(count):
        arms[a].tape = word(word(word(tapes, arms[a].agent), arms[a].original), arms[a].copy)
        arms[a].mean = means[arms[a].column]
        arms[a].pulls = 0


@inlined
def rank_by_word(rows, begin, end):
    """Put the positions 0, 1, .. of the rows into their fields `rank`, in increasing order of `word`.

    Shell's sort: quick to compile, and fast enough for thousands of rows.
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
    """Return how many of `arms` arms `mechanisms.Admission` keeps; `stream` is that of the sample."""
    coins, kept = word(stream, np.uint64(ADMISSION)), 0
    for k in range(1, arms + 1):
        if uniform(coins, k) * k < first:
            kept += 1
    return kept


@compiled
def all_explored(candidates, rounds):
    """Return the rounds of a whole exploration, at most NEVER, so that the product cannot overflow."""
    return candidates * rounds if rounds <= NEVER // candidates else NEVER
