"""Exact regret of the flat reservoir when everybody registers honestly, as a function of its three numbers.

The mechanism tests slots in a timetable: the first draws of all agents, then the second draws of all, up to s each. A
slot is a uniform draw from its agent's arms and is tested for n rounds; the first whose count reaches the threshold
gets every later round, and if none does, the best count of all (ties to the earlier slot). The order of the agents is
uniformly random.

Given the means, slots are independent, so everything is a sum of products of expectations over one agent each:

1. An agent's realised means enter by the law of a draw: its chance to pass q, its mean, what a pass is worth.
2. A test is reached if no earlier slot passed: (1 - q)^j for an agent before it in the timetable, else (1 - q)^(j - 1).
3. If no slot passes, level y of slot j wins if every earlier slot is below y, and no later one is above it.
4. An average over the orders of the other agents is a Bernstein polynomial in "how many come first".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from cloneproof._arrays import FloatArray
from cloneproof.errors import MechanismError

ValueWeights = Sequence[tuple[float, float]]  # values of a prior and their weights
MOST_TYPES = 20_000  # realisations of one agent's means, up to their order
AT_ONCE = 200_000  # numbers of a table that is computed at once
NEGLIGIBLE = 1e-25  # the chance that no slot is above a level, below which the level is left out


class ReservoirNumbers(NamedTuple):
    """What a platform chooses: pulls of a test, draws of each agent, the count that passes (None: no test passes)."""

    rounds: int
    draws: int
    threshold: int | None


class AgentTypes(NamedTuple):
    """Agents of one kind: how many, the chance of each multiset of means, and the law of a draw from it."""

    agents: int
    chances: FloatArray  # types
    draws: FloatArray  # types x values


@dataclass(frozen=True)
class ReservoirMarket:
    """What the regret depends on besides the mechanism's numbers: the agents' priors and the horizon.

    Parameters
    ----------
    agents
        For each agent the prior of each of its originals, as (value, weight) pairs.
    horizon
        The number of rounds T.

    Examples
    --------
    >>> prior = [(0.25, 0.5), (0.75, 0.5)]
    >>> market = ReservoirMarket(agents=[[prior, prior]], horizon=1000)
    >>> round(market.regret(ReservoirNumbers(rounds=20, draws=8, threshold=11)), 3)
    6.783

    """

    agents: Sequence[Sequence[ValueWeights]]
    horizon: int

    @cached_property
    def values(self) -> FloatArray:
        """All possible means, rising."""
        return np.array(sorted({value for agent in self.agents for atoms in agent for value, _ in atoms}))

    @cached_property
    def kinds(self) -> tuple[AgentTypes, ...]:
        """Agents with equal priors together."""
        together: dict[tuple[tuple[tuple[float, float], ...], ...], int] = {}
        for agent in self.agents:
            key = tuple(sorted(tuple((float(value), float(weight)) for value, weight in atoms) for atoms in agent))
            together[key] = together.get(key, 0) + 1
        return tuple(AgentTypes(count, *_multisets(key, self.values)) for key, count in together.items())

    @cached_property
    def best_mean(self) -> float:
        """The expected best mean of all originals."""
        below = np.ones(len(self.values))
        for agent in self.agents:
            for atoms in agent:
                total = sum(weight for _, weight in atoms)
                below *= [float(sum(weight for value, weight in atoms if value <= top) / total) for top in self.values]
        return float(self.values @ np.diff(below, prepend=0.0))

    def regret(self, numbers: ReservoirNumbers) -> float:
        """The expected regret against the best original, everybody honest."""
        return float(self.horizon * self.best_mean - sum(self.rewards(numbers)))

    def exploration(self, numbers: ReservoirNumbers) -> float:
        """The expected share of the rounds that are spent on tests."""
        powers = self._failing_powers(numbers)
        alive = [kind.chances @ power for kind, power in zip(self.kinds, powers, strict=True)]
        rounds, _ = self._rounds(numbers)
        before = np.array(alive)
        tested = sum(
            float((before[:, part, None] * reached * rounds[part]).sum())
            for part, reached in self._reached(alive, len(rounds))
        )
        return tested / self.horizon

    def rewards(self, numbers: ReservoirNumbers) -> tuple[float, float]:
        """Expected rewards up to the first pass and after it; and of the fallback, where no slot passes."""
        return self._tests(numbers), self._fallback(numbers)

    def _tests(self, numbers: ReservoirNumbers) -> float:
        """Steps 1 and 2: each test that is reached pays the agent's mean, and a pass every later round."""
        powers = self._failing_powers(numbers)
        passed = _pass(self.values, numbers) * self.values
        alive, means, worth = [], [], []
        for kind, power in zip(self.kinds, powers, strict=True):
            alive.append(kind.chances @ power)
            means.append((kind.chances * (kind.draws @ self.values)) @ power)
            worth.append((kind.chances * (kind.draws @ passed)) @ power)
        tested, later = self._rounds(numbers)
        mean, passing = np.array(means)[:, :, None], np.array(worth)[:, :, None]
        return sum(
            float((reached * (mean[:, part] * tested[part] + passing[:, part] * later[part])).sum())
            for part, reached in self._reached(alive, len(tested))
        )

    def _all_up_to(self, up_to: FloatArray, draws: int) -> FloatArray:
        """The chance that no slot of anybody is above each level."""
        chance = np.ones(len(up_to))
        for kind in self.kinds:
            chance *= ((up_to @ kind.draws.T) ** draws @ kind.chances) ** kind.agents
        return chance

    def _failing_powers(self, numbers: ReservoirNumbers) -> list[FloatArray]:
        """For each kind of agents the chance that 0, 1, .., s slots all fail, for each of its types."""
        passed = _pass(self.values, numbers)
        return [(1 - kind.draws @ passed)[:, None] ** np.arange(numbers.draws + 1) for kind in self.kinds]

    def _rounds(self, numbers: ReservoirNumbers) -> tuple[FloatArray, FloatArray]:
        """Rounds of the tests of each draw, and rounds after each of them, by their place; for draws that have any."""
        count = len(self.agents)
        draws = min(numbers.draws, -(-self.horizon // (count * numbers.rounds)))
        begin = self.horizon - np.arange(draws * count).reshape(draws, count) * numbers.rounds
        return np.clip(begin, 0, numbers.rounds), np.maximum(0, begin - numbers.rounds)

    def _reached(self, alive: list[FloatArray], draws: int) -> Iterator[tuple[slice, FloatArray]]:
        """For each kind, draw and place: the chance that such an agent has it and no earlier slot of others passes.

        Some draws at a time, as many as fit the cache.
        """
        count = len(self.agents)
        table = np.array(alive)  # kinds x draws
        kinds = [number for number, kind in enumerate(self.kinds) for _ in range(kind.agents)]
        places = [kinds.index(i) for i in range(len(self.kinds))]
        others = np.array([kinds[:place] + kinds[place + 1 :] for place in places], int)
        shares = np.array([kind.agents / count for kind in self.kinds])
        width = max(1, AT_ONCE // (len(self.kinds) * count))
        for begin in range(0, draws, width):
            part = slice(begin, min(begin + width, draws))
            later, first = table[:, part], table[:, part.start + 1 : part.stop + 1]
            yield part, _order_averages(later[others], first[others]) * shares[:, None, None]

    def _fallback(self, numbers: ReservoirNumbers) -> float:
        """Step 3: the best count of all gets what is left, if anything is."""
        n, s = numbers.rounds, numbers.draws
        left = self.horizon - s * n * len(self.agents)
        if left <= 0:
            return 0.0
        top = n + 1 if numbers.threshold is None else numbers.threshold
        up_to = scipy.special.bdtr(np.arange(min(top, n + 1))[:, None], n, self.values[None, :])
        below = np.concatenate([np.zeros((1, len(self.values))), up_to[:-1]])
        kept = self._all_up_to(up_to, s) > NEGLIGIBLE
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
        nodes, weights = np.polynomial.legendre.leggauss((len(self.agents) + 1) // 2 + 1)
        for node, weight in zip(
            (nodes + 1) / 2, weights / 2, strict=True
        ):  # step 4, summed over the places of one agent
            factors = [node * b + (1 - node) * a for b, a in zip(before, after, strict=True)]
            whole = [factor**kind.agents for factor, kind in zip(factors, self.kinds, strict=True)]
            following = [np.ones_like(whole[0])]  # products of all later ones, from the last one on
            for factor in whole[:0:-1]:
                following.append(following[-1] * factor)
            earlier = np.ones_like(whole[0])
            for i, kind in enumerate(self.kinds):
                product = earlier * following[-1 - i]
                if kind.agents > 1:
                    product *= factors[i] ** (kind.agents - 1)
                total += weight * kind.agents * float((own[i] * product).sum())
                earlier *= whole[i]
        return left * total


def contest_cost(market: ReservoirMarket, numbers: ReservoirNumbers) -> float:
    """What a contest of champions costs at least: exploration, and champions that are not the best original.

    Every agent has s n rounds for itself; the contest is taken to find the best champion at once.
    """
    rounds = numbers.draws * numbers.rounds
    contest = market.horizon - rounds * len(market.agents)
    if contest < 0:  # no room for the exploration of everybody
        return math.inf
    explored, below = 0.0, np.ones(len(market.values))
    for agent, count in Counter(tuple(map(tuple, agent)) for agent in market.agents).items():
        alone = ReservoirMarket([agent], rounds)
        explored += count * sum(alone.rewards(numbers))
        below *= np.cumsum(_champion_law(alone, market.values, numbers)) ** count
    champion = float(market.values @ np.diff(np.minimum(below, 1.0), prepend=0.0))
    return market.horizon * market.best_mean - explored - contest * champion


def _champion_law(alone: ReservoirMarket, values: FloatArray, numbers: ReservoirNumbers) -> FloatArray:
    """The law of the champion's mean of one agent by itself."""
    (kind,) = alone.kinds
    passes = _pass(alone.values, numbers)
    fail = 1 - kind.draws @ passes
    tried = (1 - fail**numbers.draws) / np.where(fail < 1, 1 - fail, 1.0)
    tried[fail >= 1] = numbers.draws
    law = (kind.chances * tried) @ kind.draws * passes
    n = numbers.rounds
    top = n + 1 if numbers.threshold is None else numbers.threshold
    up_to = scipy.special.bdtr(np.arange(min(top, n + 1))[:, None], n, alone.values[None, :])
    below = np.concatenate([np.zeros((1, len(alone.values))), up_to[:-1]])
    kept = alone._all_up_to(up_to, numbers.draws) > NEGLIGIBLE
    up_to, below = up_to[kept], below[kept]
    low, high = below @ kind.draws.T, up_to @ kind.draws.T
    step = np.where(high > low, high - low, 1.0)
    weight = (high**numbers.draws - low**numbers.draws) / step  # the sum over slots of low^before high^after
    law = law + np.einsum("yt,yv,tv->v", weight * kind.chances, up_to - below, kind.draws, optimize=True)
    spread = np.zeros(len(values))
    spread[np.searchsorted(values, alone.values)] = law
    return spread


def _multisets(agent: Sequence[ValueWeights], values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The chance of each multiset of an agent's means, and the law of a uniform draw from it."""
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
            raise MechanismError(
                f"expected at most {MOST_TYPES} multisets of an agent's means, got more; give the numbers of the "
                "reservoir yourself (any are clone-proof), or tune them for a prior of fewer values"
            )
    numbers = np.array(list(chances), float)
    return np.array(list(chances.values())), numbers / numbers.sum(axis=1, keepdims=True)


def _powers(base: FloatArray, count: int) -> FloatArray:
    """The powers 0, 1, .., count - 1 along a last axis, by products: much quicker than calling for each power."""
    powers = np.empty((*base.shape, count))
    powers[..., 0] = 1.0
    for k in range(1, count):
        np.multiply(powers[..., k - 1], base, out=powers[..., k])
    return powers


def _pass(values: FloatArray, numbers: ReservoirNumbers) -> FloatArray:
    """The chance that a test of each mean passes."""
    if numbers.threshold is None or numbers.threshold > numbers.rounds:
        return np.zeros(len(values))
    if numbers.threshold <= 0:
        return np.ones(len(values))
    return np.asarray(scipy.special.bdtrc(numbers.threshold - 1, numbers.rounds, values))


def _order_averages(later: FloatArray, first: FloatArray) -> FloatArray:
    """For 0, 1, .. of the others that come first: the average over their choice of the product of all factors.

    Each other agent has a factor if it comes later and one if it comes first. Axes: kinds, others, draws; the result
    has kinds, draws, places. The others are added one by one (a Bernstein polynomial of one degree more).
    """
    kinds, others, draws = later.shape
    averages = np.ones((kinds, draws, 1))
    for size in range(1, others + 1):
        places = np.arange(size + 1)
        grown = np.zeros((kinds, draws, size + 1))
        grown[:, :, :-1] += later[:, size - 1, :, None] * averages * ((size - places[:-1]) / size)
        grown[:, :, 1:] += first[:, size - 1, :, None] * averages * (places[1:] / size)
        averages = grown
    return averages
