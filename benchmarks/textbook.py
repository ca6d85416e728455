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


@nb.njit(cache=True, nogil=True)
def textbook_thompson(means, horizon, seed):
    """One run, compiled: NumPy's own Beta variate for each arm in each round; returns the pulls of each arm."""
    np.random.seed(seed)
    arms = len(means)
    pulls, wins = np.zeros(arms, np.int64), np.zeros(arms)
    for _ in range(horizon):
        best, highest = 0, -1.0
        for k in range(arms):
            value = np.random.beta(1.0 + wins[k], 1.0 + pulls[k] - wins[k])
            if value > highest:
                best, highest = k, value
        wins[best] += np.random.random() < means[best]
        pulls[best] += 1
    return pulls


@nb.njit(cache=True, nogil=True)
def textbook_epsilon_greedy(means, horizon, seed, c=1.0):
    """One run, compiled: the average of each arm in each round; returns the pulls of each arm."""
    np.random.seed(seed)
    arms = len(means)
    pulls, wins = np.zeros(arms, np.int64), np.zeros(arms)
    for t in range(1, horizon + 1):
        best = 0
        if np.random.random() * t < c * arms:
            best = np.random.randint(arms)
        else:
            highest = -1.0
            for k in range(arms):
                value = wins[k] / pulls[k] if pulls[k] else 0.0
                if value > highest:
                    best, highest = k, value
        wins[best] += np.random.random() < means[best]
        pulls[best] += 1
    return pulls
