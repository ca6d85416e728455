"""Bars on slots in small cases: does any registration pay? python studies/bar_cases.py [CASES] [SEED].

1. `scan_gain`: random scans, in fractions, against the theorem with reference values of docs/textbook/bars-on-slots.md.
   Where its conditions hold nothing may be gained, elsewhere no more than its ceiling.
2. `one_bar_gain`: one bar, in fractions: means are chosen so that the chance r of losing a point is a fraction. Others
   have slots anywhere in the order.
3. `BarCase.gain`: one bar and falling bars, alone and against another agent, by the closed form; with a certificate
   nothing may be gained, else no more than the ceiling. Slivers, a bar just below the best mean, are hunted apart.
4. `fixed_end_gain`: a fixed end, about which nothing is claimed, by the Markov chain in fractions.

`chain_pay` and `all_pay` play the rule as it is, with all balances, for comparison with the closed form.
"""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any, NamedTuple

import cloneproof as cp
from cloneproof._schedules import Bar
from cloneproof.analysis.audit.bar_ceiling import bars_ceiling

CASES, SEED = 2000, 0
Number = Any  # a fraction or a float


def chain_pay(means: Sequence[Number], bars: Sequence[Bar], horizon: float, rounds: int) -> list[Number]:
    """What each slot, in the order that breaks ties, earns in the first rounds of a market that ends at random.

    Later rounds pay all slots together at most (1 - 1 / T)^rounds T. An infinite horizon is a fixed end.
    """
    number = type(means[0])
    go, paid = number(1) if horizon == math.inf else 1 - 1 / number(horizon), [number(0)] * len(means)
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


class BarCase(NamedTuple):
    """A market with one or two agents of different priors, and bars on slots."""

    market: cp.Market
    mechanism: cp.Mechanism

    @property
    def bars(self) -> tuple[Bar, ...]:
        return self.mechanism.arm.slots.bars

    def gain(self, copies: tuple[int, ...], others: tuple[int, ...]) -> float:
        """What the first agent gains, by the closed form, against others that register so."""
        rest = {agent.name: others[: agent.count] for agent in self.market.agents[1:]}
        honest, copied = (
            cp.evaluate(self.market, self.mechanism, rest | own, engine="closed-form").payoff["ana"]
            for own in ({}, {"ana": copies})
        )
        return copied.value - honest.value - copied.error - honest.error


def bar_case(dice: random.Random, sliver: bool = False) -> BarCase:
    """Draw a case; with `sliver`, one bar is a little below the best mean."""
    originals, horizon = dice.choice((2, 3, 3, 4)), dice.choice((3, 10, 50, 300, 2000))
    values = sorted(place / 1000 for place in dice.sample(range(1001), dice.choice((2, 3))))
    weights = [dice.randint(1, 4) for _ in values]
    agents = [cp.Agent("ana", originals, cp.Discrete(values, [w / sum(weights) for w in weights]))]
    if dice.random() < 0.6:
        agents.append(cp.Agent("bo", 2, cp.Discrete([0.1, dice.uniform(0.2, 1)], [0.4, 0.6])))
    bars = sorted((round(dice.uniform(0.03, 1), 3) for _ in range(dice.choice((1, 2, 3, 5)))), reverse=True)
    if sliver:
        bars = sorted([*bars, max(0.01, values[-1] * (1 - dice.choice((1e-4, 0.003, 0.01, 0.05))))], reverse=True)
    made = cp.mechanism(
        "reservoir-bars", bars=bars, stake=dice.choice((0.1, 0.5, 1, 2)), draws=dice.choice((2, 3, 4, 8))
    )
    return BarCase(cp.Market(agents, horizon, ends="at-random"), made)


