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

A continuous prior is replaced by the nodes of a quadrature (`points`). Step 2 lists the multisets of an agent's
means. If there are too many of them, ties of counts are broken at random instead, which again needs one original at a
time and affects only ties between agents; many counts are taken in cells. Neither time nor memory grows with the
horizon.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from cloneproof._lib.arrays import FloatArray
from cloneproof.laws.arithmetic import legendre_nodes, products_of_other_agents
from cloneproof.laws.best import best_of_atoms, best_round
from cloneproof.laws.draws import AgentPriors, UniformDraws, ValueWeights, weights_of
from cloneproof.laws.means import CopiedOriginal, MeanCounts, count_realisations, merge_equal_means, realisations
from cloneproof.laws.points import points
from cloneproof.laws.scan import highest_count_pay, order_averages, place_rounds, scan_moments
from cloneproof.market.priors import Prior

MOST_TYPES = 400  # multisets of means that are listed, of all kinds of agents together
MOST_SUMMED = 20_000  # realisations of one agent's means, of which many may be one multiset
CELLS = 160  # cells into which counts are grouped if there are too many to list
MOST_COUNTS = 16  # counts that are listed one by one, per cell
LISTED = 3000  # numbers in a listed table of counts, draws and types, per cell
LITTLE = 0.1  # share of the regret below which the fallback is computed with a quarter of the cells
LOTS = 3  # quadrature nodes for the tie-breaker
AT_ONCE = 200_000  # numbers in the largest table that is computed at once
TINY = 1e-300  # keeps quotients and logarithms finite
NEGLIGIBLE = 1e-25  # levels that no slot exceeds with a smaller probability are left out

