"""A bar on slots in small cases: does any registration pay? python studies/bar_cases.py [CASES] [SEED].

1. `one_bar_gain`: in fractions: means are chosen so that the chance r of losing a point is a fraction. Others have
   slots anywhere in the order.
2. `BarCase.gain`: alone and against another agent, by the closed form.
3. `fixed_end_gain`: a fixed end, about which nothing is claimed, by the Markov chain in fractions.

`chain_pay` and `all_pay` play the rule as it is, with all balances, for comparison with the closed form.
"""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any, NamedTuple

import cloneproof as cp
from cloneproof._lib.schedules import Bar

CASES, SEED = 2000, 0
Number = Any  # a fraction or a float


def chain_pay(means: Sequence[Number], bar: Bar, horizon: float, rounds: int) -> list[Number]:
    """What each slot, in the order that breaks ties, earns in the first rounds of a market that ends at random.

    Later rounds pay all slots together at most (1 - 1 / T)^rounds T. An infinite horizon is a fixed end.
    """
    number = type(means[0])
    go, paid = number(1) if horizon == math.inf else 1 - 1 / number(horizon), [number(0)] * len(means)
    states = {((bar.stake,) * len(means), (0,) * len(means)): number(1)}
    for _ in range(rounds):
        later: defaultdict[tuple[tuple[int, ...], tuple[int, ...]], Number] = defaultdict(number)
        for (balances, failures), chance in states.items():
            j = min(range(len(means)), key=lambda k: (failures[k], k))
            v, part = means[j], number(bar.part)
            paid[j] += chance * v
            for credit, odds in ((0, 1 - v), (bar.whole, v * (1 - part)), (bar.whole + 1, v * part)):
                if odds:
                    left, failed = balances[j] - 1 + credit, failures[j]
                    if left == 0:
                        failed, left = failed + 1, bar.stake
                    state = (*balances[:j], left, *balances[j + 1 :]), (*failures[:j], failed, *failures[j + 1 :])
                    later[state] += chance * odds * go
        states = later
    return paid


