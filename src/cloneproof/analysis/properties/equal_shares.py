"""A sequential test that many events all have the same known probability (Wald's probability ratio test)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def least_bias(events: int, error_rate: float, most: int) -> float:
    """How far from its share an event must be to be surely found: twice Hoeffding's bound at `most` trials."""
    return 2 * math.sqrt(math.log(4 * events / error_rate) / (2 * most))


def biased_events(
    trials: Iterable[Sequence[int]], events: int, share: float, error_rate: float, most: int
) -> tuple[list[int], NDArray[np.int64], int]:
    """Which of some events do not have the probability `share`, from as few independent trials as it takes.

    An event is cleared once the ratio of likelihoods of share +- `least_bias` to `share` is error_rate / 2 on both
    sides, and biased once one ratio is 4 events / error_rate (Wald 1945; each is Ville's inequality). What is neither
    after `most` trials is decided by Hoeffding's inequality. Either way is wrong at half of the error rate.

    Parameters
    ----------
    trials : iterable of sequences of int
        The events, numbered from 0, that happened in each trial; independent from trial to trial. They may depend on
        each other within a trial.
    events : int
        How many events there are.
    share : float
        The probability of each.
    error_rate : float
        How often an event is named although all have probability `share`; and how often an event that is off by
        `least_bias` or more is missed.
    most : int
        The most trials to look at.

    Returns
    -------
    tuple
        The events that are biased, how often each event happened, and how many trials were looked at.
    """
    bias = least_bias(events, error_rate, most)
    others = np.array([[q] for q in (share - bias, share + bias) if 0 < q < 1])
    if_so, if_not = np.log(others / share), np.log((1 - others) / (1 - share))
    counts, seen = np.zeros(events, dtype=np.int64), 0
    cleared = np.zeros((len(others), events), dtype=bool)
    for seen, happened in enumerate(trials, start=1):
        counts[list(happened)] += 1
        evidence = counts * if_so + (seen - counts) * if_not
        cleared |= evidence <= math.log(error_rate / 2)
        biased: NDArray[np.bool_] = np.any(evidence >= math.log(4 * events / error_rate), axis=0)
        if seen == most:
            biased |= ~cleared.all(axis=0) & (abs(counts / most - share) > bias / 2)
        if biased.any() or cleared.all() or seen == most:
            return [event for event in range(events) if biased[event]], counts, seen
    raise ValueError(f"expected {most} trials, got {seen}")
