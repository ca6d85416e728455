"""The arrays that the runs of a chunk work in, one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray, WordArray


class Statistics(NamedTuple):
    """Of candidates: pulls, sums of rewards, and what estimates their index, mean + root(t) / sqrt(pulls).

    The exact sum is `sums` + `rests` 2^-60, and `rests` is empty where every sum is a whole number. Where rewards are
    constant, the sum of an arm is not needed, and `sums` holds the first original of the same mean instead.
    """

    pulls: IntArray
    sums: IntArray
    rests: IntArray
    means: FloatArray
    roots: FloatArray  # 1 / sqrt(pulls)


class Positions(NamedTuple):
    """Of the arms that a level keeps after its sample, by their position in it.

    `arm` is the registered one, `order` says which position is explored when, `tape` has two words for each: the state
    of its reward tape, and the threshold of a success.
    """

    arm: IntArray
    order: IntArray
    tape: WordArray


class Levels(NamedTuple):
    """Of the levels: streams, how many arms each keeps, rounds so far, and its leader.

    No other arm of a level has an index above `rivals` as long as its clock is at most `until`.
    """

    streams: WordArray
    ties: WordArray
    counts: IntArray
    rounds: IntArray
    leader: IntArray
    until: IntArray
    rivals: FloatArray


class Originals(NamedTuple):
    """Of the originals: reward tape, threshold of a success, mean, mean in ticks, first original of the same mean."""

    tapes: WordArray
    thresholds: IntArray
    means: FloatArray
    ticks: IntArray
    classes: IntArray


class Work(NamedTuple):
    """All of it; `agent_keys` and `agent_order` are the keys of the agents and the order in which they are explored."""

    arms: Statistics
    agents: Statistics
    positions: Positions
    levels: Levels
    originals: Originals
    agent_keys: WordArray
    agent_order: IntArray


def new_work(arms: int, levels: int, originals: int, constant: bool) -> Work:
    """Arrays for so many of each."""

    def ints(count: int) -> IntArray:
        return np.zeros(count, np.int64)

    def words(count: int) -> WordArray:
        return np.zeros(count, np.uint64)

    def statistics(count: int, rests: int) -> Statistics:
        return Statistics(ints(count), ints(count), ints(rests), np.zeros(count), np.zeros(count))

    return Work(
        statistics(arms, 0),
        statistics(levels, levels * constant),
        Positions(ints(arms), ints(arms), words(2 * arms)),
        Levels(words(levels), words(levels), ints(levels), ints(levels), ints(levels), ints(levels), np.zeros(levels)),
        Originals(words(originals), ints(originals), np.zeros(originals), ints(originals), ints(originals)),
        np.arange(levels, dtype=np.uint64),
        ints(levels),
    )
