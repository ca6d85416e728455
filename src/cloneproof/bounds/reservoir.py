"""Exact regret of the flat reservoir if everybody is honest, as a function of its three parameters.

The mechanism tests slots on a schedule: the first draws of all agents, then the second draws of all, up to s each. A
slot is a uniform draw from its agent's arms and is tested for n rounds. The first whose count reaches the threshold
gets every later round; if none does, the best count of all gets them (ties to the earlier slot). The order of the
agents is uniformly random.

Given the means, slots are independent, so everything is a sum of products of expectations over one agent each:

1. A test is reached if no earlier slot passed: f^j for an agent earlier in the order, else f^(j - 1), where f is the
   agent's average probability to fail. Expectations of f^j follow from moments of one original at a time.
2. If no slot passes, level y of slot j wins if every earlier slot is below y and no later one is above it.
3. The average over the orders of the other agents is a Bernstein polynomial in the number that come first.

A continuous prior is replaced by the nodes of a quadrature (`quadrature`). Step 2 lists the multisets of an agent's
means. If there are too many of them, ties of counts are broken at random instead, which again needs one original at a
time and affects only ties between agents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
import scipy

from cloneproof._arrays import FloatArray

ValueWeights = Sequence[tuple[float, float]]  # values of a prior and their weights
AgentPriors = tuple[tuple[tuple[float, float], ...], ...]  # of the originals of an agent
MOST_TYPES = 20_000  # realisations of one agent's means, up to their order, that are listed
NODES = 160  # of a continuous prior
LOTS: Final = ((0.21132486540518713, 0.5), (0.7886751345948129, 0.5))  # nodes of Gauss and Legendre, and weights
AT_ONCE = 200_000  # numbers of a table that is computed at once
NEGLIGIBLE = 1e-25  # the chance that no slot is above a level, below which the level is left out


class ReservoirNumbers(NamedTuple):
    """The platform's parameters: pulls of a test, draws of each agent, the count that passes (None: no test passes)."""

    rounds: int
    draws: int
    threshold: int | None


class AgentTypes(NamedTuple):
    """Agents of one kind: their number, the probability of each multiset of means, and the law of a draw from it."""

    agents: int
    chances: FloatArray  # types
    draws: FloatArray  # types x values


