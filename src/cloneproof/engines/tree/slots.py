"""Rules on slots, exactly: a contest of champions, and user-defined rules. The flat reservoir has a closed form.

Contest of champions (`contest_rewards`). An agent's tests do not depend on the others, and the contest counts fresh
rewards only. So the contest is one between single arms, one for each agent, whose prior is the law of its champion's
mean. Counts are those of coins, so every reward law in [0, 1] with the same mean gives the same result.

Any other rule (`drawn_arms`): an average over what the slots hold. A slot is a uniform draw with replacement from an
agent's arms, so the numbers of slots that hold each original are multinomial, with weights in proportion to the copies.
Given them, a slot is an arm like any other. The order of the slots does not matter.

A rule that commits tests its slots one after the other and takes the highest sum; with one agent that is
explore-then-commit over the slots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.estimate import Estimate, Evaluation, weighted_sum
from cloneproof.engines.tree.recursion import RoundRewards, run
from cloneproof.engines.tree.shape import MeanBelief, Shape, TreeOriginal, refusal
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import FLOATS
from cloneproof.laws.counts import binomial, on_one_window
from cloneproof.laws.means import CopiedOriginal, exact_atoms, merge_equal_means, multisets, realisations
from cloneproof.laws.scan import scan_law
from cloneproof.market.market import Agent, FullCopies, Market, sort_within_kinds
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.slots import passing_count
from cloneproof.mechanisms.rule import Rule, Slots
from cloneproof.mechanisms.rules.etc import etc
from cloneproof.mechanisms.scores.champions import Champions

Horizons = Sequence[int]
ArmsEngine = Callable[[Market, Mechanism, FullCopies, Horizons], dict[int, Evaluation]]
SlotsHeld = tuple[int, ...]  # how many slots hold each original of an agent

MOST_CONTEST_WORK = 2 * 10**8  # numbers that are computed for the laws of champions
DRAW_WORK = 1000  # numbers that could be computed in the overhead of one draw
MOST_TABLES = 500  # ways in which originals can share all slots, up to exchanges

_recent: list[Any] = [None, {}]  # the last (market, mechanism, horizons), and its evaluations by slots held


def _realisations(agent: Agent) -> int:
    """Count the realisations of an agent's means; refuse continuous priors."""
    if any(prior.atoms is None for prior in agent.priors):
        advice = "use engine='monte-carlo', or prior.discretised(n)"
        raise refusal("discrete priors for a reservoir", "a continuous one", advice)
    return math.prod(len(prior.atoms or ()) for prior in agent.priors)


@dataclass(frozen=True)
class ChampionLaw:
    """An agent's expected reward in each round before the contest, and the law of its champion's mean."""

    paid: FloatArray
    values: tuple[float, ...]
    weights: tuple[float, ...]
    relative_error: float


def contest_rewards(
    market: Market, mechanism: Mechanism, copies: FullCopies, horizons: Sequence[int]
) -> dict[int, RoundRewards]:
    """Compute the expected rewards of each agent up to each of the horizons."""
    after = _check(market, mechanism)
    agent, count = mechanism.rules[0], len(market.agents)
    laws_of: dict[tuple[object, ...], ChampionLaw] = {}
    laws = []
    for owner in market.agents:
        kind = (tuple(owner.priors), copies[owner.name])
        if kind not in laws_of:
            laws_of[kind] = _champion_law(owner, copies[owner.name], mechanism.arm, after)
        laws.append(laws_of[kind])
    error = 4 * max(law.relative_error for law in laws)
    before = np.array([np.concatenate([[0.0], np.cumsum(law.paid)]) for law in laws])
    rewards = {}
    for horizon in horizons:
        turns, rest = divmod(min(horizon, after * count), count)
        paid = before[:, turns]
        if rest:  # a sweep over the agents in a random order, cut
            paid = paid + (before[:, turns + 1] - before[:, turns]) * (rest / count)
        rewards[horizon] = RoundRewards(paid, error, 0.0)
    later = [horizon - after * count for horizon in horizons if horizon > after * count]
    if later:
        originals = tuple(TreeOriginal(i, MeanBelief(law.values, law.weights), 1) for i, law in enumerate(laws))
        contest = Mechanism(arm=replace(agent, explore=agent.explore - after))
        shape = Shape(contest, originals, (1,) * count, deterministic=False)
        for rounds, contested in run(shape, later).items():
            earlier = rewards[rounds + after * count]
            rewards[rounds + after * count] = RoundRewards(
                earlier.values + contested.values, error + contested.relative_error, contested.lost
            )
    return rewards


