"""A contest of champions: the law of each agent's champion from its tests, then the tree of the contest.

What an agent does in its tests does not depend on the others, and the contest counts fresh rewards only. So given the
means of the champions the contest is that of one arm for each agent, and before they are known that of arms whose prior
is the law of the champion. Counts are those of coins, so every reward law in [0, 1] of the same mean does the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.tree.beliefs import MeanBelief
from cloneproof.engines.tree.recursion import RoundRewards, run
from cloneproof.engines.tree.shape import Shape, TreeOriginal
from cloneproof.engines.tree.slots import coin_law, draw_law
from cloneproof.errors import EngineError
from cloneproof.market.agents import Agent
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.market.rewards import bernoulli
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.rules import steady_kl_ucb, steady_ucb
from cloneproof.mechanisms.scores.champions import Champions

MOST_WORK = 2 * 10**8  # numbers computed for the laws of champions
DRAW_WORK = 1000  # a draw costs as much as so many numbers, however few it has


@dataclass(frozen=True)
class ChampionLaw:
    """What an agent earns on average in each round before the contest, and the law of its champion's mean."""

    paid: FloatArray
    values: tuple[float, ...]
    weights: tuple[float, ...]
    relative_error: float


def contest_rewards(
    market: Market, mechanism: Mechanism, copies: FullCopies, horizons: Sequence[int]
) -> dict[int, RoundRewards]:
    """Expected rewards of each agent up to each of the horizons."""
    after = _check(market, mechanism)
    agent, count = mechanism.agent, len(market.agents)
    assert agent is not None
    known: dict[tuple[object, ...], ChampionLaw] = {}
    laws = []
    for each in market.agents:
        kind = (tuple(each.priors), copies[each.name])
        if kind not in known:
            known[kind] = _champion_law(each, copies[each.name], mechanism.arm, after)
        laws.append(known[kind])
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
        for rounds, found in run(shape, later).items():
            earlier = rewards[rounds + after * count]
            rewards[rounds + after * count] = RoundRewards(
                earlier.values + found.values, error + found.relative_error, found.lost
            )
    return rewards


def _check(market: Market, mechanism: Mechanism) -> int:
    """The rounds of each agent before the contest, after a refusal of what is no contest on coins."""
    rule, agent, score = mechanism.arm, mechanism.agent, mechanism.scoring
    sure = market.family.quantile is bernoulli.quantile  # rewards are coins themselves
    index = agent is not None and agent.priority in (steady_kl_ucb.index, steady_ucb.index) and not agent.commits
    coins = sure or (agent is not None and agent.binarise and rule.binarise)
    if not (index and coins and rule.commits and type(score) is Champions and agent.order == "round-robin"):  # type: ignore[union-attr]
        raise EngineError(
            "the tree expects slots that are tested on coins, flat or before a contest of champions on coins by steady "
            f"UCB or KL-UCB, got {mechanism.name!r} with {market.family.name} rewards; use engine='monte-carlo'"
        )
    work = 0.0
    for each in market.agents:
        if any(prior.atoms is None for prior in each.priors):
            raise EngineError(
                "the tree of a reservoir expects discrete priors, got a continuous one; use engine='monte-carlo', or "
                "prior.discretised(n)"
            )
        realised = math.prod(len(prior.atoms or ()) for prior in each.priors)
        work += realised * rule.draws * (DRAW_WORK + each.count * (rule.explore + 1))
    if work > MOST_WORK:
        raise EngineError(
            f"the tree of a contest expects at most {MOST_WORK:.0e} numbers in the laws of champions, got about "
            f"{work:.0e} (realisations of the means, draws, pulls); use engine='monte-carlo'"
        )
    return score.after


def _champion_law(agent: Agent, copies: tuple[int, ...], rule: Rule, after: int) -> ChampionLaw:
    paid = np.zeros(after)
    champions: dict[float, float] = {}
    realised = 0
    for drawn in product(*(prior.atoms or () for prior in agent.priors)):
        chance = math.prod(weight for _, weight in drawn)
        law = draw_law([value for value, _ in drawn], copies)
        earned, champion = _tested(law, rule, after)
        paid += chance * earned
        for mean, weight in champion.items():
            champions[mean] = champions.get(mean, 0.0) + chance * weight
        realised += 1
    possible = {mean: weight for mean, weight in sorted(champions.items()) if weight > 0}
    roundings = rule.draws * (rule.explore + agent.count + 8) + realised + after + 64
    return ChampionLaw(paid, tuple(possible), tuple(possible.values()), roundings * 2.0**-52)


def _tested(law: dict[float, float], rule: Rule, after: int) -> tuple[FloatArray, dict[float, float]]:
    """Expected rewards in each round of an agent's tests, and the law of its champion's mean, given the means."""
    means, pulls = np.array(list(law)), rule.explore
    chances = np.array([weight * coin_law(mean, pulls) for mean, weight in law.items()])
    top = pulls + 1 if rule.threshold is None else min(pulls + 1, max(0, math.ceil(rule.threshold)))
    passing, failing = chances[:, top:].sum(axis=1), chances[:, :top]
    up_to = failing.sum(axis=0).cumsum()  # the chance of a test that fails with at most so many
    average = float(means @ list(law.values()))
    paid = np.zeros(after)
    champions, alive = np.zeros(len(means)), 1.0
    best = np.zeros((len(means), top))  # no test has passed, and the best count so far
    for draw in range(rule.draws):
        now = slice(draw * pulls, (draw + 1) * pulls)
        paid[now] = float(champions @ means) + alive * average
        champions = champions + alive * passing
        below = np.concatenate([[0.0], best.sum(axis=0).cumsum()[:-1]])[:top]
        best = failing.copy() if draw == 0 else best * up_to + failing * below
        alive = float(best.sum())
    champions = champions + (alive * np.array(list(law.values())) if rule.fallback == "draw" else best.sum(axis=1))
    paid[rule.draws * pulls :] = float(champions @ means)
    return paid, dict(zip(law, champions.tolist(), strict=True))
