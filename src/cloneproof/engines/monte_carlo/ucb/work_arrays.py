"""The arrays that runs of a chunk work in, one after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Work(NamedTuple):
    """By registered arm, by level, by agent (these are levels too), by original.

    kept        the arms of a level after its sample, then by position: `order` of exploration, `tape` (two words: the
                state of the tape, the threshold of a success), pulls, sums, estimates of means, 1/sqrt(pulls)
    streams     of a level, and of its ties; how many arms it keeps, rounds so far, leader, until when its bar holds
    agent_..    the same statistics of agents; an agent's sum is `agent_sums` + `agent_rests` 2^-60
    tapes       of an original, threshold of a success, mean, mean in ticks, the first original with the same mean
    """

    kept: Any
    order: Any
    tape: Any
    pulls: Any
    sums: Any
    estimates: Any
    roots: Any
    streams: Any
    ties: Any
    counts: Any
    rounds: Any
    leader: Any
    until: Any
    bars: Any
    agent_keys: Any
    agent_order: Any
    agent_pulls: Any
    agent_sums: Any
    agent_rests: Any
    agent_means: Any
    agent_roots: Any
    tapes: Any
    thresholds: Any
    means: Any
    ticks: Any
    classes: Any
    nothing: Any


def new_work(arms: int, levels: int, originals: int, constant: bool) -> Work:
    """Room for so many of each."""

    def ints(count: int) -> Any:
        return np.zeros(count, np.int64)

    def words(count: int) -> Any:
        return np.zeros(count, np.uint64)

    return Work(
        ints(arms), ints(arms), words(2 * arms), ints(arms), ints(arms), np.zeros(arms), np.zeros(arms),
        words(levels), words(levels), ints(levels), ints(levels), ints(levels), ints(levels), np.zeros(levels),
        np.arange(levels, dtype=np.uint64), ints(levels), ints(levels), ints(levels), ints(levels * constant),
        np.zeros(levels), np.zeros(levels),
        words(originals), ints(originals), np.zeros(originals), ints(originals), ints(originals), ints(0),
    )  # fmt: skip
