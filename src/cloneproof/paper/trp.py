"""Truthfulness under random permutation, for one agent: random trials, room for copies, and rules in fractions.

*Trials* (Theorem 2): random markets and mechanisms. TRP margins come from regrets at fixed means, averaged over
permutations, gains from payoffs over the prior; the two never meet before they are compared.

*Room* (Theorem 3): when copies cannot pay whatever they are. Let a flat mechanism give every registered arm m rounds
first, in an order that does not look at means. Fix l realised means, D their average distance to the best, and average
over who got the copies. While it explores, a round costs D, whatever is registered: k arms cost H D for H <= k m, and
at least k m D from then on. So if the honest agent loses at most H D in every H <= T rounds, and at most (l + 1) m D in
all of them, no copies do better at any H <= T. For a committing ETC the honest regret is H D up to l m rounds and a
straight line afterwards, so both bounds need only be looked at for H = T.

*Rules* that look at how many arms there are, against Proposition 1 and a footnote of Theorem 2; all are permutation
invariant. Rules A and C pull each of k arms once, in a random order, and then in each round the best one with chance b,
else a uniform arm; arms pay their mean surely.

- A: b = 1 for k <= 3, but 0 where the three values are 1, 1/2, 0; b = 1/2 for k >= 4.
- C: b = 1 for k <= 2 and for three different values, 0 for three of which two are equal; b = 1/2 for k >= 4.
- B, for every law of rewards in [0, 1]: one arm: that arm. Two: one pull r of each, then for good arm i with chance
  1/2 + (r_i - rbar). Three: five pulls r, s, s', t, t' of each, then for good arm i with chance
  1/3 + (r_i - rbar)(1 - 17 det(1, s, s s') det(1, t, t t'))/36, determinants of the arms' rows. Four and more: a
  uniform arm in each round. Each reward enters linearly, so only means matter: the determinants have the mean V, the
  product of the three differences of means.

docs/textbook/necessity.md has the proofs: A and B violate TRP at (1, 1/2, 0), and under no prior do copies pay (A:
where rewards are sure; B: always); C is TRP for different means, and copies pay where means may be equal.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product

import numpy as np

from cloneproof.evaluation.evaluate import evaluate
from cloneproof.market import Agent, Discrete, Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.paper.evidence import by_low, by_value
from cloneproof.paper.findings import RowSetting
from cloneproof.paper.permutations import Instance, rp_margins, rp_regret, sorted_copies, unequal_means
from cloneproof.runs.estimate import Estimate, weighted_sum

AGENT = "ana"
MAX_COPIES = 3
ROUNDING = 1e-9  # a round
MeanTuple = tuple[float, ...]

HALF = Fraction(1, 2)
VIOLATING = (Fraction(1), HALF, Fraction(0))  # the means at which A and B violate TRP
HORIZON, COPIES = 100, (2, 1, 1)
HORIZONS = (1, 3, 4, 5, 7, 14, 15, 16, 30, 100, 1000, 10**6)


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
        """Smallest margin: below zero TRP is violated."""
        return min(self.margins.values(), key=by_value)

    @property
    def gain(self) -> Estimate:
        """Largest gain: above zero copying pays."""
        return max(self.gains.values(), key=by_value)

    @property
    def room(self) -> float:
        return ROUNDING * self.market.horizon

    @property
    def trp(self) -> bool:
        """Whether TRP holds for all means of the support and all copies tried, at this horizon."""
        return self.margin.high >= 0 and self.margin.value >= -self.room

    @property
    def pays(self) -> bool:
        return self.gain.low > self.room

    def by_margins(self, copies: tuple[int, ...]) -> Estimate:
        """Return the gain that margins imply: minus their mean over realised multisets (the proof of Theorem 2)."""
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
    """Return the number of orders of a multiset.

    >>> multiplicity((0.0, 0.0, 1.0))
    3
    """
    return math.factorial(len(means)) // math.prod(math.factorial(means.count(value)) for value in set(means))


def trials(setting: RowSetting, count: int) -> Iterator[Trial]:
    """Yield the paper's instance, then random ones, the same for the same seed; mechanisms in turn."""
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


