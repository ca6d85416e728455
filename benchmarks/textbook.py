"""UCB1 as textbooks have it, for comparison: every index of every arm, in every round."""

from __future__ import annotations

import math

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True)
def index(mean, pulls, t):
    return mean + math.sqrt(2.0 * math.log(t) / pulls)


@nb.njit(cache=True, nogil=True)
def textbook_ucb1(means, horizon, seed):
    """One run, compiled: a logarithm and a square root for each arm in each round; returns the pulls of each arm."""
    np.random.seed(seed)
    arms = len(means)
    pulls, wins = np.zeros(arms, np.int64), np.zeros(arms)
    for t in range(1, horizon + 1):
        best, highest = 0, -math.inf
        for k in range(arms):
            if pulls[k] == 0:
                best = k
                break
            value = index(wins[k] / pulls[k], pulls[k], t)
            if value > highest:
                best, highest = k, value
        wins[best] += np.random.random() < means[best]
        pulls[best] += 1
    return pulls


def numpy_ucb1(means, horizon, runs, seed):
    """Many runs side by side in NumPy: a round is a few operations on arrays of runs x arms."""
    rng = np.random.default_rng(seed)
    arms = len(means)
    pulls, wins = np.ones((runs, arms)), (rng.random((runs, arms)) < means).astype(float)
    rows = np.arange(runs)
    for t in range(arms + 1, horizon + 1):
        best = np.argmax(wins / pulls + np.sqrt(2.0 * math.log(t) / pulls), axis=1)
        wins[rows, best] += rng.random(runs) < means[best]
        pulls[rows, best] += 1
    return pulls
