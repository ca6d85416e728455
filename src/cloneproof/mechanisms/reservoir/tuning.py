"""Tune the parameters of a reservoir: a pattern search on the exact regret of `laws.reservoir`.

Any parameters are clone-proof, so tuning may use whatever the platform believes about quality, but not what was
registered. The search starts with a threshold between each pair of neighbouring values (Chernoff's point). It changes
pulls, threshold and draws first on a regret that takes slots as independent draws (`independent_regret`), which takes
a fraction of a millisecond, then on the exact one, until nothing helps or it has been computed often enough. Work is
counted, so that one market has one answer; if time is over, the answer is the first search's. More draws than a few
ln(T) for each original are not tried: where bad items never pass they cost nothing, and gain nothing.

What a contest of champions costs. Champions of means m_1 >= m_2 >= .. are ranked by indices with n kl(mean, index) = w,
w = c ln T. Two costs oppose each other:

1. A champion of mean m is pulled about w / kl(m, m_1) times before its index falls below m_1.
2. The index of champion i may fall below m_j < m_i for good. After n zeros it has if n ln(1 / (1 - m_j)) > w, which has
   a probability of about exp(-w r), r = ln(1 - m_i) / ln(1 - m_j) >= 1; other paths are less likely by their exponents.
   The contest loses m_j - m_(j+1) in every round if all of the first j fall below m_(j+1).

Any constant is clone-proof, so this may be rough: it only affects the regret.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy

from cloneproof._lib.arrays import FloatArray
from cloneproof.errors import MechanismError
from cloneproof.laws.draws import weights_of
from cloneproof.laws.reservoir import ReservoirMarket, ReservoirNumbers, pass_chances
from cloneproof.mechanisms.pattern_search import PatternSearch, halved

MOST_LEVELS = 40  # values of the priors that are tried one by one; of more, a few quantiles
MOST_PAIRS = 6  # pairs of neighbouring values, the highest ones, between which a threshold is tried
START = 0.35  # pulls at the start, times ln(T) / (2 rho), with rho the Chernoff information of the two values
FINEST = 0.015  # relative step at which the search ends
GAIN = 1e-4  # smallest relative gain that counts as a better point
ROUNDING = 1e-12  # smallest absolute gain that counts, per round
ROUGHLY = 3  # best starts, from each of which a rough search begins
VALLEYS = 2  # best results of rough searches, from each of which an exact search begins
CELLS = 32  # cells of counts during the search
DRAWS = 2.5  # most draws of an agent that are tried, per original and ln(T)
MOST_DRAWS = 500  # most draws of an agent that are tried at all
LOOKS = 110.0  # evaluations of the exact cost, in units of a market with one kind of agents and few draws
MANY = 80  # draws of all kinds of agents together that add one such unit to an evaluation
LEVELS = 16  # cells of counts that do not pass, where slots are taken as independent
TINY = 1e-300  # keeps quotients finite
WORLDS = 256  # of drawn champions
PATHS = 2.0  # times exp(-w r): all ways in which an index falls too low; simulated regrets are least about there
CONSTANTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
MOST_RANKS = 8  # champions of whom all fall too low


class TunedReservoir(NamedTuple):
    """Tuned parameters, their regret, and the regret with a threshold one level of values too low or too high."""

    numbers: ReservoirNumbers
    regret: float
    too_low: float
    too_high: float
    exploration: float


def tune_reservoir(market: ReservoirMarket, coarse: ReservoirMarket | None = None) -> TunedReservoir:
    """Find pulls, draws and threshold of about the smallest regret; searches in a coarse market if one is given.

    >>> prior = [(0.01, 1), (0.02, 1), (0.03, 1)]
    >>> tuned = tune_reservoir(ReservoirMarket([[prior] * 3] * 10, horizon=10**7))
    >>> tuned.regret < 263 and tuned.exploration < 0.01
    True
    """
    searched = _coarse(coarse or market)
    best, points = _tuned(searched, searched.regret)
    pulls, draws, threshold = best
    assert threshold is not None
    shift = max(1, round(pulls * points.distance(best)))
    return TunedReservoir(
        best,
        float(market.regret(best)),
        float(market.regret(ReservoirNumbers(pulls, draws, max(1, threshold - shift)))),
        float(market.regret(ReservoirNumbers(pulls, draws, min(pulls + 1, threshold + shift)))),
        float(market.exploration(best)),
    )


def tune_contest(market: ReservoirMarket) -> tuple[ReservoirNumbers, float]:
    """Tune the pulls, draws and threshold that find champions, and the constant of the contest among them.

    The numbers are tuned exactly on exploration and the quality of champions, since the contest's own regret depends
    little on them; the constant on an approximation of that regret (above).
    """
    searched = _coarse(market)
    numbers, _ = _tuned(searched, lambda numbers: contest_cost(searched, numbers))
    return numbers, contest_constant(market, numbers)


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


def _tuned(
    market: ReservoirMarket, cost: Callable[[ReservoirNumbers], float]
) -> tuple[ReservoirNumbers, _Neighbourhood]:
    if market.horizon < len(market.agents):
        raise MechanismError(
            f"expected a horizon of at least one round for each of {len(market.agents)} agents, got {market.horizon}; "
            "give a longer horizon, or the numbers of the reservoir themselves"
        )
    points = _Neighbourhood(market)
    if sum(map(len, market.agents)) == 1:  # nothing to choose
        return ReservoirNumbers(1, 1, 1), points
    rough, search = points.search(partial(independent_regret, market), timed=False), points.search(cost)
    starts = sorted(points.starts(), key=rough.cost)[:ROUGHLY]
    descents = (rough.descend(start, points.near, halved(0.8, 0.1)) for start in starts)
    valleys = sorted({*starts, *descents}, key=rough.cost)
    search.best_of(valleys)
    lowest = sorted((point for point in valleys if point in search.known), key=search.cost)[:VALLEYS]
    search.most //= 2  # the other half for the last steps
    best = search.best_of([search.descend(point, points.near, halved(0.8, 0.1)) for point in lowest])
    search.most *= 2
    while (better := search.descend(best, points.near, halved(0.1, FINEST))) != best:
        best = better  # counts are whole: a longer step may help again
    return best, points


def _coarse(market: ReservoirMarket) -> ReservoirMarket:
    """Return the market with counts in fewer cells, fewest if there are many kinds of agents, for speed."""
    return replace(market, cells=max(CELLS // 3, CELLS // (1 + len(market.alike) // 4)))


def independent_regret(market: ReservoirMarket, numbers: ReservoirNumbers) -> float:
    """Approximate the regret by that of independent slots, as many as different originals are drawn.

    Counts below the threshold are grouped into LEVELS cells, the best of which wins if no slot passes.

    >>> prior = [(0.01, 1.0), (0.02, 1.0), (0.03, 1.0)]
    >>> market, numbers = ReservoirMarket([[prior] * 3] * 10, horizon=10**7), ReservoirNumbers(4000, 24, 101)
    >>> round(market.regret(numbers)), round(independent_regret(market, numbers))
    (1405, 1385)
    """
    pulls, draws, threshold = numbers
    assert threshold is not None
    law = market.average_law
    slots = min(len(market.agents) * draws, market.horizon / pulls)
    drawn = sum(count * len(agent) * (1 - (1 - 1 / len(agent)) ** draws) for agent, count in market.alike.items())
    cells = np.unique(np.linspace(0, threshold - 1, LEVELS).round())
    shares = np.diff(scipy.special.bdtr(cells[:, None], pulls, market.values), axis=0, prepend=0.0)  # cells x values
    at, paid, mean = shares @ law, shares @ (law * market.values), float(law @ market.values)
    below = np.cumsum(at)
    passing, different = max(0.0, 1 - float(below[-1])), min(slots, drawn)
    none = float(below[-1]) ** different
    tested = min(market.horizon, pulls * min(slots, (1 - none) / max(passing, TINY) + none * slots))
    best = float(np.diff(below**different, prepend=0.0) @ (paid / np.maximum(at, TINY)))
    after = (1 - none) * max(0.0, mean - float(paid.sum())) / max(passing, TINY) + best
    return tested * (market.best_mean - mean) + (market.horizon - tested) * (market.best_mean - after)


class _Neighbourhood:
    """Points of the search in one market: where it starts, and what is near a point."""

    def __init__(self, market: ReservoirMarket) -> None:
        self.market = market
        self.most_pulls = max(1, market.horizon // len(market.agents))
        self.originals = max(len(agent) for agent in market.agents)
        self.most_draws = min(MOST_DRAWS, math.ceil(DRAWS * self.originals * math.log(market.horizon + 1)))
        values = market.values
        if len(values) > MOST_LEVELS:  # a continuous prior: levels that all originals together reach equally often
            law = sum(weights_of(atoms, values) for agent, count in market.alike.items() for atoms in agent * count)
            reached = np.cumsum(law) / np.sum(law)
            values = values[np.searchsorted(reached, 1 - 0.5 ** np.arange(MOST_PAIRS, -1, -1))]
        self.pairs = [(low, high) for low, high in pairwise(sorted(set(map(float, values)))) if high > low][
            -MOST_PAIRS:
        ]

    def search(self, cost: Callable[[ReservoirNumbers], float], timed: bool = True) -> PatternSearch[ReservoirNumbers]:
        """Return a search that counts evaluations by the kinds of agents and draws."""
        return PatternSearch(
            cost,
            work=lambda point: 1 + len(self.market.alike) * point.draws / MANY,
            most=LOOKS if timed else math.inf,
            gain=GAIN,
            least=ROUNDING * self.market.horizon,
        )

    def starts(self) -> list[ReservoirNumbers]:
        """Return a point for every pair of neighbouring values, and a test that a single reward passes."""
        horizon = self.market.horizon
        draws = max(1, math.ceil(self.originals * math.log(horizon + 1) / 2))
        points = []
        for low, high in self.pairs:
            pulls = max(1, min(self.most_pulls, round(START * math.log(horizon + 1) / (2 * _information(low, high)))))
            points.append(self._point(pulls, draws, pulls * _between(low, high)))
            if low == 0 or high == 1:  # a single reward is proof, or a single miss
                points.append(self._point(pulls, draws, pulls if low else 1))
        return [*points, ReservoirNumbers(1, 1, 1)]

    def distance(self, point: ReservoirNumbers) -> float:
        """Return the distance of the two values that the threshold separates."""
        level = (point.threshold or 0) / point.rounds
        nearest = min(self.pairs, key=lambda pair: max(pair[0] - level, level - pair[1]), default=(0.0, 1.0))
        return float(nearest[1] - nearest[0])

    def near(self, point: ReservoirNumbers, step: float) -> list[ReservoirNumbers]:
        """Return the points a step away: pulls, threshold and draws longer or shorter, alone and together."""
        pulls, draws, threshold = point
        assert threshold is not None
        level = threshold / pulls
        deviation = math.sqrt(max(1.0, pulls * level * (1 - level)))
        longer, shorter = max(pulls + 1, round(pulls * (1 + step))), min(pulls - 1, round(pulls / (1 + step)))
        more, fewer = max(draws + 1, round(draws * (1 + step))), min(draws - 1, round(draws / (1 + step)))
        shift = max(1, round(step * deviation))
        return [
            self._point(longer, draws, longer * level),
            self._point(shorter, draws, shorter * level),
            self._point(pulls, draws, threshold + shift),
            self._point(pulls, draws, threshold - shift),
            self._point(pulls, more, threshold),
            self._point(pulls, fewer, threshold),
            self._point(longer, draws, longer * level + shift),
            self._point(shorter, draws, shorter * level - shift),
            self._point(longer, draws, longer * level - shift),
            self._point(shorter, draws, shorter * level + shift),
            self._point(longer, draws, threshold + longer - pulls),  # with as many misses
            self._point(shorter, draws, threshold + shorter - pulls),
            self._point(longer, fewer, longer * level),
            self._point(shorter, more, shorter * level),
        ]

    def _point(self, pulls: int, draws: int, threshold: float) -> ReservoirNumbers:
        pulls = max(1, min(self.most_pulls, pulls))
        fitting = -(-self.market.horizon // (pulls * len(self.market.agents)))  # no further draw is ever tested
        draws = max(1, min(draws, fitting, self.most_draws))
        return ReservoirNumbers(pulls, draws, max(1, min(pulls, round(threshold))))


def _between(low: float, high: float) -> float:
    """Return the level at which both kinds of mistakes become rare at the same rate (Chernoff's point)."""
    if low <= 0 or high >= 1:
        return (low + high) / 2
    return math.log((1 - low) / (1 - high)) / math.log(high * (1 - low) / (low * (1 - high)))


def _information(low: float, high: float) -> float:
    """Return minus the logarithm of the Bhattacharyya coefficient of two coins, kept positive."""
    overlap = math.sqrt(low * high) + math.sqrt((1 - low) * (1 - high))
    return max(1e-15, -math.log(max(overlap, 1e-300)))
