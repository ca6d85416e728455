"""Random single-agent markets and mechanisms: the TRP margins of all realisations, and the gains computed directly.

The two never meet before they are compared: margins come from regrets at fixed means, averaged over permutations;
gains from payoffs over the prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.properties.rp_regret import rp_regret, sorted_copies
from cloneproof.engines.estimate import Estimate, weighted_sum
from cloneproof.market import Agent, Discrete, Instance, Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.reproduce.row import Setting

AGENT = "ana"
MAX_COPIES = 3
ROUNDING = 1e-9  # a round
MeanTuple = tuple[float, ...]


@dataclass(frozen=True)
class Trial:
    """A mechanism, a prior and a horizon; every margin and every gain with up to `MAX_COPIES` of each original.

    margins   RP-regret with the copies minus without, by realised means (each multiset once) and copies
    gains     payoff with the copies minus without, over the prior, by copies
    """

    mechanism: Mechanism
    market: Market
    margins: dict[tuple[MeanTuple, tuple[int, ...]], Estimate]
    gains: dict[tuple[int, ...], Estimate]

    @property
    def margin(self) -> Estimate:
        """The smallest margin: below zero TRP is violated."""
        return min(self.margins.values(), key=lambda margin: margin.value)

    @property
    def gain(self) -> Estimate:
        """The largest gain: above zero copying pays."""
        return max(self.gains.values(), key=lambda gain: gain.value)

    @property
    def room(self) -> float:
        """What counts as no more than rounding here."""
        return ROUNDING * self.market.horizon

    @property
    def trp(self) -> bool:
        """Whether TRP holds for all means of the support and all copies tried, at this horizon."""
        return self.margin.high >= 0 and self.margin.value >= -self.room

    @property
    def pays(self) -> bool:
        """Whether some copies tried pay."""
        return self.gain.low > self.room

    def by_margins(self, copies: tuple[int, ...]) -> Estimate:
        """The gain that the margins imply: minus their mean over the realised multisets (the proof of Theorem 2)."""
        prior = dict(self.market.agents[0].priors[0].atoms or ())
        margins = {means: margin for (means, tried), margin in self.margins.items() if tried == copies}
        return weighted_sum(
            [(-multiplicity(m) * math.prod(prior[v] for v in m), margin) for m, margin in margins.items()]
        )

    @property
    def identity(self) -> bool:
        """Whether the gains and what the margins imply are the same."""
        differences = [(gain, self.by_margins(copies)) for copies, gain in self.gains.items()]
        return all(abs(a.value - b.value) <= a.error + b.error + self.room for a, b in differences)


def multiplicity(means: MeanTuple) -> int:
    """The number of orders of a multiset.

    >>> multiplicity((0.0, 0.0, 1.0))
    3
    """
    return math.factorial(len(means)) // math.prod(math.factorial(means.count(value)) for value in set(means))


def trials(setting: Setting, count: int) -> Iterator[Trial]:
    """The paper's instance, then random ones, the same for the same seed; mechanisms in turn."""
    paper = Market([Agent(AGENT, 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7, rewards="deterministic")
    yield trial(setting.mechanism("ucb1"), paper)
    dice = np.random.default_rng([setting.seed, 4])
    for number in range(1, count):
        kind = ("ucb1", "etc", "epsilon-greedy", "ucb1", "etc", "h-ucb")[number % 6]
        originals = 3 if number % 4 == 0 else 2
        noisy = kind == "etc" or number % 2 == 1
        size = 2 if originals == 3 else int(dice.integers(2, 4))
        values = np.sort(dice.choice(21, size=size, replace=False)) / 20
        weights = dice.integers(1, 6, size=size)
        prior = Discrete(values.tolist(), (weights / weights.sum()).tolist())
        last = 400 if kind == "etc" else 10 if noisy or kind == "epsilon-greedy" else 24  # what the tree can do quickly
        market = Market(
            [Agent(AGENT, originals, prior)],
            horizon=int(dice.integers(4, last + 1)),
            rewards="bernoulli" if noisy else "deterministic",
        )
        yield trial(_mechanism(setting, kind, dice), market)


def _mechanism(setting: Setting, kind: str, dice: np.random.Generator) -> Mechanism:
    if kind == "etc":
        return setting.mechanism("etc", arm_rounds=int(dice.integers(1, 9)))
    if kind == "epsilon-greedy":
        return setting.mechanism(kind)
    return setting.mechanism(kind, constant=float(dice.choice([0.5, 1.0, 2.0, 4.0])))


def trial(mechanism: Mechanism, market: Market) -> Trial:
    """All margins and all gains of a market with one agent."""
    (agent,) = market.agents
    support = [value for value, _ in agent.priors[0].atoms or ()]
    vectors = list(sorted_copies(agent.count, MAX_COPIES))
    family, horizon = market.family, market.horizon
    margins: dict[tuple[MeanTuple, tuple[int, ...]], Estimate] = {}
    for means in multisets(support, agent.count):
        honest = rp_regret(mechanism, Instance(means, (1,) * agent.count), horizon, family)
        for copies in vectors:
            margins[means, copies] = rp_regret(mechanism, Instance(means, copies), horizon, family) - honest
    fair = evaluate(market, mechanism).payoff[AGENT]
    gains = {copies: evaluate(market, mechanism, {AGENT: copies}).payoff[AGENT] - fair for copies in vectors}
    return Trial(mechanism, market, margins, gains)


def multisets(support: Sequence[float], count: int) -> Iterator[MeanTuple]:
    """Every multiset of means that are not all equal (which have no regret, whatever is registered)."""
    return (means for means in combinations_with_replacement(support, count) if len(set(means)) > 1)
