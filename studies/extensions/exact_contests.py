"""A contest between agents after their exploration, exactly: how many rounds it gives to one of them.

A contest sees nothing but fresh rewards of the arm that each agent committed to. Everything is computed for many
vectors of committed means at once: a state (rounds and successes of each agent) does not depend on them, only the
chance to get there does. Bernoulli rewards; sizes of two agents and 30 rounds, or three and 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from cloneproof._arrays import FloatArray

Numbers = tuple[int, ...]
Contest = Callable[[Numbers, Numbers, int, int], dict[int, float]]  # rounds, successes, rounds played, horizon -> picks


def index_contest(index: Callable[[float, int, int, int], float]) -> Contest:
    """The highest index of (mean, rounds, clock, horizon), ties evenly."""

    def pick(rounds: Numbers, successes: Numbers, clock: int, horizon: int) -> dict[int, float]:
        values = [index(s / n, n, clock, horizon) for n, s in zip(rounds, successes, strict=True)]
        best = [i for i, value in enumerate(values) if value >= max(values) - 1e-12]
        return dict.fromkeys(best, 1 / len(best))

    return pick


STEADY = index_contest(lambda mean, n, clock, horizon: mean + math.sqrt(math.log(horizon) / n))
CLOCKED = index_contest(lambda mean, n, clock, horizon: mean + math.sqrt(2 * math.log(clock + 1) / n))
LEADER = index_contest(lambda mean, n, clock, horizon: mean)
LAST = index_contest(lambda mean, n, clock, horizon: -mean)  # the worst one wins: as perverse as can be


def rounds_of_first(
    contest: Contest, means: FloatArray, rounds: int, horizon: int, start: Numbers | None = None
) -> FloatArray:
    """The expected rounds of agent 0 among so many, at each row of means; `start` rewards of each are known before."""
    agents = means.shape[1]
    begin = start or (1,) * agents

    @cache
    def ahead(counts: Numbers, successes: Numbers) -> FloatArray:
        played = sum(counts) - sum(begin)
        if played == rounds:
            return np.zeros(len(means))
        total = np.zeros(len(means))
        for i, chance in contest(counts, successes, sum(counts), horizon).items():
            more = tuple(n + (j == i) for j, n in enumerate(counts))
            won = tuple(s + (j == i) for j, s in enumerate(successes))
            mean = means[:, i]
            total += chance * ((i == 0) + mean * ahead(more, won) + (1 - mean) * ahead(more, successes))
        return total

    def opened(i: int, successes: Numbers) -> FloatArray:
        if i == agents:
            return ahead(begin, successes)
        total = np.zeros(len(means))
        for s in range(begin[i] + 1):
            mean = means[:, i]
            chance = math.comb(begin[i], s) * mean**s * (1 - mean) ** (begin[i] - s)
            total += chance * opened(i + 1, (*successes, s))
        return total

    return opened(0, ())


def elimination_rounds(means: FloatArray, rounds: int, stages: int, margin: Callable[[int], float]) -> FloatArray:
    """The same for successive elimination: a round for each survivor in every stage.

    After stage s those more than margin(s) successes behind the best survivor leave; the last one, or the best after
    the last stage (ties evenly), gets what is left of the rounds.
    """
    agents = means.shape[1]

    @cache
    def ahead(stage: int, alive: Numbers, successes: Numbers, left: int) -> FloatArray:
        best = max(successes[i] for i in alive)
        if stage:
            alive = tuple(i for i in alive if best - successes[i] <= margin(stage))
        if len(alive) == 1 or stage == stages:
            leaders = [i for i in alive if successes[i] == best]
            return np.full(len(means), left * (0 in leaders) / len(leaders))
        total = np.full(len(means), float(0 in alive))
        for outcome in np.ndindex(*(2,) * len(alive)):
            chance = np.ones(len(means))
            after = list(successes)
            for i, success in zip(alive, outcome, strict=True):
                chance = chance * (means[:, i] if success else 1 - means[:, i])
                after[i] += success
            total = total + chance * ahead(stage + 1, alive, tuple(after), left - len(alive))
        return total

    return ahead(0, tuple(range(agents)), (0,) * agents, rounds)


def mean_grid(values: Sequence[float], agents: int) -> FloatArray:
    """Every vector of these means."""
    return np.array(np.meshgrid(*[values] * agents, indexing="ij")).reshape(agents, -1).T


def steepest_fall(values: Sequence[float], rounds: FloatArray, agents: int) -> tuple[float, tuple[float, ...], float]:
    """The largest loss of rounds as the own mean rises by a step: how much, at which means, and to which own mean."""
    shaped = rounds.reshape((len(values),) * agents)
    falls = shaped[:-1] - shaped[1:]
    at = np.unravel_index(int(np.argmax(falls)), falls.shape)
    return float(falls[at]), tuple(float(values[k]) for k in at), float(values[at[0] + 1])
