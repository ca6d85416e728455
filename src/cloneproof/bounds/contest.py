"""Cost of a contest of champions, as a function of its parameters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cloneproof.bounds.reservoir import ReservoirMarket, ReservoirNumbers, pass_chances


def contest_cost(market: ReservoirMarket, numbers: ReservoirNumbers) -> float:
    """A lower bound of what a contest of champions costs: exploration, and champions that are not the best original.

    Every agent has s n rounds; the contest is assumed to find the best champion at once.
    """
    rounds = numbers.draws * numbers.rounds
    contest = market.horizon - rounds * len(market.agents)
    if contest < 0:  # no room for the exploration of everybody
        return math.inf
    explored = 0.0
    for agent, count in market.alike.items():
        alone = replace(market, agents=[agent], horizon=rounds, expected_best=None)
        explored += count * sum(alone.rewards(numbers))
    laws = market.draws.champions(
        numbers.draws, pass_chances(market.values, numbers), market.scores(numbers, numbers.draws)
    )
    counts = np.array([*market.alike.values()])[:, None]
    below = np.prod(np.minimum(1.0, np.cumsum(laws, axis=1)) ** counts, axis=0)
    champion = float(market.values @ np.diff(below, prepend=0.0))
    return market.horizon * market.best_mean - explored - contest * champion
