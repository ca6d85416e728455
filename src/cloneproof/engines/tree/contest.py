"""A contest of champions, exactly: one between single arms, whose priors are the laws of the champions' means.

An agent's tests do not depend on the others, and the contest counts fresh rewards only. So the contest has one arm for
each agent, whose prior is the law of its champion's mean. Counts are those of coins, so every reward law in [0, 1] with
the same mean gives the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.tree.recursion import RoundRewards, run
from cloneproof.engines.tree.shape import MeanBelief, Shape, TreeOriginal, refusal
from cloneproof.laws.arithmetic import FLOATS
from cloneproof.laws.counts import binomial, on_one_window
from cloneproof.laws.means import CopiedOriginal, exact_atoms, merge_equal_means, realisations
from cloneproof.laws.scan import scan_law
from cloneproof.market.market import Agent, FullCopies, Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.slots import passing_count
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.scores.champions import Champions

MOST_CONTEST_WORK = 2 * 10**8  # numbers that are computed for the laws of champions
DRAW_WORK = 1000  # numbers that could be computed in the overhead of one draw


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
