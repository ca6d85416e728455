"""What a contest of champions costs: finding them, and steady KL-UCB among them, by its constant.

Champions of means m_1 >= m_2 >= .. are ranked by indices with n kl(mean, index) = w, w = c ln T. Two costs oppose each
other:

1. A champion of mean m is pulled about w / kl(m, m_1) times before its index falls below m_1.
2. The index of champion i may fall below m_j < m_i for good. After n zeros it has if n ln(1 / (1 - m_j)) > w, which has
   a probability of about exp(-w r), r = ln(1 - m_i) / ln(1 - m_j) >= 1; other paths are less likely by their exponents.
   The contest loses m_j - m_(j+1) in every round if all of the first j fall below m_(j+1).

Any constant is clone-proof, so this may be rough: it only affects the regret (`studies/contest_tuning.py` compares).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy

from cloneproof._arrays import FloatArray
from cloneproof.bounds.reservoir import ReservoirMarket, ReservoirNumbers, pass_chances

WORLDS = 256  # of drawn champions
PATHS = 2.0  # times exp(-w r): all ways in which an index falls too low; simulated regrets are least about there
CONSTANTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
MOST_RANKS = 8  # champions of whom all fall too low


def contest_cost(market: ReservoirMarket, numbers: ReservoirNumbers) -> float:
    """Bound from below what a contest of champions costs: exploration, and champions that are not the best original.

    Every agent has s n rounds; the contest is assumed to find the best champion at once.
    """
    rounds = numbers.draws * numbers.rounds
    contest = market.horizon - rounds * len(market.agents)
    if contest < 0:  # no room for the exploration of everybody: all may be lost, the worse the less room there is
        return market.horizon * market.best_mean - contest
    explored = 0.0
    for agent, count in market.alike.items():
        alone = replace(market, agents=[agent], horizon=rounds, expected_best=None)
        explored += count * sum(alone.rewards(numbers))
    laws = champion_laws(market, numbers)
    counts = np.array([*market.alike.values()])[:, None]
    below = np.prod(np.minimum(1.0, np.cumsum(laws, axis=1)) ** counts, axis=0)
    champion = float(market.values @ np.diff(below, prepend=0.0))
    return market.horizon * market.best_mean - explored - contest * champion


def champion_laws(market: ReservoirMarket, numbers: ReservoirNumbers) -> FloatArray:
    """Return the law of the champion's mean, for an agent of each kind: kinds x values."""
    s = numbers.draws
    return market.draws.champions(s, pass_chances(market.values, numbers), market.scores(numbers, s))


def contest_constant(market: ReservoirMarket, numbers: ReservoirNumbers) -> float:
    """Find the constant of steady KL-UCB of about the least regret among the champions of these numbers.

    >>> prior = [(0.25, 0.5), (0.75, 0.5)]
    >>> contest_constant(ReservoirMarket([[prior]] * 4, horizon=10**4), ReservoirNumbers(1, 1, 1))
    0.2
    """
    agents = np.repeat(np.arange(len(market.alike)), [*market.alike.values()])
    rounds = market.horizon - numbers.draws * numbers.rounds * len(agents)
    if len(agents) == 1 or rounds <= 0:
        return 1.0
    reached = np.cumsum(champion_laws(market, numbers), axis=1)
    words = np.random.PCG64(0).random_raw(WORLDS * len(agents)).reshape(len(agents), WORLDS)  # the same on all machines
    places = [
        np.searchsorted(reached[kind], (own >> np.uint64(11)) * 2.0**-53 * reached[kind, -1])
        for kind, own in zip(agents, words, strict=True)
    ]
    means = np.sort(market.values[np.minimum(places, len(market.values) - 1)], axis=0)[::-1]  # ranks x worlds
    best, ranks = means[0], min(MOST_RANKS, len(means) - 1)
    divergence = scipy.special.rel_entr(means, best) + scipy.special.rel_entr(1 - means, 1 - best)
    surprise = -np.log1p(-np.minimum(means, 1 - 1e-12))
    regrets = []
    for constant in CONSTANTS:
        width = constant * math.log(market.horizon)
        pulled = np.minimum(rounds / len(agents), width / np.maximum(divergence[1:], 1e-15))
        lost = ((best - means[1:]) * pulled).sum(axis=0)
        for last in range(1, ranks + 1):
            ratios = surprise[:last] / np.maximum(surprise[last], 1e-15)
            fallen = np.minimum(1.0, PATHS * np.exp(-width * ratios)).prod(axis=0)
            lost = lost + rounds * (means[last - 1] - means[last]) * fallen
        regrets.append(float(lost.mean()))
    return CONSTANTS[int(np.argmin(regrets))]
