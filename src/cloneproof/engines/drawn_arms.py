"""Somebody's own rule on slots, exactly: an average over what the slots hold, each case a mechanism on arms.

A slot is a uniform draw with replacement from an agent's registered arms, so how many slots hold each original is
multinomial, with weights in proportion to the copies. Given that, a slot is an arm like any other, and a mechanism
whose rule picks among slots is one whose rule picks among arms. The order of the slots does not matter: draws are
exchangeable.

A rule that commits tests its slots one after the other, and takes the highest sum; with one agent that is explore-then-
commit over the slots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from cloneproof.engines.estimate import Estimate, Evaluation, weighted_sum
from cloneproof.errors import EngineError
from cloneproof.market.agents import Agent
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rules.etc import etc

Horizons = Sequence[int]
ArmsEngine = Callable[[Market, Mechanism, FullCopies, Horizons], dict[int, Evaluation]]
SlotsHeld = tuple[int, ...]  # how many slots hold each original of an agent
MOST_TABLES = 500  # ways in which all slots are shared, up to exchanges


def on_arms(mechanism: Mechanism, agents: int) -> Mechanism:
    """The mechanism whose arms are the slots of this one.

    >>> from cloneproof.mechanisms.rules.ucb import ucb
    >>> on_arms(Mechanism(arm=replace(ucb(), draws=3)), 2).arm.draws
    0
    """
    rule = mechanism.arm
    plain = mechanism.scoring.counts_all and mechanism.restart is None and mechanism.fallback is None
    if plain and rule.fallback == "best" and rule.threshold is None:
        if rule.commits and not rule.binarise and agents == 1 and mechanism.agent is None:
            return replace(mechanism, arm=etc(rounds=rule.explore, order="block"))
        if not rule.commits and rule.order != "index":
            return replace(mechanism, arm=replace(rule, draws=0))
    raise EngineError(
        f"the tree expects a rule on slots that is a scan on coins without a contest, or one that picks among slots "
        f"without a threshold or a score, got {rule.name!r} in {mechanism.name!r}; use engine='monte-carlo'"
    )


def slots_held(agent: Agent, slots: int, copies: Sequence[int]) -> dict[SlotsHeld, float]:
    """How many slots hold each original, up to exchanges of originals of equal prior, with probabilities.

    >>> from cloneproof.market.priors import Point
    >>> slots_held(Agent("ana", 2, Point(0.5)), 2, (1, 1))
    {(2, 0): 0.5, (1, 1): 0.5}
    """
    arms, law = sum(copies), dict[SlotsHeld, float]()
    for held in _compositions(slots, agent.count):
        ways = math.factorial(slots)
        for number in held:
            ways //= math.factorial(number)
        weight = ways * math.prod(count**number for count, number in zip(copies, held, strict=True))
        if weight:
            key = canonical(agent, held)
            law[key] = law.get(key, 0.0) + weight / arms**slots
    return law


def canonical(agent: Agent, held: SlotsHeld) -> SlotsHeld:
    """The largest number first among originals of equal prior."""
    sorted_held = list(held)
    for prior in agent.priors:
        places = [k for k, other in enumerate(agent.priors) if other == prior]
        for place, number in zip(places, sorted((held[k] for k in places), reverse=True), strict=True):
            sorted_held[place] = number
    return tuple(sorted_held)


def _compositions(total: int, parts: int) -> Iterator[SlotsHeld]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def drawn_arms(
    market: Market, mechanism: Mechanism, copies: FullCopies, horizons: Horizons, engine: ArmsEngine
) -> dict[int, Evaluation]:
    """Payoffs and regret with these copies at each horizon: the average over what everybody's slots hold."""
    _check_size(market, mechanism.arm.draws)
    laws = {agent.name: slots_held(agent, mechanism.arm.draws, copies[agent.name]) for agent in market.agents}
    return _average(market, mechanism, laws, horizons, engine)


def payoffs_by_slots(
    market: Market, mechanism: Mechanism, name: str, horizons: Horizons, engine: ArmsEngine
) -> dict[SlotsHeld, dict[int, Estimate]]:
    """An agent's payoff for each way in which its slots can hold its originals, up to exchanges; others are honest."""
    slots = mechanism.arm.draws
    _check_size(market, slots)
    laws = {agent.name: slots_held(agent, slots, (1,) * agent.count) for agent in market.agents}
    found = {}
    for held in laws[name]:
        given = _average(market, mechanism, laws | {name: {held: 1.0}}, horizons, engine)
        found[held] = {horizon: evaluation.payoff[name] for horizon, evaluation in given.items()}
    return found


def _average(
    market: Market,
    mechanism: Mechanism,
    laws: dict[str, dict[SlotsHeld, float]],
    horizons: Horizons,
    engine: ArmsEngine,
) -> dict[int, Evaluation]:
    arms, ways = on_arms(mechanism, len(market.agents)), math.prod(map(len, laws.values()))
    if ways > MOST_TABLES:
        raise _too_many(ways)
    found: list[tuple[float, dict[int, Evaluation]]] = []
    for outcome in product(*(law.items() for law in laws.values())):
        held = {name: numbers for name, (numbers, _) in zip(laws, outcome, strict=True)}
        weight = math.prod(chance for _, chance in outcome)
        found.append((weight, _RECENT.evaluate(market, arms, mechanism, held, tuple(horizons), engine)))
    return {
        horizon: Evaluation(
            {name: weighted_sum([(weight, each[horizon].payoff[name]) for weight, each in found]) for name in laws},
            weighted_sum([(weight, each[horizon].regret) for weight, each in found]),
            found[0][1][horizon].engine,
        )
        for horizon in horizons
    }


def _check_size(market: Market, slots: int) -> None:
    """Refuse what would take long only to be counted."""
    ways = max(math.comb(slots + agent.count - 1, slots) for agent in market.agents)
    if ways > 20 * MOST_TABLES:
        raise _too_many(ways)


def _too_many(ways: int) -> EngineError:
    return EngineError(
        f"the tree expects slots that can be shared in at most {MOST_TABLES} ways, got about {ways}; use "
        "engine='monte-carlo', or fewer draws"
    )


class _RecentTables:
    """What was evaluated for the market and the mechanism asked about last: other copies only change the weights."""

    def __init__(self) -> None:
        self.about: tuple[Market, Mechanism, tuple[int, ...]] | None = None
        self.known: dict[tuple[SlotsHeld, ...], dict[int, Evaluation]] = {}

    def evaluate(
        self, market: Market, arms: Mechanism, mechanism: Mechanism, held: FullCopies, horizons: tuple[int, ...],
        engine: ArmsEngine,
    ) -> dict[int, Evaluation]:  # fmt: skip
        about = self.about
        if about is None or about[0] is not market or about[1] is not mechanism or about[2] != horizons:
            self.about, self.known = (market, mechanism, horizons), {}
        key, known = tuple(held.values()), self.known
        if key not in known:
            known[key] = engine(market, arms, held, horizons)
        return known[key]


_RECENT = _RecentTables()