def _mechanism(setting: RowSetting, kind: str, dice: np.random.Generator) -> Mechanism:
    if kind == "etc":
        return setting.mechanism("etc", arm_rounds=int(dice.integers(1, 9)))
    if kind == "epsilon-greedy":
        return setting.mechanism(kind)
    return setting.mechanism(kind, constant=float(dice.choice([0.5, 1.0, 2.0, 4.0])))


def trial(mechanism: Mechanism, market: Market) -> Trial:
    """Return all margins and all gains of a market with one agent."""
    (agent,) = market.agents
    support = [value for value, _ in agent.priors[0].atoms or ()]
    found = rp_margins(mechanism, support, agent.count, MAX_COPIES, [market.horizon], market.family)
    margins = {(own.instance.means, own.instance.copies): own.margin for own in found}
    fair = evaluate(market, mechanism).payoff[AGENT]
    gains = {
        copies: evaluate(market, mechanism, {AGENT: copies}).payoff[AGENT] - fair
        for copies in sorted_copies(agent.count, MAX_COPIES)
    }
    return Trial(mechanism, market, margins, gains)


def average_gap(means: Sequence[float]) -> float:
    """Return D: how far the means are from the best one, on average."""
    return max(means) - sum(means) / len(means)


def exploration_slack(mechanism: Mechanism, means: Sequence[float], horizon: int) -> Estimate:
    """Return how much more regret the honest agent may have until copies pay: min(T D, (l + 1) m D) - its regret.

    If it is not negative, a committing ETC is truthful under random permutation on these means, at every horizon up to
    T and for all copies.

    >>> from cloneproof.mechanisms import mechanism
    >>> slack = [exploration_slack(mechanism("etc", arm_rounds=m), (0.25, 0.75), 10**6).value for m in (30, 31)]
    >>> [round(one, 2) for one in slack]
    [-1.27, 1.27]
    """
    originals, gap = len(means), average_gap(means)
    honest = rp_regret(mechanism, Instance(tuple(means), (1,) * originals), horizon)
    room = min(horizon, (originals + 1) * mechanism.parameters["arm_rounds"]) * gap
    rounding = 4 * (originals + 2) * room * 2.0**-53
    return Estimate(room, rounding, "exact", "arithmetic") - honest


def least_slack(mechanism: Mechanism, support: Sequence[float], originals: int, horizon: int) -> Estimate:
    """Return the smallest slack over all multisets of means from a support."""
    slacks = [exploration_slack(mechanism, means, horizon) for means in unequal_means(support, originals)]
    return min(slacks, key=by_low)


RulePayoff = Callable[[Sequence[Fraction], int], Fraction]  # expected reward of T rounds over arms of these means


def rule_a(arms: Sequence[Fraction], horizon: int) -> Fraction:
    """Return the expected reward under rule A.

    >>> rule_a(VIOLATING, 100), rule_a((Fraction(1), *VIOLATING), 100)
    (Fraction(50, 1), Fraction(161, 2))
    """
    if len(arms) >= 4:
        return best_or_uniform(arms, horizon, HALF)
    return best_or_uniform(arms, horizon, Fraction(sorted(arms) != sorted(VIOLATING)))


def rule_c(arms: Sequence[Fraction], horizon: int) -> Fraction:
    """Return the expected reward under rule C."""
    if len(arms) >= 4:
        return best_or_uniform(arms, horizon, HALF)
    return best_or_uniform(arms, horizon, Fraction(len(arms) < 3 or len(set(arms)) == 3))


def best_or_uniform(arms: Sequence[Fraction], horizon: int, best: Fraction) -> Fraction:
    """Play each arm once, then the best one with that chance, else a uniform one; sure rewards."""
    average = sum(arms, Fraction(0)) / len(arms)
    explored = min(horizon, len(arms))
    return explored * average + (horizon - explored) * (best * max(arms) + (1 - best) * average)


def rule_b(arms: Sequence[Fraction], horizon: int) -> Fraction:
    """Return the expected reward under rule B, which depends on the means alone.

    >>> 100 - rule_b(VIOLATING, 100)
    Fraction(57685, 1152)
    """
    average, explored = sum(arms, Fraction(0)) / len(arms), {1: 1, 2: 2, 3: 15}.get(len(arms), 0)
    return horizon * average + max(0, horizon - explored) * advantage(arms)