@dataclass(frozen=True)
class ReservoirMarket:
    """The market as the regret needs it: the agents' priors and the horizon.

    >>> prior = [(0.25, 0.5), (0.75, 0.5)]
    >>> market = ReservoirMarket(agents=[[prior, prior]], horizon=1000)
    >>> round(market.regret(ReservoirNumbers(rounds=20, draws=8, threshold=11)), 3)
    6.783
    """

    agents: Sequence[Sequence[ValueWeights]]
    horizon: int
    expected_best: float | None = None  # of all originals; given where values are nodes of a quadrature

    @cached_property
    def values(self) -> FloatArray:
        return np.array(sorted({value for agent in self.agents for atoms in agent for value, _ in atoms}))

    @cached_property
    def alike(self) -> dict[AgentPriors, int]:
        return Counter(
            tuple(sorted(tuple((float(value), float(weight)) for value, weight in atoms) for atoms in agent))
            for agent in self.agents
        )

    @cached_property
    def kinds(self) -> tuple[AgentTypes, ...] | None:
        """The multisets of means of each kind of agents; None if there are too many to list."""
        if self.expected_best is not None:
            return None
        found = [_multisets(key, self.values) for key in self.alike]
        listed = [each for each in found if each is not None]
        if len(listed) < len(found):
            return None
        return tuple(AgentTypes(count, *types) for count, types in zip(self.alike.values(), listed, strict=True))

    @cached_property
    def best_mean(self) -> float:
        """The expected best mean of all originals."""
        if self.expected_best is not None:
            return self.expected_best
        laws = [(weights_of(atoms, self.values), count) for agent, count in self.alike.items() for atoms in agent]
        below = np.prod([np.cumsum(law) ** count for law, count in laws], axis=0)
        return float(self.values @ np.diff(np.minimum(below, 1.0), prepend=0.0))

    @cached_property
    def average_law(self) -> FloatArray:
        """The distribution of an original, drawn uniformly, over the values."""
        laws = [count * weights_of(atoms, self.values) for agent, count in self.alike.items() for atoms in agent]
        return np.asarray(np.sum(laws, axis=0) / np.sum(laws))

    def regret(self, numbers: ReservoirNumbers) -> float:
        """The expected regret against the best original, everybody honest."""
        return float(self.horizon * self.best_mean - sum(self.rewards(numbers)))

    def exploration(self, numbers: ReservoirNumbers) -> float:
        """The expected share of the rounds that are spent on tests."""
        alive = np.array([_tested(key, numbers)[0] for key in self.alike])
        rounds, _ = self._rounds(numbers)
        whole = self._whole_draws(numbers)
        tested = sum(
            numbers.rounds * float((alive[:, part] * reached).sum())
            for part, reached, _ in self._reached_anywhere(alive, whole)
        )
        tested += sum(
            float((alive[:, part, None] * reached * rounds[part]).sum())
            for part, reached in self._reached(alive, whole, len(rounds))
        )
        return tested / self.horizon

    def rewards(self, numbers: ReservoirNumbers) -> tuple[float, float]:
        """Expected rewards up to the first pass, after it, and of the fallback if no slot passes."""
        return self._tests(numbers), self._fallback(numbers)

    def _tests(self, numbers: ReservoirNumbers) -> float:
        """Step 1: each test that is reached pays the agent's mean, and a pass pays every later round."""
        tables = [_tested(key, numbers) for key in self.alike]
        alive, mean, passing = (np.array(each) for each in zip(*tables, strict=True))
        n, count, whole = numbers.rounds, len(self.agents), self._whole_draws(numbers)
        total = 0.0
        for part, reached, places in self._reached_anywhere(alive, whole):
            after = self.horizon - n - np.arange(part.start, part.stop) * n * count  # rounds after the first place's
            total += float((reached * (mean[:, part] * n + passing[:, part] * after)).sum())
            total -= n * float((places * passing[:, part]).sum())
        tested, later = self._rounds(numbers)
        for part, at_place in self._reached(alive, whole, len(tested)):
            paid = mean[:, part, None] * tested[part] + passing[:, part, None] * later[part]
            total += float((at_place * paid).sum())
        return total

    def _rounds(self, numbers: ReservoirNumbers) -> tuple[FloatArray, FloatArray]:
        """Rounds of the tests of each draw, and rounds after each of them, by position in the order."""
        count = len(self.agents)
        draws = min(numbers.draws, -(-self.horizon // (count * numbers.rounds)))
        begin = self.horizon - np.arange(draws * count).reshape(draws, count) * numbers.rounds
        return np.clip(begin, 0, numbers.rounds), np.maximum(0, begin - numbers.rounds)

    def _whole_draws(self, numbers: ReservoirNumbers) -> int:
        """How many draws have all of their tests within the horizon."""
        return min(numbers.draws, self.horizon // (len(self.agents) * numbers.rounds))

    def _reached_anywhere(self, alive: FloatArray, draws: int) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """For each kind and draw: the sum of `_reached` over positions, and the sum weighted by position.

        A uniform order arises from uniform times: an agent with time u comes after each other one with probability u.
        Both sums are integrals of polynomials in u, exact by Gauss-Legendre quadrature. Computed some draws at a time.
        """
        counts, agents = np.array([*self.alike.values()])[:, None, None], len(self.agents)
        nodes, weights = _legendre(agents // 2 + 1)
        width = max(1, AT_ONCE // (len(counts) * len(nodes)))
        for begin in range(0, draws, width):
            part = slice(begin, min(begin + width, draws))
            later, first = alive[:, None, part], alive[:, None, part.start + 1 : part.stop + 1]
            before = nodes[:, None] * first  # kinds x nodes x draws
            factors = before + (1 - nodes[:, None]) * later
            ratio = np.divide(before, factors, out=np.zeros(factors.shape), where=factors > 0)
            others = _products_of_others(factors**counts) * factors ** (counts - 1) * (weights[:, None] * counts)
            places = others * ((counts * ratio).sum(axis=0) - ratio)
            yield part, others.sum(axis=1), places.sum(axis=1)

    def _reached(self, alive: FloatArray, begin: int, draws: int) -> Iterator[tuple[slice, FloatArray]]:
        """For each kind, draw and position: the probability of that position with no earlier slot of others passing.

        For draws from `begin` on, as many at a time as fit the cache.
        """
        count = len(self.agents)
        counts = list(self.alike.values())
        order = sorted(range(len(counts)), key=lambda kind: -counts[kind])  # the largest kind first: see below
        others = np.array([[k for k in order for _ in range(counts[k] - (k == kind))] for kind in range(len(counts))])
        others, equal = others.astype(int), [counts[order[0]] - (kind == order[0]) for kind in range(len(counts))]
        shares = np.array([agents / count for agents in self.alike.values()])
        width = max(1, AT_ONCE // (len(self.alike) * count))
        for start in range(begin, draws, width):
            part = slice(start, min(start + width, draws))
            later, first = alive[:, part], alive[:, part.start + 1 : part.stop + 1]
            yield part, _order_averages(later[others], first[others], equal) * shares[:, None, None]

    def _fallback(self, numbers: ReservoirNumbers) -> float:
        """Step 2: the best count of all gets the remaining rounds, if any."""
        n, s = numbers.rounds, numbers.draws
        left = self.horizon - s * n * len(self.agents)
        if left <= 0:
            return 0.0
        if self.kinds is None:
            return left * self._best_by_lot(numbers)
        below, up_to = _count_laws(self.values, numbers)
        chance = np.ones(len(up_to))  # that no slot of anybody is above each level
        for kind in self.kinds:
            chance *= ((up_to @ kind.draws.T) ** s @ kind.chances) ** kind.agents
        kept = chance > NEGLIGIBLE
        up_to, below = up_to[kept], below[kept]
        at = up_to - below
        own, before, after = [], [], []
        for kind in self.kinds:
            low, high = below @ kind.draws.T, up_to @ kind.draws.T  # levels x types
            weight = _powers(low, s) * _powers(high, s)[:, :, ::-1] * kind.chances[:, None]
            own.append(np.einsum("yts,yt->ys", weight, (at * self.values) @ kind.draws.T))
            before.append(np.einsum("yts,yt->ys", weight, low))
            after.append(np.einsum("yts,yt->ys", weight, high))
        total = 0.0
        counts = np.array([kind.agents for kind in self.kinds])[:, None, None]
        for node, weight in zip(*_legendre((len(self.agents) + 1) // 2 + 1), strict=True):  # step 3, for one agent
            factors = node * np.array(before) + (1 - node) * np.array(after)
            product = _products_of_others(factors**counts) * factors ** (counts - 1)
            total += weight * float((counts * own * product).sum())
        return left * total

    def _best_by_lot(self, numbers: ReservoirNumbers) -> float:
        """The expected mean of the best count if no slot passes, ties of counts broken at random."""
        s, total = numbers.draws, 0.0
        for below, at, share in _scores(self.values, numbers):
            chances, own = np.ones(len(below)), np.zeros(len(below))
            for key, agents in self.alike.items():
                reached, _, paid = _powers_of_draws(key, s, self.values, below, at)
                own = (
                    own * reached[:, s] ** agents
                    + agents * s * paid[:, s - 1] * reached[:, s] ** (agents - 1) * chances
                )
                chances = chances * reached[:, s] ** agents
            total += share * float(own.sum())
        return total


def _count_laws(values: FloatArray, numbers: ReservoirNumbers) -> tuple[FloatArray, FloatArray]:
    """The probabilities of a count below, and up to, each level that does not pass."""
    n = numbers.rounds
    top = n + 1 if numbers.threshold is None else numbers.threshold
    up_to = scipy.special.bdtr(np.arange(min(top, n + 1))[:, None], n, values[None, :])
    return np.concatenate([np.zeros((1, len(values))), up_to[:-1]]), up_to


def _scores(values: FloatArray, numbers: ReservoirNumbers) -> Iterator[tuple[FloatArray, FloatArray, float]]:
    """Scores with random tie-breaking: the chances of less and of equal for each value, and the weight of the node.

    All levels (rows) at the nodes of a quadrature over the tie-breaker, some levels at a time.
    """
    below, up_to = _count_laws(values, numbers)
    at = up_to - below
    kept = np.flatnonzero((at.max(axis=1) > NEGLIGIBLE) & (up_to.max(axis=1) ** numbers.draws > NEGLIGIBLE))
    width = max(1, AT_ONCE // (len(values) * (numbers.draws + 1)))
    for begin in range(0, len(kept), width):
        rows = kept[begin : begin + width]
        for node, share in LOTS:
            yield below[rows] + node * at[rows], at[rows], share


def contest_cost(market: ReservoirMarket, numbers: ReservoirNumbers) -> float:
    """A lower bound of what a contest of champions costs: exploration, and champions that are not the best original.

    Every agent has s n rounds; the contest is assumed to find the best champion at once.
    """
    rounds = numbers.draws * numbers.rounds
    contest = market.horizon - rounds * len(market.agents)
    if contest < 0:  # no room for the exploration of everybody
        return math.inf
    explored, below = 0.0, np.ones(len(market.values))
    for agent, count in market.alike.items():
        explored += count * sum(ReservoirMarket([agent], rounds).rewards(numbers))
        below *= np.minimum(1.0, np.cumsum(_champion_law(agent, market.values, numbers))) ** count
    champion = float(market.values @ np.diff(below, prepend=0.0))
    return market.horizon * market.best_mean - explored - contest * champion


def _champion_law(agent: AgentPriors, values: FloatArray, numbers: ReservoirNumbers) -> FloatArray:
    """The distribution of one agent's champion's mean; slots of one agent are alike, so ties break at random."""
    s, law = numbers.draws, np.zeros(len(values))
    passes = _pass(values, numbers)
    fails, chance = (1 - passes)[None, :], np.zeros((1, len(values)))
    for own, count in Counter(agent).items():
        k = agent.index(own)
        rest, weight = agent[:k] + agent[k + 1 :], count * weights_of(own, values)
        tried = _with_own(rest, len(agent), s, values, fails, chance)[:, :, :s].sum(axis=2)[0]
        law += weight * passes * tried / len(agent)
        for below, at, share in _scores(values, numbers):
            reached = _with_own(rest, len(agent), s, values, below, at)[:, :, s - 1]
            law += share * s * weight * (at * reached).sum(axis=0) / len(agent)
    return law


def quadrature(quantile: Callable[[float], float], nodes: int = NODES) -> list[tuple[float, float]]:
    """A continuous prior as values and weights, by its quantile function at Gauss-Legendre nodes.

    The nodes are t of u = t^2 (3 - 2t), dense at both ends of (0, 1), where quantiles may be steep.

    >>> half = quadrature(lambda u: u / 2)
    >>> abs(sum(value**3 * weight for value, weight in half) - 1 / 32) < 1e-12
    True
    """
    nodes_of, weights = np.polynomial.legendre.leggauss(nodes)
    t = (nodes_of + 1) / 2
    return [
        (min(1.0, max(0.0, quantile(float(u)))), float(weight))
        for u, weight in zip(t * t * (3 - 2 * t), 3 * t * (1 - t) * weights, strict=True)
    ]


def best_of_quantiles(originals: Mapping[Callable[[float], float], int], cells: int = 4000) -> float:
    """The expected best of independent originals, so many of each quantile function: top - integral of prod F(v).

    By the trapezoidal rule on the quantiles of a fine grid, with an error of the order of 1 / cells^2.

    >>> abs(best_of_quantiles({lambda u: 0.1 + 0.8 * u: 15}) - (0.1 + 0.8 * 15 / 16)) < 1e-6
    True
    """
    t = np.linspace(0.0, 1.0, cells + 1)
    places = t * t * (3 - 2 * t)
    tables = [(np.array([quantile(float(u)) for u in places]), count) for quantile, count in originals.items()]
    grid = np.unique(np.concatenate([table for table, _ in tables]))
    below = np.prod([np.interp(grid, table, places) ** count for table, count in tables], axis=0)
    return float(grid[-1] - np.sum((below[1:] + below[:-1]) / 2 * np.diff(grid)))


def weights_of(atoms: ValueWeights, values: FloatArray) -> FloatArray:
    """The distribution of one original over the values."""
    law: FloatArray = np.zeros(len(values))
    np.add.at(law, np.searchsorted(values, [value for value, _ in atoms]), [weight for _, weight in atoms])
    return np.asarray(law / law.sum())


def _tested(agent: AgentPriors, numbers: ReservoirNumbers) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For 0, 1, .., s slots of an agent: the probability that all fail, also times the mean of a draw or of a pass."""
    values = np.array(sorted({value for atoms in agent for value, _ in atoms}))
    passes = _pass(values, numbers)[None, :]
    failed, mean, passing = _powers_of_draws(agent, numbers.draws, values, 1 - passes, passes)
    return failed[0], mean[0], passing[0]


def _powers_of_draws(
    agent: Sequence[ValueWeights], draws: int, values: FloatArray, base: FloatArray, gain: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E f^j, E v f^j and E g f^j for j = 0, .., s: f, v, g averages over the originals of base, value, gain x value.

    `base` and `gain` have a row for each case and a column for each value.
    """
    powers = _powers(base, draws + 1)  # cases x values x j
    alone = {
        atoms: [
            (np.broadcast_to(weights_of(atoms, values) * factor, base.shape)[:, None, :] @ powers)[:, 0]
            for factor in (1.0, values, gain * values)
        ]
        for atoms in map(tuple, agent)
    }
    first, *others = agent
    found = alone[tuple(first)]
    for size, atoms in enumerate(others, start=2):
        own, part = alone[tuple(atoms)], 1 / size
        found = [
            _binomially(own[0], found[0], part),
            *(
                part * _binomially(own[k], found[0], part) + (1 - part) * _binomially(own[0], found[k], part)
                for k in (1, 2)
            ),
        ]
    return found[0], found[1], found[2]


def _binomially(own: FloatArray, others: FloatArray, part: float) -> FloatArray:
    """For j draws, each the first original with probability `part`: the expectation of own[k] others[j - k]."""
    count = own.shape[-1]
    ways = _binomial_table(count - 1, part)
    result = np.zeros(own.shape)
    for k in range(count):
        result[:, k:] += ways[k:, k] * own[:, k, None] * others[:, : count - k]
    return result


@lru_cache(maxsize=64)
def _binomial_table(draws: int, part: float) -> FloatArray:
    """The probability of k successes in j trials, for j and k up to so many."""
    trials = np.arange(draws + 1)
    at_most = np.array([scipy.special.bdtr(np.minimum(trials, j), j, part) for j in trials])
    return np.asarray(np.diff(at_most, axis=1, prepend=0.0))


def _with_own(
    others: AgentPriors, originals: int, draws: int, values: FloatArray, base: FloatArray, gain: FloatArray
) -> FloatArray:
    """E f^j given that one original has each value: cases x values x j."""
    own = _powers(base, draws + 1)
    if not others:
        return own
    rest = _powers_of_draws(others, draws, values, base, gain)[0]
    flat = own.reshape(-1, draws + 1)
    repeated = np.repeat(rest, base.shape[1], axis=0)
    return _binomially(flat, repeated, 1 / originals).reshape(own.shape)


def _multisets(agent: AgentPriors, values: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """The probability of each multiset of an agent's means, and the law of a uniform draw from it; None if too many."""
    if math.comb(min(map(len, agent)) + len(agent) - 1, len(agent)) > MOST_TYPES:
        return None
    place = {float(value): k for k, value in enumerate(values)}
    chances: dict[tuple[int, ...], float] = {(0,) * len(values): 1.0}
    for atoms in agent:
        total = sum(weight for _, weight in atoms)
        longer: dict[tuple[int, ...], float] = {}
        for counts, chance in chances.items():
            for value, weight in atoms:
                k = place[float(value)]
                key = (*counts[:k], counts[k] + 1, *counts[k + 1 :])
                longer[key] = longer.get(key, 0.0) + chance * float(weight / total)
        chances = longer
        if len(chances) > MOST_TYPES:
            return None
    numbers = np.array(list(chances), float)
    return np.array(list(chances.values())), numbers / numbers.sum(axis=1, keepdims=True)


def _powers(base: FloatArray, count: int) -> FloatArray:
    """The powers 0, 1, .., count - 1 along a last axis, by products, which is faster than `**`."""
    powers = np.empty((*base.shape, count))
    powers[..., 0] = 1.0
    for k in range(1, count):
        np.multiply(powers[..., k - 1], base, out=powers[..., k])
    return powers


@lru_cache(maxsize=64)
def _legendre(count: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def _products_of_others(factors: FloatArray) -> FloatArray:
    """For each row, the product of all other rows."""
    ones = np.ones((1, *factors.shape[1:]))
    earlier = np.cumprod(np.concatenate([ones, factors[:-1]]), axis=0)
    later = np.cumprod(np.concatenate([ones, factors[:0:-1]]), axis=0)[::-1]
    return np.asarray(earlier * later)


def _pass(values: FloatArray, numbers: ReservoirNumbers) -> FloatArray:
    """The chance that a test of each mean passes."""
    if numbers.threshold is None or numbers.threshold > numbers.rounds:
        return np.zeros(len(values))
    if numbers.threshold <= 0:
        return np.ones(len(values))
    return np.asarray(scipy.special.bdtrc(numbers.threshold - 1, numbers.rounds, values))


def _order_averages(later: FloatArray, first: FloatArray, alike: Sequence[int]) -> FloatArray:
    """For 0, 1, .. of the others that come first: the average over their choice of the product of all factors.

    Each other agent has one factor if it comes later and one if it comes first. Axes: kinds, others, draws; the result
    has kinds, draws, positions. The first `alike` others of a kind have equal factors; the rest are added one by one,
    each raising the degree of a Bernstein polynomial by one.
    """
    kinds, others, draws = later.shape
    averages = np.empty((kinds, draws, others + 1))
    for kind, equal in enumerate(alike):
        places = np.arange(equal + 1)
        one = later[kind, :1].T ** places[::-1] * first[kind, :1].T ** places if equal else np.ones((draws, 1))
        for size in range(equal + 1, others + 1):
            places = np.arange(size + 1)
            grown = np.zeros((draws, size + 1))
            grown[:, :-1] += later[kind, size - 1, :, None] * one * ((size - places[:-1]) / size)
            grown[:, 1:] += first[kind, size - 1, :, None] * one * (places[1:] / size)
            one = grown
        averages[kind] = one
    return averages