FINE, COARSE = 160, 48  # nodes of a continuous prior, for the regret that is quoted and for the search


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
        kinds: list[AgentTypes] = []
        for key, count in self.alike.items():
            types = _listed_types(key, self.values, MOST_TYPES - sum(len(kind.chances) for kind in kinds))
            if types is None:
                return None
            kinds.append(AgentTypes(count, *types))
        return tuple(kinds)

    @cached_property
    def best_mean(self) -> float:
        """Return the expected best mean of all originals."""
        if self.expected_best is not None:
            return self.expected_best
        return float(best_of_atoms([[atoms for agent, count in self.alike.items() for atoms in agent * count]]))

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
        return self._tests(numbers, alive, alive, alive * 0) / self.horizon  # as if each test paid 1 a round

    def rewards(self, numbers: ReservoirNumbers) -> tuple[float, float]:
        """Return the expected rewards of tests and of what passes, and those of the fallback if no slot passes."""
        tables = self._tested(numbers)
        tests = self._tests(numbers, *tables)
        return tests, self._fallback(numbers, tables[0][:, numbers.draws], tests)

    def _tests(self, numbers: ReservoirNumbers, alive: FloatArray, mean: FloatArray, passing: FloatArray) -> float:
        """Compute step 1: each test that is reached pays the agent's mean, and a pass pays every later round."""
        n, count = numbers.rounds, len(self.agents)
        whole = min(numbers.draws, self.horizon // (count * n))  # draws whose tests all lie within the horizon
        total = 0.0
        for block, reached, places in self._reached_anywhere(alive, whole):
            after = self.horizon - n - np.arange(block.start, block.stop) * n * count  # rounds after the first place's
            total += float((reached * (mean[:, block] * n + passing[:, block] * after)).sum())
            total -= n * float((places * passing[:, block]).sum())
        if whole < numbers.draws and whole * count * n < self.horizon:  # and one draw whose tests are cut
            tested, later = place_rounds(self.horizon, n, np.arange(count) + whole * count)
            paid = mean[:, whole, None] * tested + passing[:, whole, None] * later
            total += float((self._reached(alive[:, whole : whole + 2]) * paid).sum())
        return total

    def _tested(self, numbers: ReservoirNumbers) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return E f^j, and E f^j times the mean of a draw or of a pass, for j = 0, .., s failed slots of each kind."""
        passes = pass_chances(self.values, numbers)[None, :]
        failed, mean, passing = self.draws.powers(numbers.draws, 1 - passes, passes)
        return failed[:, 0], mean[:, 0], passing[:, 0]

    def _reached_anywhere(self, alive: FloatArray, draws: int) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Sum `_reached` over positions, as it is and weighted by position, for each kind and draw.

        A uniform order arises from uniform times: an agent with time u comes after each other one with probability u.
        Both sums are integrals of polynomials in u, exact by Gauss-Legendre quadrature. Computed some draws at a time.
        """
        counts, agents = np.array([*self.alike.values()])[:, None, None], len(self.agents)
        nodes, weights = legendre_nodes(agents // 2 + 1)
        width = max(1, AT_ONCE // (len(counts) * len(nodes)))
        for begin in range(0, draws, width):
            block = slice(begin, min(begin + width, draws))
            later, first = alive[:, None, block], alive[:, None, block.start + 1 : block.stop + 1]
            before = nodes[:, None] * first  # kinds x nodes x draws
            factors = before + (1 - nodes[:, None]) * later
            ratio = np.divide(before, factors, out=np.zeros(factors.shape), where=factors > 0)
            others = products_of_other_agents(factors, counts) * (weights[:, None] * counts)
            places = others * ((counts * ratio).sum(axis=0) - ratio)
            yield block, others.sum(axis=1), places.sum(axis=1)

    def _reached(self, alive: FloatArray) -> FloatArray:
        """Return the probability of each position if no earlier slot of others passes, for each kind."""
        counts = list(self.alike.values())
        order = sorted(range(len(counts)), key=lambda kind: -counts[kind])  # the largest kind is a product of powers
        others = [[(counts[k] - (k == kind), alive[k, :1], alive[k, 1:]) for k in order] for kind in range(len(counts))]
        shares = np.array(counts) / len(self.agents)
        return np.array([order_averages(of_kind)[0] for of_kind in others]) * shares[:, None]

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
            others = weights * counts * products_of_other_agents(reached, counts)
            wins, won = wins + float((chance * others).sum()), won + float((paid * others).sum())
        return won / max(wins, TINY)


def _count_laws(values: FloatArray, pulls: int, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of less than each of the given counts (as if no others existed) and of at most it."""
    up_to = scipy.special.bdtr(counts[:, None], pulls, values[None, :])
    return np.concatenate([np.zeros((1, len(values))), up_to[:-1]]), up_to


def _counts(numbers: ReservoirNumbers) -> int:
    """Return how many counts do not pass."""
    return numbers.rounds + 1 if numbers.threshold is None else min(numbers.threshold, numbers.rounds + 1)


def _listed_types(agent: AgentPriors, values: FloatArray, most: int) -> tuple[FloatArray, FloatArray] | None:
    """List the multisets of an agent's means: their probabilities and the law of a draw from each; None if too many."""
    originals = [CopiedOriginal(atoms, 1) for atoms in agent]
    if count_realisations(originals) > MOST_SUMMED:
        return None
    chances: dict[MeanCounts, float] = defaultdict(float)
    for chance, runs in realisations(originals):
        chances[merge_equal_means(runs)] += float(chance)
    if len(chances) > most:
        return None
    weights = np.array([*chances.values()])
    return weights / weights.sum(), np.array([weights_of(runs, values) for runs in chances])


def pass_chances(values: FloatArray, numbers: ReservoirNumbers) -> FloatArray:
    """Return the probability that a test of each mean passes."""
    if numbers.threshold is None or numbers.threshold > numbers.rounds:
        return np.zeros(len(values))
    if numbers.threshold <= 0:
        return np.ones(len(values))
    return np.asarray(scipy.special.bdtrc(numbers.threshold - 1, numbers.rounds, values))


def reservoir_market(priors: Sequence[Sequence[Prior]], horizon: int, nodes: int = FINE) -> ReservoirMarket:
    """Convert priors for the exact regret: to atoms, or to the nodes of a quadrature if they are continuous."""
    atoms = {prior: points(prior, nodes) for prior in {prior for own in priors for prior in own}}
    best = best_round(priors) if any(prior.atoms is None for prior in atoms) else None
    return ReservoirMarket([[atoms[prior] for prior in own] for own in priors], horizon, best)
