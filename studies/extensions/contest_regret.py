"""The regret of two contests after exploration: steady UCB over agents, and successive elimination.

Many runs at once: means from the priors, the arms' exploration in binomial draws, a commitment for each agent, then the
contest on fresh rewards. The regret is counted in means, against the best original.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import cloneproof as cp
from cloneproof._arrays import FloatArray

CHUNK = 1000  # rounds for which random numbers are drawn at once


@dataclass(frozen=True)
class Like:
    """Like agents: n of them, with so many originals each, all values equally likely."""

    agents: int
    originals: int
    values: tuple[float, ...]

    @property
    def gap(self) -> float:
        """The smallest distance of two values."""
        return min(b - a for a, b in pairwise(self.values))

    def market(self, horizon: int) -> cp.Market:
        """The market."""
        prior = cp.Discrete(list(self.values), [1 / len(self.values)] * len(self.values))
        return cp.Market([cp.Agent(f"a{i}", self.originals, prior) for i in range(self.agents)], horizon=horizon)


def steady_mechanism(m: int, arms: int, horizon: int) -> cp.Mechanism:
    """K m rounds for every agent, then steady UCB over agents on fresh rewards of the arms committed to."""
    return cp.Mechanism(
        agent=cp.rule("steady-ucb", horizon=horizon, rounds=arms * m + 1),
        arm=cp.rule("etc", rounds=m),
        score=cp.parts.HoldOut(rounds=horizon, max_arms=arms),
    )


def steady_regret(like: Like, m: int, horizon: int, runs: int, seed: int = 1) -> tuple[float, float]:
    """The regret and its half-width at 99 % by the normal law, K = L; ties go by number, which is as good as at random.

    The library samples the same mechanism decision by decision; this is the second opinion, and quick.
    """
    random = np.random.default_rng(seed)
    best, committed, regret = _explored(like, m, runs, random)
    rows, width = np.arange(runs), math.log(horizon)
    pulls = np.ones(committed.shape)
    won = (random.random(committed.shape) < committed).astype(float)
    index = won + math.sqrt(width)
    left = horizon - like.agents * (like.originals * m + 1)
    for start in range(0, left, CHUNK):
        for luck in random.random((min(CHUNK, left - start), runs)):
            picked = index.argmax(axis=1)
            n = pulls[rows, picked] + 1
            successes = won[rows, picked] + (luck < committed[rows, picked])
            pulls[rows, picked], won[rows, picked] = n, successes
            index[rows, picked] = successes / n + np.sqrt(width / n)
    return _interval(regret + (pulls * (best[:, None] - committed)).sum(axis=1))


def elimination_regret(like: Like, m: int, horizon: int, runs: int, seed: int = 1) -> tuple[float, float]:
    """The same for elimination, K = L, at 99 % by the normal law.

    After stage s an agent leaves that is more than sqrt(2 s ln T) successes behind: its mean is lower but for a chance
    of T^-2. The best of those who are left at the end would get the rest; where they are equally good, now.
    """
    random = np.random.default_rng(seed)
    best, committed, regret = _explored(like, m, runs, random)
    left = np.full(runs, horizon - like.agents * like.originals * m)
    alive, won, stage = np.ones(committed.shape, bool), np.zeros(committed.shape), 0
    while True:
        highest = np.where(alive, committed, -1.0).max(axis=1)
        going = (np.where(alive, committed, 2.0).min(axis=1) < highest) & (left >= alive.sum(axis=1))
        if not going.any():
            return _interval(regret + left * (best - highest))
        stage += 1
        playing = alive & going[:, None]
        won += playing & (random.random(won.shape) < committed)
        regret += (playing * (best[:, None] - committed)).sum(axis=1)
        left -= playing.sum(axis=1)
        lead = np.where(alive, won, -1.0).max(axis=1, keepdims=True)
        alive &= ~going[:, None] | (lead - won <= math.sqrt(2 * stage * math.log(horizon)))


def _explored(like: Like, m: int, runs: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The best mean of all, the mean that each agent commits to, and the regret of everybody's exploration."""
    means = random.choice(np.array(like.values), size=(runs, like.agents, like.originals))
    judged = random.binomial(m, means) + random.random(means.shape)  # ties at random
    committed = np.take_along_axis(means, judged.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    best = means.max(axis=(1, 2))
    return best, committed, m * (like.agents * like.originals * best - means.sum(axis=(1, 2)))


def _interval(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), float(2.576 * values.std(ddof=1) / math.sqrt(len(values)))
