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
time and affects only ties between agents; many counts are taken in cells. Neither time nor memory grows with the
horizon.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from cloneproof._arrays import FloatArray
from cloneproof.bounds.draws import AgentPriors, UniformDraws, ValueWeights, weights_of
from cloneproof.bounds.scan import (
    highest_count_pay,
    legendre_nodes,
    order_averages,
    place_rounds,
    products_of_others,
    scan_moments,
)

MOST_TYPES = 400  # multisets of means that are listed, of all kinds of agents together
CELLS = 160  # cells into which counts are grouped if there are too many to list
MOST_COUNTS = 16  # counts that are listed one by one, per cell
LISTED = 3000  # numbers in a listed table of counts, draws and types, per cell
NODES = 160  # quadrature nodes that replace a continuous prior
LITTLE = 0.1  # share of the regret below which the fallback is computed with a quarter of the cells
LOTS = 3  # quadrature nodes for the tie-breaker
AT_ONCE = 200_000  # numbers in the largest table that is computed at once
TINY = 1e-300  # keeps quotients and logarithms finite
NEGLIGIBLE = 1e-25  # levels that no slot exceeds with a smaller probability are left out


class ReservoirNumbers(NamedTuple):
    """Parameters of a reservoir: pulls of a test, draws of each agent, the count that passes (None: no test passes)."""

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
    """A market as the regret sees it: the agents' priors and the horizon.

    >>> prior = [(0.25, 0.5), (0.75, 0.5)]
    >>> market = ReservoirMarket(agents=[[prior, prior]], horizon=1000)
    >>> round(market.regret(ReservoirNumbers(rounds=20, draws=8, threshold=11)), 3)
    6.783
    """

    agents: Sequence[Sequence[ValueWeights]]
    horizon: int
    expected_best: float | None = None  # of all originals; given where values are nodes of a quadrature
    cells: int = CELLS  # of counts, where they are too many to list

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
    def draws(self) -> UniformDraws:
        """Return the draws of an agent of each kind."""
        return UniformDraws([*self.alike], self.values)

    @cached_property
    def kinds(self) -> tuple[AgentTypes, ...] | None:
        """List the multisets of means of each kind of agents; None if there are too many."""
        if self.expected_best is not None:
            return None
        found: list[AgentTypes] = []
        for key, count in self.alike.items():
            types = _multisets(key, self.values, MOST_TYPES - sum(len(kind.chances) for kind in found))
            if types is None:
                return None
            found.append(AgentTypes(count, *types))
        return tuple(found)

    @cached_property
    def best_mean(self) -> float:
        """Return the expected best mean of all originals."""
        if self.expected_best is not None:
            return self.expected_best
        laws = [(weights_of(atoms, self.values), count) for agent, count in self.alike.items() for atoms in agent]
        below = np.prod([np.cumsum(law) ** count for law, count in laws], axis=0)
        return float(self.values @ np.diff(np.minimum(below, 1.0), prepend=0.0))

    @cached_property
    def average_law(self) -> FloatArray:
        """Return the distribution of a uniformly drawn original over the values."""
        laws = [count * weights_of(atoms, self.values) for agent, count in self.alike.items() for atoms in agent]
        return np.asarray(np.sum(laws, axis=0) / np.sum(laws))

    def regret(self, numbers: ReservoirNumbers) -> float:
        """Return the expected regret against the best original if everybody is honest."""
        return float(self.horizon * self.best_mean - sum(self.rewards(numbers)))

    def exploration(self, numbers: ReservoirNumbers) -> float:
        """Return the expected share of the rounds that are spent on tests."""
        alive, _, _ = self._tested(numbers)
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
        """Return the expected rewards of tests and of what passes, and those of the fallback if no slot passes."""
        tables = self._tested(numbers)
        tests = self._tests(numbers, *tables)
        return tests, self._fallback(numbers, tables[0][:, numbers.draws], tests)

    def _tests(self, numbers: ReservoirNumbers, alive: FloatArray, mean: FloatArray, passing: FloatArray) -> float:
        """Compute step 1: each test that is reached pays the agent's mean, and a pass pays every later round."""
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

    def _tested(self, numbers: ReservoirNumbers) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return E f^j, and E f^j times the mean of a draw or of a pass, for j = 0, .., s failed slots of each kind."""
        passes = pass_chances(self.values, numbers)[None, :]
        failed, mean, passing = self.draws.powers(numbers.draws, 1 - passes, passes)
        return failed[:, 0], mean[:, 0], passing[:, 0]

    def _rounds(self, numbers: ReservoirNumbers) -> tuple[FloatArray, FloatArray]:
        """Return the rounds of the tests of each draw and the rounds after them, by position in the order."""
        count = len(self.agents)
        draws = min(numbers.draws, -(-self.horizon // (count * numbers.rounds)))
        return place_rounds(self.horizon, numbers.rounds, np.arange(draws * count).reshape(draws, count))

    def _whole_draws(self, numbers: ReservoirNumbers) -> int:
        """Count the draws whose tests all lie within the horizon."""
        return min(numbers.draws, self.horizon // (len(self.agents) * numbers.rounds))

    def _reached_anywhere(self, alive: FloatArray, draws: int) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Sum `_reached` over positions, as it is and weighted by position, for each kind and draw.

        A uniform order arises from uniform times: an agent with time u comes after each other one with probability u.
        Both sums are integrals of polynomials in u, exact by Gauss-Legendre quadrature. Computed some draws at a time.
        """
        counts, agents = np.array([*self.alike.values()])[:, None, None], len(self.agents)
        nodes, weights = legendre_nodes(agents // 2 + 1)
        width = max(1, AT_ONCE // (len(counts) * len(nodes)))
        for begin in range(0, draws, width):
            part = slice(begin, min(begin + width, draws))
            later, first = alive[:, None, part], alive[:, None, part.start + 1 : part.stop + 1]
            before = nodes[:, None] * first  # kinds x nodes x draws
            factors = before + (1 - nodes[:, None]) * later
            ratio = np.divide(before, factors, out=np.zeros(factors.shape), where=factors > 0)
            others = products_of_others(factors**counts) * factors ** (counts - 1) * (weights[:, None] * counts)
            places = others * ((counts * ratio).sum(axis=0) - ratio)
            yield part, others.sum(axis=1), places.sum(axis=1)

    def _reached(self, alive: FloatArray, begin: int, draws: int) -> Iterator[tuple[slice, FloatArray]]:
        """Yield the probability of each position if no earlier slot of others passes, for each kind and draw.

        For draws from `begin` on, as many at a time as fit the cache.
        """
        count, counts = len(self.agents), list(self.alike.values())
        order = sorted(range(len(counts)), key=lambda kind: -counts[kind])  # the largest kind is a product of powers
        shares = np.array([agents / count for agents in counts])
        width = max(1, AT_ONCE // (len(counts) * count))
        for start in range(begin, draws, width):
            part = slice(start, min(start + width, draws))
            later, first = alive[:, part], alive[:, part.start + 1 : part.stop + 1]
            averages = [
                order_averages([(counts[k] - (k == kind), later[k], first[k]) for k in order])
                for kind in range(len(counts))
            ]
            yield part, np.array(averages) * shares[:, None, None]

    def _fallback(self, numbers: ReservoirNumbers, failed: FloatArray, tests: float) -> float:
        """Compute step 2: the best count of all gets the remaining rounds, if any.

        `failed` is the chance that no slot of an agent passes. Where little depends on who wins, fewer cells suffice.
        """
        n, s = numbers.rounds, numbers.draws
        left = self.horizon - s * n * len(self.agents)
        if left <= 0:
            return 0.0
        if self.kinds is None or not self._can_list(numbers):
            none = float(np.prod(failed ** np.array([*self.alike.values()])))
            most = left * none * float(self.values[-1])
            little = most < LITTLE * (self.horizon * self.best_mean - tests - most)
            return left * none * (replace(self, cells=self.cells // 4) if little else self)._best_by_lot(numbers)
        below, up_to = _count_laws(self.values, n, np.arange(float(_counts(numbers))))
        chance = np.ones(len(up_to))  # that no slot of anybody is above each level
        for kind in self.kinds:
            chance *= ((up_to @ kind.draws.T) ** s @ kind.chances) ** kind.agents
        kept = chance > NEGLIGIBLE
        up_to, below = up_to[kept], below[kept]
        at = up_to - below
        moments = []
        for kind in self.kinds:
            low, high, paid = (kind.draws @ table.T for table in (below, up_to, at * self.values))  # types x levels
            moments.append(scan_moments(s, kind.chances, low, high, (paid, low, high)))
        counts = [kind.agents for kind in self.kinds]
        nodes = legendre_nodes((len(self.agents) + 1) // 2 + 1)  # step 3
        own, first, last = (np.array(tables) for tables in zip(*moments, strict=True))
        return left * float(np.dot(counts, highest_count_pay(counts, own, first, last, *nodes)))

    def _can_list(self, numbers: ReservoirNumbers) -> bool:
        types = sum(len(kind.chances) + len(self.agents) for kind in self.kinds or ())
        counts = _counts(numbers)
        return counts <= MOST_COUNTS * self.cells and counts * numbers.draws * types <= LISTED * self.cells

    def scores(
        self, numbers: ReservoirNumbers, slots: int, lots: int = LOTS
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield scores with random tie-breaking: the chances of less and of equal for each value, and row weights.

        A row is a count that does not pass, or a cell of counts if there are many, at one of `lots` nodes of a
        quadrature over the tie-breaker. `slots` is the number of slots that are compared. Nodes are equally spaced in
        the fourth root of the probability that all slots are lower, as if each had the average law.
        """
        listed = _counts(numbers) <= 2 * self.cells
        counts = np.arange(float(_counts(numbers))) if listed else self._cells(numbers, slots)
        below, up_to = _count_laws(self.values, numbers.rounds, counts)
        at = up_to - below
        kept = np.flatnonzero((at.max(axis=1) > NEGLIGIBLE) & (up_to.max(axis=1) ** numbers.draws > NEGLIGIBLE))
        width = max(1, AT_ONCE // (max(len(self.values), len(self.alike)) * (numbers.draws + 1)))
        power = max(1.0, slots / 4)
        for begin in range(0, len(kept), width):
            rows = kept[begin : begin + width]
            lowest = np.clip((below[rows] @ self.average_law) / (up_to[rows] @ self.average_law), 0.0, 1 - 1e-9)
            for node, share in zip(*legendre_nodes(lots), strict=True):
                reached = (lowest**power + (1 - lowest**power) * node) ** (1 / power)
                density = -np.expm1(power * np.log(np.maximum(lowest, TINY))) * reached ** (1 - power) / power
                lot = ((reached - lowest) / (1 - lowest))[:, None]
                yield below[rows] + lot * at[rows], at[rows], share * density / (1 - lowest)

    def _cells(self, numbers: ReservoirNumbers, slots: int) -> FloatArray:
        """Return the last count of each cell.

        Cells lie around the values. Take as many independent draws from the average law as there are slots, or
        originals that are drawn: the best of them is in the first k of m cells with a probability of about (k / m)^4 to
        (k / m)^16. So low counts, which win rarely, have small cells, as they differ most in what they are worth.
        """
        n, s, last = numbers.rounds, numbers.draws, _counts(numbers) - 1
        away = np.linspace(-4.0, 4.0, max(3, 4 * self.cells // len(self.values)))[:, None]
        around = (n * self.values + away * np.sqrt(n * self.values * (1 - self.values))).round().ravel()
        counts = np.unique(np.append(around[(around >= 0) & (around < last)], last))
        drawn = sum(count * len(agent) * (1 - (1 - 1 / len(agent)) ** s) for agent, count in self.alike.items())
        below = scipy.special.bdtr(counts[:, None], n, self.values) @ self.average_law
        below = below / max(below[-1], NEGLIGIBLE)
        several = [number / root for number in (slots, drawn) for root in (4, 16)]
        cell = np.floor(self.cells * np.mean([below**power for power in several], axis=0))
        return np.asarray(counts[np.append(np.diff(cell) > 0, True)])

    def _best_by_lot(self, numbers: ReservoirNumbers) -> float:
        """Return the expected mean of the best count given that no slot passes, with ties broken at random.

        This is a weighted average of means, so errors of the quadrature cannot take it outside their range.
        """
        s, wins, won = numbers.draws, 0.0, 0.0
        counts = np.array([*self.alike.values()])[:, None]
        for below, at, weights in self.scores(numbers, s * len(self.agents)):
            reached, chance, paid = self.draws.last_powers(s, below, at)
            others = weights * counts * products_of_others(reached**counts) * reached ** (counts - 1)
            wins, won = wins + float((chance * others).sum()), won + float((paid * others).sum())
        return won / max(wins, TINY)


def _count_laws(values: FloatArray, pulls: int, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of less than each of the given counts (as if no others existed) and of at most it."""
    up_to = scipy.special.bdtr(counts[:, None], pulls, values[None, :])
    return np.concatenate([np.zeros((1, len(values))), up_to[:-1]]), up_to


def _counts(numbers: ReservoirNumbers) -> int:
    """Return how many counts do not pass."""
    return numbers.rounds + 1 if numbers.threshold is None else min(numbers.threshold, numbers.rounds + 1)


def quadrature(quantile: Callable[[float], float], nodes: int = NODES) -> list[tuple[float, float]]:
    """Replace a continuous prior by values and weights: its quantile function at Gauss-Legendre nodes.

    The nodes are t of u = t^2 (3 - 2t), dense at both ends of (0, 1), where quantiles may be steep.

    >>> half = quadrature(lambda u: u / 2)
    >>> abs(sum(value**3 * weight for value, weight in half) - 1 / 32) < 1e-12
    True
    """
    t, weights = legendre_nodes(nodes)
    return [
        (min(1.0, max(0.0, quantile(float(u)))), float(weight))
        for u, weight in zip(t * t * (3 - 2 * t), 6 * t * (1 - t) * weights, strict=True)
    ]


def best_of_quantiles(originals: Mapping[Callable[[float], float], int], cells: int = 4000) -> float:
    """Return the expected best of independent originals, given their number for each quantile function.

    This is the highest value minus the integral of the product of the distribution functions, by the trapezoidal rule
    on the quantiles of a fine grid, with an error of the order of 1 / cells^2.

    >>> abs(best_of_quantiles({lambda u: 0.1 + 0.8 * u: 15}) - (0.1 + 0.8 * 15 / 16)) < 1e-6
    True
    """
    t = np.linspace(0.0, 1.0, cells + 1)
    places = t * t * (3 - 2 * t)
    tables = [(np.array([quantile(float(u)) for u in places]), count) for quantile, count in originals.items()]
    grid = np.unique(np.concatenate([table for table, _ in tables]))
    below = np.prod([np.interp(grid, table, places) ** count for table, count in tables], axis=0)
    return float(grid[-1] - np.sum((below[1:] + below[:-1]) / 2 * np.diff(grid)))


def _multisets(agent: AgentPriors, values: FloatArray, most: int) -> tuple[FloatArray, FloatArray] | None:
    """List the multisets of an agent's means: their probabilities and the law of a draw from each; None if too many."""
    if math.comb(min(map(len, agent)) + len(agent) - 1, len(agent)) > most:
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
        if len(chances) > most:
            return None
    numbers = np.array(list(chances), float)
    return np.array(list(chances.values())), numbers / numbers.sum(axis=1, keepdims=True)


def pass_chances(values: FloatArray, numbers: ReservoirNumbers) -> FloatArray:
    """Return the probability that a test of each mean passes."""
    if numbers.threshold is None or numbers.threshold > numbers.rounds:
        return np.zeros(len(values))
    if numbers.threshold <= 0:
        return np.ones(len(values))
    return np.asarray(scipy.special.bdtrc(numbers.threshold - 1, numbers.rounds, values))