def _check(market: Market, mechanism: Mechanism) -> int:
    """Return the rounds of each agent before the contest; refuse everything but a contest on coins."""
    agent, rule, score = mechanism.rules[0], mechanism.arm, mechanism.scoring
    sure = market.family.law == "coin"  # rewards are coins themselves
    coins = sure or (agent.binarise and rule.binarise)
    if not (agent.steady and coins and rule.commits and type(score) is Champions and agent.order == "round-robin"):
        raise refusal(
            "slots that are tested on coins, flat or before a contest of champions on coins by steady UCB or KL-UCB",
            f"{mechanism.name!r} with {market.family.name} rewards",
        )
    work = sum(
        _realisations(owner) * rule.draws * (DRAW_WORK + owner.count * (rule.explore + 1)) for owner in market.agents
    )
    if work > MOST_CONTEST_WORK:
        raise refusal(f"at most {MOST_CONTEST_WORK:.0e} numbers in the laws of champions", f"about {work:.0e}")
    return score.after


def _champion_law(agent: Agent, copies: tuple[int, ...], rule: Rule, after: int) -> ChampionLaw:
    paid = np.zeros(after)
    champions: dict[float, float] = {}
    realised = 0
    registered = [(prior, number) for prior, number in zip(agent.priors, copies, strict=True) if number]
    originals = [CopiedOriginal(exact_atoms(prior.atoms or ()), number) for prior, number in registered]
    for share, runs in realisations(originals):
        chance = float(share)
        law = {mean: count / sum(copies) for mean, count in merge_equal_means(runs)}
        earned, champion = _tested(law, rule, after)
        paid += chance * earned
        for mean, weight in champion.items():
            champions[mean] = champions.get(mean, 0.0) + chance * weight
        realised += 1
    possible = {mean: weight for mean, weight in sorted(champions.items()) if weight > 0}
    roundings = rule.draws * (rule.explore + agent.count + 8) + realised + after + 64
    return ChampionLaw(paid, tuple(possible), tuple(possible.values()), roundings * 2.0**-52)


def _tested(law: dict[float, float], rule: Rule, after: int) -> tuple[FloatArray, dict[float, float]]:
    """Compute the expected rewards in each round before the contest and the champion's law, given the means."""
    means, pulls = np.array(list(law)), rule.explore
    counts = on_one_window([binomial(pulls, mean, FLOATS) for mean in law], 0, pulls)
    chances = np.array([*law.values()])[:, None] * counts
    top = passing_count(rule)
    passing, drawn = chances[:, top:].sum(axis=1), np.array(list(law.values()))
    reached, best = scan_law(rule.draws, chances[:, :top])
    passed = np.concatenate([[0.0], reached[:-1].cumsum()])  # times `passing`: an earlier draw of this mean has passed
    champions = passed[-1] * passing + (reached[-1] * drawn if rule.slots.fresh else best.sum(axis=1))
    paid = np.full(after, float(champions @ means))
    paid[: rule.draws * pulls] = np.repeat((passed * (passing @ means) + reached * (drawn @ means))[:-1], pulls)
    return paid, dict(zip(law, champions.tolist(), strict=True))


def on_arms(mechanism: Mechanism, agents: int) -> Mechanism:
    """Return the mechanism whose arms are the slots of this one.

    >>> from cloneproof.mechanisms.rules.ucb import ucb
    >>> on_arms(Mechanism(arm=replace(ucb(), slots=Slots(3))), 2).arm.draws
    0
    """
    rule = mechanism.arm
    plain = mechanism.scoring.counts_all and mechanism.never_clears and mechanism.fallback is None
    if plain and rule.slots.fallback == "best" and rule.slots.threshold is None:
        if rule.commits and not rule.binarise and agents == 1 and mechanism.flat:
            return replace(mechanism, arm=etc(rounds=rule.explore, order="block"))
        if not rule.commits and rule.order != "index":
            return replace(mechanism, arm=replace(rule, slots=Slots()))
    raise refusal(
        "a rule on slots that is a scan on coins without a contest, or picks among slots without threshold or score",
        f"{rule.name!r} in {mechanism.name!r}",
    )