def all_pay(
    agents: Sequence[Sequence[tuple[Sequence[tuple[Number, Fraction]], int]]],
    draws: int,
    bar: Bar,
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
            known[means] = chain_pay(means, bar, horizon, rounds)
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


class BarCase(NamedTuple):
    """A market with one or two agents of different priors, and a bar on slots."""

    market: cp.Market
    mechanism: cp.Mechanism

    def gain(self, copies: tuple[int, ...], others: tuple[int, ...]) -> float:
        """What the first agent gains, by the closed form, against others that register so."""
        rest = {agent.name: others[: agent.count] for agent in self.market.agents[1:]}
        honest, copied = (
            cp.evaluate(self.market, self.mechanism, rest | own, engine="law").payoff["ana"]
            for own in ({}, {"ana": copies})
        )
        return copied.value - honest.value - copied.error - honest.error


def bar_case(dice: random.Random, sliver: bool = False) -> BarCase:
    """Draw a case; with `sliver`, the bar is a little below the best mean."""
    originals, horizon = dice.choice((2, 3, 3, 4)), dice.choice((3, 10, 50, 300, 2000))
    values = sorted(place / 1000 for place in dice.sample(range(1001), dice.choice((2, 3))))
    weights = [dice.randint(1, 4) for _ in values]
    agents = [cp.Agent("ana", originals, cp.Discrete(values, [w / sum(weights) for w in weights]))]
    if dice.random() < 0.6:
        agents.append(cp.Agent("bo", 2, cp.Discrete([0.1, dice.uniform(0.2, 1)], [0.4, 0.6])))
    bar = round(dice.uniform(0.03, 1), 3)
    if sliver:
        bar = max(0.01, values[-1] * (1 - dice.choice((1e-4, 0.003, 0.01, 0.05))))
    stake, draws = dice.choice((0.1, 0.5, 1, 2)), dice.choice((2, 3, 4, 8))
    made = cp.mechanism("reservoir-bars", bars=bar, stake=stake, draws=draws)
    return BarCase(cp.Market(agents, horizon, ends="at-random"), made)


def deviations(dice: random.Random, originals: int, number: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Draw registrations with copies and withholding, of the agent and of its opponent."""
    found = []
    while len(found) < number:
        copies = tuple(dice.choice((0, 1, 1, 2, 3, 10)) for _ in range(originals))
        if any(copies):
            found.append((copies, (dice.choice((1, 1, 3)), dice.choice((0, 1, 2)))))
    return found


def one_bar_gain(dice: random.Random) -> Fraction:
    """What some registration gains under one bar, whole or not, against any slots of others, as a part of T."""
    go, credit, part = Fraction(dice.randint(1, 19), 20), dice.randint(1, 4), Fraction(dice.choice((0, 0, 1, 2)), 4)
    stake, count, draws = dice.randint(1, 4), dice.choice((2, 3, 4)), dice.choice((2, 3))
    kinds = []
    while len(kinds) < count + 2:
        root = go * Fraction(dice.randint(1, 40), 40)
        mean = (1 - root / go) / (1 - root**credit * (1 - part + part * root))
        if 0 <= mean <= 1:
            kinds.append((mean, root**stake))
    own, others = kinds[:count], kinds[count:][: dice.choice((0, 1, 2))]
    order = [-1] * draws + list(range(len(others)))
    dice.shuffle(order)
    copies = [dice.choice((0, 1, 1, 2, 5)) for _ in own]
    copies[0] += not any(copies)
    gained = Fraction(0)
    for held in product(own, repeat=draws):
        drawn, slots = iter(held), [others[place] if place >= 0 else None for place in order]
        reached, paid = Fraction(1), Fraction(0)
        for slot in slots:
            mean, fails = slot or next(drawn)
            paid += reached * (1 - fails) * mean * (slot is None)
            reached *= fails
        gained += paid / (1 - reached) * (_chance(own, held, copies) - Fraction(1, count**draws))
    return gained


def _chance(own: Sequence[Number], held: Sequence[Number], copies: Sequence[int]) -> Fraction:
    """The chance that slots hold these originals, averaged over which of them are registered how often."""
    total = Fraction(0)
    for each in permutations(copies):
        weight = dict(zip(own, each, strict=True)) if len(set(own)) == len(own) else None
        weight = weight or {kind: Fraction(sum(copies), len(own)) for kind in own}
        total += math.prod((Fraction(weight[kind], sum(copies)) for kind in held), start=Fraction(1))
    return total / math.factorial(len(own))


def fixed_end_gain(dice: random.Random) -> Fraction:
    """What some registration gains in all with a fixed end, averaged over which original is better."""
    count, draws, rounds = dice.choice((2, 2, 3)), 2, dice.randint(2, 9)
    means = [Fraction(dice.randint(0, 8), 8) for _ in range(count)]
    bar = Bar(dice.randint(1, 3), dice.randint(1, 4), 0.0)
    rival = [Fraction(dice.randint(0, 8), 8)] if dice.random() < 0.4 else []
    place, copies = dice.randint(0, draws), [dice.choice((0, 1, 2, 4)) for _ in range(count)]
    copies[0] += not any(copies)
    known = {
        held: sum(pay for k, pay in enumerate(_with_rival(held, rival, place, bar, rounds)) if not rival or k != place)
        for held in product(set(means), repeat=draws)
    }

    def earned(weights: Sequence[Fraction]) -> Fraction:
        chances = list(zip(means, weights, strict=True))
        return sum(
            (
                known[tuple(v for v, _ in held)] * math.prod(w for _, w in held)
                for held in product(chances, repeat=draws)
            ),
            Fraction(0),
        )

    paid = [earned([Fraction(c, sum(copies)) for c in each]) for each in permutations(copies)]
    return sum(paid) / len(paid) - earned([Fraction(1, count)] * count)


def _with_rival(
    held: Sequence[Fraction], rival: Sequence[Fraction], place: int, bar: Bar, rounds: int
) -> list[Fraction]:
    return chain_pay([*held[:place], *rival, *held[place:]], bar, math.inf, rounds)


def hunts(cases: int, seed: int) -> Iterator[str]:
    """Each hunt in a sentence: how many cases, in how many something is gained, and the largest gain."""
    dice = random.Random(seed)
    gains = [one_bar_gain(dice) for _ in range(cases)]
    yield f"in fractions: {cases}, {sum(gain > 0 for gain in gains)} gain, {gains.count(0)} are neutral"
    for sliver in (False, True):
        drawn = [bar_case(dice, sliver) for _ in range(cases)]
        gains = [case.gain(*each) for case in drawn for each in deviations(dice, case.market.agents[0].count, 2)]
        kind = "a bar just below the best mean" if sliver else "any bar"
        yield f"{kind}, by the closed form: {len(gains)} deviations, {sum(gain > 0 for gain in gains)} gain"
    gains = [fixed_end_gain(dice) for _ in range(cases)]
    yield f"a fixed end, in fractions: {cases}, {sum(gain > 0 for gain in gains)} gain, at most {float(max(gains)):.3g}"


def main(cases: int = CASES, seed: int = SEED) -> None:
    """Print what each hunt found."""
    for sentence in hunts(cases, seed):
        print(sentence, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