def advantage(arms: Sequence[Fraction]) -> Fraction:
    """Return how much more than the average mean a round of rule B earns after its exploration."""
    if len(arms) == 2:
        return (arms[0] - arms[1]) ** 2 / 2
    return (1 - 17 * vandermonde(arms) ** 2) * squares(arms) / 36 if len(arms) == 3 else Fraction(0)


def vandermonde(means: Sequence[Fraction]) -> Fraction:
    """Return V, the product of the differences of three means."""
    return (means[1] - means[0]) * (means[2] - means[0]) * (means[2] - means[1])


def squares(means: Sequence[Fraction]) -> Fraction:
    """Return S, the sum of squared distances to their average."""
    average = sum(means, Fraction(0)) / len(means)
    return sum(((mean - average) ** 2 for mean in means), Fraction(0))


def permuted_regret(rule: RulePayoff, means: Sequence[Fraction], copies: Sequence[int], horizon: int) -> Fraction:
    """Return RP-regret: averaged over which original has how many copies.

    >>> [str(permuted_regret(rule_a, VIOLATING, copies, 100)) for copies in ((1, 1, 1), (2, 1, 1))]
    ['50', '26']
    """
    orders = list(permutations(copies))
    earned = sum((rule(registered_means(means, order), horizon) for order in orders), Fraction(0))
    return horizon * max(means) - earned / len(orders)


def ex_ante_payoff(
    rule: RulePayoff, prior: Mapping[Fraction, Fraction], copies: Sequence[int], horizon: int
) -> Fraction:
    """Return the agent's expected reward over a prior of i.i.d. means, share 1."""
    total = Fraction(0)
    for means in product(prior, repeat=len(copies)):
        chance = math.prod((prior[mean] for mean in means), start=Fraction(1))
        total += chance * rule(registered_means(means, copies), horizon)
    return total


def registered_means(means: Sequence[Fraction], copies: Sequence[int]) -> tuple[Fraction, ...]:
    """Return the arms' means in order of registration."""
    return tuple(mean for mean, count in zip(means, copies, strict=True) for _ in range(count))


RULES: dict[str, RulePayoff] = {"A, sure rewards": rule_a, "B, any rewards": rule_b}


@dataclass(frozen=True)
class Necessity:
    """Behaviour of a rule at the means 1, 1/2, 0 (T = 100), and in random exact cases."""

    honest: Fraction
    copied: Fraction
    tried: int
    paying: int
    neutral: int

    @property
    def refutes(self) -> bool:
        """Whether TRP is violated and no copies tried pay; docs/textbook/necessity.md proves that none pay at all."""
        return self.copied < self.honest and not self.paying


def necessity(rule: RulePayoff, tried: int, seed: int) -> Necessity:
    """Try one to four originals, priors of up to five values, mostly with 1, 1/2 and 0 among them, up to 30 copies."""
    honest, copied = (permuted_regret(rule, VIOLATING, copies, HORIZON) for copies in ((1, 1, 1), COPIES))
    dice = random.Random(seed)
    gains = []
    for _ in range(tried):
        prior, copies, horizon = _case(dice)
        alone = ex_ante_payoff(rule, prior, (1,) * len(copies), horizon)
        gains.append(ex_ante_payoff(rule, prior, copies, horizon) - alone)
    return Necessity(honest, copied, tried, sum(gain > 0 for gain in gains), sum(gain == 0 for gain in gains))


def _case(dice: random.Random) -> tuple[dict[Fraction, Fraction], tuple[int, ...], int]:
    originals = dice.choice((1, 2, 3, 3, 3, 3, 4))
    values = {Fraction(0), HALF, Fraction(1)} if dice.random() < 0.7 else set()
    while len(values) < 2 or (originals < 4 and dice.random() < 0.3 and len(values) < 5):
        values.add(Fraction(dice.randrange(13), 12))
    weights = [dice.choice((1, 1, 2, 5, 20, 100)) for _ in values]
    prior = {value: Fraction(weight, sum(weights)) for value, weight in zip(sorted(values), weights, strict=True)}
    copies = [dice.choice((1, 1, 1, 2, 3, 7, 30)) for _ in range(originals)]
    copies[0] += max(copies) == 1
    return prior, tuple(copies), dice.choice(HORIZONS)
