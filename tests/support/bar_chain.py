"""Bars on slots as they are played: the Markov chain of all balances and failures, in fractions or in floats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

from cloneproof._schedules import Bar

Number = Any  # a fraction or a float


def chain_pay(means: Sequence[Number], bars: Sequence[Bar], horizon: int, rounds: int) -> list[Number]:
    """Return what each slot, in the order that breaks ties, earns in the first rounds of a market that ends at random.

    Later rounds pay all slots together at most (1 - 1 / T)^rounds T.
    """
    number = type(means[0])
    go, paid = 1 - 1 / number(horizon), [number(0)] * len(means)
    states = {((bars[0].stake,) * len(means), (0,) * len(means)): number(1)}
    for _ in range(rounds):
        later: defaultdict[tuple[tuple[int, ...], tuple[int, ...]], Number] = defaultdict(number)
        for (balances, failures), chance in states.items():
            j = min(range(len(means)), key=lambda k: (failures[k], k))
            bar, v = bars[min(failures[j], len(bars) - 1)], means[j]
            paid[j] += chance * v
            part = number(bar.part)
            for credit, odds in ((0, 1 - v), (bar.whole, v * (1 - part)), (bar.whole + 1, v * part)):
                if odds:
                    left, failed = balances[j] - 1 + credit, failures[j]
                    if left == 0:
                        failed += 1
                        left = bars[min(failed, len(bars) - 1)].stake
                    state = (*balances[:j], left, *balances[j + 1 :]), (*failures[:j], failed, *failures[j + 1 :])
                    later[state] += chance * odds * go
        states = later
    return paid


def all_pay(
    agents: Sequence[Sequence[tuple[Sequence[tuple[Number, Fraction]], int]]],
    draws: int,
    bars: Sequence[Bar],
    horizon: int,
    rounds: int,
) -> list[Number]:
    """Return each agent's pay in the first rounds, averaged over means, draws and orders, all of them enumerated.

    An agent is a list of originals: the atoms of the prior, and how often the original is registered.
    """
    laws = [_slots_of(agent, draws) for agent in agents]
    owners = [i for i in range(len(agents)) for _ in range(draws)]
    orders: defaultdict[tuple[tuple[Number, int], ...], Fraction] = defaultdict(Fraction)
    for each in product(*(law.items() for law in laws)):
        chance = math.prod((weight for _, weight in each), start=Fraction(1))
        ways = list(permutations(zip((mean for means, _ in each for mean in means), owners, strict=True)))
        for order in ways:
            orders[order] += chance / len(ways)
    known: dict[tuple[Number, ...], list[Number]] = {}
    paid = [Fraction(0)] * len(agents)
    for order, chance in orders.items():
        means = tuple(mean for mean, _ in order)
        if means not in known:
            known[means] = chain_pay(means, bars, horizon, rounds)
        for (_, owner), pay in zip(order, known[means], strict=True):
            paid[owner] += chance * pay
    return paid


def _slots_of(
    agent: Sequence[tuple[Sequence[tuple[Number, Fraction]], int]], draws: int
) -> dict[tuple[Number, ...], Fraction]:
    """Return the law of the means in an agent's slots."""
    law: defaultdict[tuple[Number, ...], Fraction] = defaultdict(Fraction)
    for world in product(*(atoms for atoms, _ in agent)):
        chance = math.prod((weight for _, weight in world), start=Fraction(1))
        arms = [mean for (mean, _), (_, copies) in zip(world, agent, strict=True) for _ in range(copies)]
        for slots in product(arms, repeat=draws):
            law[slots] += chance / len(arms) ** draws
    return law
