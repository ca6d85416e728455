"""The flat reservoir round by round, given the means: a recursion of its own beside the closed form.

A state is the best failed test so far (count, agent, mean) and the count of the test under way. Every round moves the
count by one coin; after the last pull of a test it passes, or is compared with the best. The expectation is over all
realisations of the means and all orders of the agents, so this is for small markets. The reward of every round is kept,
which gives every horizon in one pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.errors import EngineError
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.rule import Rule

MOST_WORK = 2 * 10**7  # realisations x orders x tests x pulls
Best = tuple[int, int, float]  # count, agent and mean of a test


def slot_rewards(market: Market, rule: Rule, copies: FullCopies, horizon: int) -> FloatArray:
    """The expected reward of each agent in each round up to the horizon (agents x rounds)."""
    agents = len(market.agents)
    _check_size(market, rule, horizon)
    registered = [copies[agent.name] for agent in market.agents]
    total = np.zeros((agents, horizon))
    orders = list(permutations(range(agents)))
    for chance, means in _realisations(market):
        draws = [draw_law(own, counts) for own, counts in zip(means, registered, strict=True)]
        for order in orders:
            total += chance / len(orders) * _given_order(draws, order, rule, horizon)
    return total


def _check_size(market: Market, rule: Rule, horizon: int) -> None:
    atoms = [prior.atoms for agent in market.agents for prior in agent.priors]
    if any(values is None for values in atoms):
        raise EngineError(
            "the tree of a reservoir expects discrete priors, got a continuous one; use engine='monte-carlo', or "
            "prior.discretised(n)"
        )
    agents = len(market.agents)
    realised = math.prod(len(values or ()) for values in atoms)
    work = realised * math.factorial(min(agents, 20)) * min(horizon, rule.draws * agents * rule.explore)
    if work > MOST_WORK:
        raise EngineError(
            f"the tree of a reservoir expects at most {MOST_WORK:.0e} steps, got about {work:.0e} (realisations of the "
            "means, orders of the agents, rounds of tests); use engine='closed-form'"
        )


def _realisations(market: Market) -> Iterator[tuple[float, list[tuple[float, ...]]]]:
    """Every realisation of all means with its probability."""
    owners = [(i, prior.atoms or ()) for i, agent in enumerate(market.agents) for prior in agent.priors]
    for drawn in product(*(atoms for _, atoms in owners)):
        means: list[list[float]] = [[] for _ in market.agents]
        for (i, _), (value, _) in zip(owners, drawn, strict=True):
            means[i].append(value)
        yield math.prod(weight for _, weight in drawn), [tuple(own) for own in means]


def draw_law(means: Sequence[float], counts: Sequence[int]) -> dict[float, float]:
    """The law of the mean of a slot."""
    law: dict[float, float] = {}
    for mean, count in zip(means, counts, strict=True):
        if count:
            law[mean] = law.get(mean, 0.0) + count / sum(counts)
    return law


def _given_order(draws: list[dict[float, float]], order: Sequence[int], rule: Rule, horizon: int) -> FloatArray:
    paid = np.zeros((len(draws), horizon))
    testing: dict[Best, float] = {(-1, -1, 0.0): 1.0}  # nobody has passed; the best of the tests so far
    passed = np.zeros(len(draws))  # mean of a champion that has passed, times its probability, by agent
    t = 0
    for agent in list(order) * rule.draws:
        after: dict[Best, float] = {}
        newly = 0.0
        alive = sum(testing.values())
        mean_draw = sum(mean * chance for mean, chance in draws[agent].items())
        for pull in range(rule.explore):
            if t + pull < horizon:
                paid[:, t + pull] += passed
                paid[agent, t + pull] += alive * mean_draw
        for mean, chance in draws[agent].items():
            for count, weight in enumerate(coin_law(mean, rule.explore)):
                if rule.threshold is not None and count >= rule.threshold:
                    newly += alive * chance * weight * mean
                    continue
                for best, before in testing.items():
                    key = (count, agent, mean) if count > best[0] else best
                    after[key] = after.get(key, 0.0) + before * chance * weight
        passed[agent] += newly
        testing, t = after, t + rule.explore
        if t >= horizon:
            return paid
    if rule.fallback == "draw":
        left = sum(testing.values()) / len(draws)
        for agent, law in enumerate(draws):
            passed[agent] += left * sum(mean * chance for mean, chance in law.items())
    else:
        for (_, agent, mean), chance in testing.items():
            passed[agent] += chance * mean
    paid[:, t:] += passed[:, None]
    return paid


def coin_law(mean: float, pulls: int) -> FloatArray:
    """The law of the count of coins, one pull after the other."""
    law = np.zeros(pulls + 1)
    law[0] = 1.0
    for _ in range(pulls):
        shifted = np.concatenate([[0.0], law[:-1]])
        law = law * (1 - mean) + shifted * mean
    return law