def deviations(dice: random.Random, originals: int, number: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Draw registrations with copies and withholding, of the agent and of its opponent."""
    found = []
    while len(found) < number:
        copies = tuple(dice.choice((0, 1, 1, 2, 3, 10)) for _ in range(originals))
        if any(copies):
            found.append((copies, (dice.choice((1, 1, 3)), dice.choice((0, 1, 2)))))
    return found


def scan_gain(dice: random.Random) -> tuple[Fraction, Fraction, bool]:
    """What some weights gain in a random scan, the theorem's ceiling with c = V cut where it must be, and if it is 0.

    Originals are in the order of their means. Event k is of slot k modulo s; `ends[k][a]` is the chance that the scan
    ends there if the slot holds original a, and `worths[k][a]` what that pays, which rises with the mean.
    """
    count, slots, events = dice.choice((2, 3, 3)), dice.choice((2, 3)), dice.choice((4, 6, 8))
    worths = [sorted(Fraction(dice.randint(0, 12), 12) for _ in range(count)) for _ in range(events)]
    while True:  # until the chance of no end so far falls in the mean, for every slot at every event
        scales = [dice.choice((1, 1, 4, 20)) for _ in range(events)]
        ends = [[Fraction(dice.randint(1, 19) ** 2, 400 * scale) for _ in range(count)] for scale in scales]
        if dice.random() < 0.7:
            ends = [sorted(row) for row in ends]
        left = [[Fraction(1)] * count for _ in range(slots)]
        at = []  # the chances of no end before event k, of each slot
        for k, row in enumerate(ends):
            at.append([list(each) for each in left])
            left[k % slots] = [g * (1 - p) for g, p in zip(left[k % slots], row, strict=True)]
        at.append(left)
        if all(x >= y for each in at for row in each for x, y in pairwise(row)):
            break

    def pay(weights: Sequence[Fraction]) -> Fraction:
        total = Fraction(0)
        for k, row in enumerate(ends):
            others = math.prod(_dot(weights, each) for j, each in enumerate(at[k]) if j != k % slots)
            ended = [g * p * u for g, p, u in zip(at[k][k % slots], row, worths[k], strict=True)]
            total += others * _dot(weights, ended)
        return total

    value, ceiling = Fraction(0), Fraction(0)  # c of the event after k
    for k in reversed(range(events)):
        own, row, paid = at[k][k % slots], ends[k], worths[k]
        ended = [g * p for g, p in zip(own, row, strict=True)]
        worth = _dot(ended, paid) / sum(ended)
        allowed = [worth] if row == sorted(row) else []
        bar = max((c for c in {value, Fraction(0), *paid} if c <= value and _rises(row, paid, c)), default=None)
        allowed += [] if bar is None else [bar]
        enough = max(allowed, default=Fraction(0))
        if value > enough:
            after = at[k + 1]
            spread = sum(math.prod(each[a] for each in after) for a in range(count)) / count
            ceiling += (value - enough) * (spread - math.prod(sum(each) / count for each in after))
            value = enough
        value += sum(ended) / sum(own) * (worth - value)
    copies = [dice.choice((0, 1, 1, 2, 5)) for _ in range(count)]
    weights = [Fraction(c, sum(copies) or 1) for c in copies] if any(copies) else [Fraction(1, count)] * count
    earned = [pay(each) for each in permutations(weights)]
    return sum(earned) / len(earned) - pay([Fraction(1, count)] * count), ceiling, ceiling == 0


def _rises(row: Sequence[Fraction], paid: Sequence[Fraction], value: Fraction) -> bool:
    """Whether chance times (worth - value) does not fall in the mean."""
    found = [p * (u - value) for p, u in zip(row, paid, strict=True)]
    return found == sorted(found)


def _dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(first, second, strict=True)), Fraction(0))


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
    bars = [Bar(dice.randint(1, 3), dice.randint(1, 4), 0.0)]
    if dice.random() < 0.4:
        bars.append(Bar(dice.randint(1, 3), bars[0].whole + dice.randint(0, 2), 0.0))
    rival = [Fraction(dice.randint(0, 8), 8)] if dice.random() < 0.4 else []
    place, copies = dice.randint(0, draws), [dice.choice((0, 1, 2, 4)) for _ in range(count)]
    copies[0] += not any(copies)
    known = {
        held: sum(pay for k, pay in enumerate(_with_rival(held, rival, place, bars, rounds)) if not rival or k != place)
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
    held: Sequence[Fraction], rival: Sequence[Fraction], place: int, bars: Sequence[Bar], rounds: int
) -> list[Fraction]:
    return chain_pay([*held[:place], *rival, *held[place:]], bars, math.inf, rounds)


def hunts(cases: int, seed: int) -> Iterator[str]:
    """Each hunt in a sentence: how many cases, in how many something is gained, and the largest gain."""
    dice = random.Random(seed)
    scans = [scan_gain(dice) for _ in range(cases)]
    sure, rest = [each for each in scans if each[2]], [each for each in scans if not each[2]]
    yield f"scans that satisfy the theorem, in fractions: {len(sure)}, {sum(each[0] > 0 for each in sure)} gain"
    broken = sum(gain > most for gain, most, _ in rest)
    yield f"other scans: {len(rest)}, {sum(each[0] > 0 for each in rest)} gain, {broken} more than the ceiling"
    gains = [one_bar_gain(dice) for _ in range(cases)]
    yield f"one bar, in fractions: {cases}, {sum(gain > 0 for gain in gains)} gain, {gains.count(0)} are neutral"
    for sliver in (False, True):
        certified = uncertified = broken = gained = 0
        for _ in range(cases):
            case = bar_case(dice, sliver)
            ana = case.market.agents[0]
            most, _, _ = bars_ceiling(
                ana.priors[0], ana.count, case.bars, case.mechanism.arm.draws, case.market.horizon
            )
            certified, uncertified = certified + (most == 0), uncertified + (most > 0)
            found = [case.gain(*each) for each in deviations(dice, ana.count, 2)]
            broken, gained = broken + sum(gain > most for gain in found), gained + (most > 0 and max(found) > 0)
        kind = "falling bars with one just below the best mean" if sliver else "one bar and falling bars"
        yield (
            f"{kind}, by the closed form: {certified} markets are certified and {uncertified} have a ceiling; {broken} "
            f"of {2 * cases} deviations gain more than that, in {gained} of the latter something is gained"
        )
    gains = [fixed_end_gain(dice) for _ in range(cases)]
    yield f"a fixed end, in fractions: {cases}, {sum(gain > 0 for gain in gains)} gain, at most {float(max(gains)):.3g}"


def main(cases: int = CASES, seed: int = SEED) -> None:
    """Print what each hunt found."""
    for sentence in hunts(cases, seed):
        print(sentence, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
