"""The reservoir by plain enumeration in fractions: every order of agents, every draw of every slot, every count."""

from fractions import Fraction
from itertools import permutations, product
from math import comb


def expected_rewards(means, copies, reservoir, horizon):
    """Each agent's expected reward, given the means of its originals and how often each is registered.

    means, copies   one tuple for each agent
    reservoir       a reservoir: its draws, the rounds of a test, and the threshold or None
    """
    agents = range(len(means))
    orders = list(permutations(agents))
    totals = [Fraction(0)] * len(means)
    for order in orders:
        table = [agent for _ in range(reservoir.draws) for agent in order]
        for pays in _walk(table, means, copies, reservoir, horizon, order):
            for agent, reward in pays:
                totals[agent] += reward
    return [total / len(orders) for total in totals]


def _walk(table, means, copies, reservoir, horizon, order):
    """All courses of the tests as lists of (agent, expected reward times the chance of the course)."""
    stack = [(0, 0, Fraction(1), ())]  # place, rounds, chance, (count, mean, agent) of the tests so far
    while stack:
        place, rounds, chance, past = stack.pop()
        if rounds >= horizon or chance == 0:
            continue
        left = horizon - rounds
        if place == len(table):
            yield _after_all(past, left, chance)
            continue
        agent, n = table[place], reservoir.rounds
        arms = sum(copies[agent])
        for mean, number in zip(means[agent], copies[agent], strict=True):
            if not number:
                continue
            drawn = chance * Fraction(number, arms)
            yield [(agent, drawn * mean * min(n, left))]
            for count in range(n + 1):
                here = drawn * comb(n, count) * mean**count * (1 - mean) ** (n - count)
                if here == 0:
                    continue
                if reservoir.threshold is not None and count >= reservoir.threshold:
                    yield [(agent, here * mean * max(0, left - n))]
                else:
                    stack.append((place + 1, rounds + n, here, (*past, (count, mean, agent))))


def _after_all(past, left, chance):
    _, mean, agent = max(past, key=lambda test: test[0])  # the first of the highest counts
    return [(agent, chance * left * mean)]


def averaged(values, weights, originals, copies, reservoir, horizon):
    """The expected rewards with means drawn independently, `originals` of each agent."""
    places = [(agent, k) for agent, count in enumerate(originals) for k in range(count)]
    totals = [Fraction(0)] * len(originals)
    for drawn in product(range(len(values)), repeat=len(places)):
        chance = Fraction(1)
        means = [[] for _ in originals]
        for (agent, _), k in zip(places, drawn, strict=True):
            chance *= weights[k]
            means[agent].append(values[k])
        rewards = expected_rewards([tuple(own) for own in means], copies, reservoir, horizon)
        totals = [total + chance * reward for total, reward in zip(totals, rewards, strict=True)]
    return totals