def slots_held(agent: Agent, slots: int, copies: Sequence[int]) -> dict[SlotsHeld, float]:
    """Return how many slots hold each original, up to exchanges of originals of equal prior, with probabilities.

    >>> from cloneproof.market.priors import Point
    >>> slots_held(Agent("ana", 2, Point(0.5)), 2, (1, 1))
    {(2, 0): 0.5, (1, 1): 0.5}
    """
    law = dict[SlotsHeld, float]()
    shares = [(place, Fraction(count, sum(copies))) for place, count in enumerate(copies) if count]
    for chance, counts in multisets(shares, slots):
        number_of = dict(counts)
        key = sort_within_kinds([number_of.get(place, 0) for place in range(agent.count)], agent.priors)
        law[key] = law.get(key, 0.0) + float(chance)
    return law


def drawn_arms(
    market: Market, mechanism: Mechanism, copies: FullCopies, horizons: Horizons, engine: ArmsEngine
) -> dict[int, Evaluation]:
    """Average payoffs and regret over what everybody's slots hold, at each horizon."""
    _check_ways(market, mechanism.draws)
    laws = {agent.name: slots_held(agent, mechanism.draws, copies[agent.name]) for agent in market.agents}
    return _average(market, mechanism, laws, horizons, engine)


def payoffs_by_slots(
    market: Market, mechanism: Mechanism, name: str, horizons: Horizons, engine: ArmsEngine
) -> dict[SlotsHeld, dict[int, Estimate]]:
    """Compute an agent's payoff for each way its slots can hold its originals, up to exchanges; others are honest."""
    slots = mechanism.draws
    _check_ways(market, slots)
    laws = {agent.name: slots_held(agent, slots, (1,) * agent.count) for agent in market.agents}
    payoffs = {}
    for held in laws[name]:
        given = _average(market, mechanism, laws | {name: {held: 1.0}}, horizons, engine)
        payoffs[held] = {horizon: evaluation.payoff[name] for horizon, evaluation in given.items()}
    return payoffs


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
    evaluated: list[tuple[float, dict[int, Evaluation]]] = []
    for outcome in product(*(law.items() for law in laws.values())):
        held = {name: numbers for name, (numbers, _) in zip(laws, outcome, strict=True)}
        weight = math.prod(chance for _, chance in outcome)
        evaluated.append((weight, _on_slots(market, arms, mechanism, held, horizons, engine)))
    return {
        horizon: Evaluation(
            {name: weighted_sum([(weight, own[horizon].payoff[name]) for weight, own in evaluated]) for name in laws},
            weighted_sum([(weight, own[horizon].regret) for weight, own in evaluated]),
            evaluated[0][1][horizon].engine,
        )
        for horizon in horizons
    }


def _check_ways(market: Market, slots: int) -> None:
    """Refuse slots that can be shared in too many ways to list."""
    ways = max(math.comb(slots + agent.count - 1, slots) for agent in market.agents)
    if ways > 20 * MOST_TABLES:
        raise _too_many(ways)


def _too_many(ways: int) -> EngineError:
    limit = f"slots that can be shared in at most {MOST_TABLES} ways"
    return refusal(limit, f"about {ways}", "use engine='monte-carlo', or fewer draws")


def _on_slots(
    market: Market, arms: Mechanism, mechanism: Mechanism, held: FullCopies, horizons: Horizons, engine: ArmsEngine
) -> dict[int, Evaluation]:
    about = _recent[0]
    if about is None or about[0] is not market or about[1] is not mechanism or about[2] != tuple(horizons):
        _recent[:] = (market, mechanism, tuple(horizons)), {}
    key, evaluated = tuple(held.values()), _recent[1]
    if key not in evaluated:
        evaluated[key] = engine(market, arms, held, horizons)
    evaluations: dict[int, Evaluation] = evaluated[key]
    return evaluations
