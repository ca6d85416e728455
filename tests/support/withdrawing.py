"""The best that an agent can do by withdrawing arms, in fractions: every adaptive strategy of hers, in real sessions.

And an example with ten slots, in which she withdraws or pauses an item once it has failed.

Ana sees everything that is shown and every reward, but neither which of her originals is better nor what slots hold. A
*world* is an assignment of means to her originals, the draws of all slots and the order of the agents. The real session
is run in all worlds at once; those that look alike so far are played alike.
"""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import NamedTuple
from unittest.mock import patch

import cloneproof as cp
from cloneproof.errors import NobodyLeftError
from support.late_by_hand import Script

HALF, ONE = Fraction(1, 2), Fraction(1)


class World(NamedTuple):
    """A session, its probability with that of its rewards so far, and the mean of each arm."""

    live: cp.Session
    weight: Fraction
    means: dict


def worlds(mechanism, originals, copies, rivals, horizon, seeds=(0,)):
    """All worlds at the start; `copies` says how often each of Ana's originals is registered."""
    arms = [number for number, count in enumerate(copies) for _ in range(count)]
    registered = {"ana": len(arms)} | {name: len(means) for name, means in rivals.items()}
    orders = list(permutations(originals))
    numbers = [list(product(range(count), repeat=mechanism.arm.draws)) for count in registered.values()]
    found = []
    for order, seed, held in product(orders, seeds, product(*numbers)):
        with patch("cloneproof.mechanisms.reservoir.rank.agent_slots", side_effect=[list(own) for own in held]):
            live = cp.session(mechanism, registered, horizon, seed=seed)
        weight = Fraction(1, len(orders) * len(seeds))
        for own in numbers:
            weight /= len(own)
        found.append(World(live, weight, {"ana": [order[number] for number in arms]} | rivals))
    return found


def best_pay(many, withdraws=True, delay=0, due=()):
    """Ana's expected pay from here on, if she withdraws as well as she can, or not at all; uses the worlds up.

    `due` has the decisions whose rewards have not arrived; a reward arrives `delay` decisions later.
    """
    live = many[0].live
    if live.round == live.last:
        return Fraction(0)
    gone = live.withdrawn.get("ana", [])
    left = [arm for arm in range(live.registration.arms[0]) if arm not in gone] if withdraws else []
    chosen = [arms for size in range(len(left), -1, -1) for arms in combinations(left, size)]
    return max(_pay([_copy(world) for world in many] if arms else many, arms, withdraws, delay, due) for arms in chosen)


def _copy(world):
    live = world.live
    shared = (live.mechanism, live.mechanism.arm, live.mechanism.agent, live.registration, live.rewards)
    return world._replace(live=deepcopy(live, {id(part): part for part in shared}))


def _pay(many, arms, withdraws, delay, due):
    """The pay of a round, before which these arms are withdrawn, and of all after it, over what the round shows."""
    seen = {}
    for world in many:
        for arm in arms:
            world.live.withdraw("ana", arm)
        try:
            decision = world.live.decide()
        except NobodyLeftError:
            continue
        seen.setdefault((decision.agent, decision.arm), []).append(world)
    total = Fraction(0)
    for (agent, arm), alike in seen.items():
        if agent == "ana":
            total += sum(world.weight * world.means[agent][arm] for world in alike)
        total += _arrivals(alike, withdraws, delay, (*due, (agent, arm)))
    return total


def _arrivals(many, withdraws, delay, due):
    """The pay after a decision: the oldest reward arrives if it is due, 0 or 1 by its mean in each world."""
    if len(due) <= delay:
        return best_pay(many, withdraws, delay, due)
    (agent, arm), *rest = due
    number, total = many[0].live.round - len(rest), Fraction(0)
    for value in (0, 1):
        after = []
        for world in many:
            mean = world.means[agent][arm]
            chance = mean if value else 1 - mean
            if chance:
                one = _copy(world) if chance < 1 and not value else world
                one.live.reward(number, float(value))
                after.append(one._replace(weight=world.weight * chance))
        if after:
            total += best_pay(after, withdraws, delay, tuple(rest))
    return total


def ten_slots(act):
    """Two items of 1/2 and 1, one pull, ten slots, 100 rounds, alone: the pay if she acts on the first that fails."""
    mechanism, script, total = cp.mechanism("reservoir", rounds=1, draws=10, threshold=1), Script(), Fraction(0)

    def slots(rule, stream, pool):
        held = []
        while len(held) < rule.draws:  # what comes after the item of 1 is never reached
            held.append(1 if 1 in held else script.choose([HALF, HALF]))
        return held

    with patch("cloneproof.mechanisms.reservoir.rank.agent_slots", slots):
        for _ in script.leaves():
            pay = _pay_in_ten_slots(cp.session(mechanism, {"ana": 2}, 100), act, script)
            total += script.weight * pay
    return total


def _pay_in_ten_slots(live, act, script):
    pay = Fraction(0)
    while live.round < 100:
        try:
            decision, number = live.decide_run(100)
        except NobodyLeftError:
            break
        pay += number * (HALF, ONE)[decision.arm]
        passes = decision.arm == 1 or decision.phase != "trial" or script.choose([HALF, HALF])
        for each in range(decision.id, decision.id + number):
            live.reward(each, float(passes))
        if act and not passes and not (live.withdrawn or live.paused):
            act(live, "ana", decision.arm)
    return pay
