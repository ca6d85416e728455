"""Segments by brute force, in fractions: every draw and every coin of real sessions (docs/textbook/segments.md).

In random markets with fixed arrivals, with rewards that are prompt or late by a fixed table, no copies and no
withholding pay, in no segment. A mechanism that pools segments is caught by the same cases.
"""

from fractions import Fraction
from itertools import permutations
from random import Random
from typing import NamedTuple
from unittest.mock import patch

import cloneproof as cp
from support.late_by_hand import Script, segment_payoffs
from support.sizes import LONG

CASES = 2_000 if LONG else 8
PAY_IF_POOLED = (26, 71, 85)  # the numbers of cases, with withholding and with copies
RATES = [Fraction(number, 4) for number in (0, 0, 0, 1, 2, 3, 4, 4, 4)]
RIVALS_RATES = [Fraction(0), Fraction(1)]
LISTS = {
    2: ([(2, 1), (3, 1), (1, 2)], [(1, 0)]),
    3: ([(2, 1, 1), (2, 2, 1), (3, 1, 1)], [(1, 0, 0), (1, 1, 0), (2, 1, 0)]),
}


class Case(NamedTuple):
    """A mechanism, the rates of Ana's originals and of a rival's arms by segment, who arrives when, and delays."""

    mechanism: cp.Mechanism
    originals: tuple[dict[str, Fraction], ...]
    rival: tuple[dict[str, Fraction], ...]
    arrivals: tuple[str, ...]
    delays: tuple[int, ...]
    seed: int

    def pay(self, copies, pooled=False):
        """What Ana expects in each segment, on average over which of her originals has which rates."""
        segments, orders = sorted(set(self.arrivals)), set(permutations(range(len(copies))))
        totals = dict.fromkeys(segments, Fraction(0))
        for order in orders:
            own = [self.originals[a] for a, count in zip(order, copies, strict=True) for _ in range(count)]
            arms = {"ana": own} | ({"bo": self.rival} if self.rival else {})
            means = {x: {name: [arm[x] for arm in each] for name, each in arms.items()} for x in segments}
            found = segment_payoffs(self.mechanism, means, self.arrivals, self.delay, self.seed, pooled)
            for x in segments:
                totals[x] += found[x]["ana"] / len(orders)
        return totals

    def delay(self, round_, agent, reward):
        return self.delays[round_ % len(self.delays)]

    def gains(self, copies, pooled=False):
        """What a list earns more than each original once, in each segment."""
        honest = self.pay((1,) * len(copies), pooled)
        return {x: pay - honest[x] for x, pay in self.pay(copies, pooled).items()}


def random_case(number):
    """A case, and a list with copies or one that withholds; small enough to be enumerated."""
    dice = Random(number)
    originals, segments = dice.choice([2, 2, 3]), "ABC"[: dice.choice([2, 2, 2, 3])]
    draws, pulls = dice.choice([(1, 1), (1, 2), (2, 1), (2, 1), (3, 1)][: 5 if originals == 2 else 3])
    passes = {"threshold": dice.randint(1, pulls)}
    mechanism = cp.mechanism("reservoir", rounds=pulls, draws=draws, **dice.choice([{"choose": "best"}, passes]))

    def arms(count, rates):
        return tuple({x: dice.choice(rates) for x in segments} for _ in range(count))

    own, rival = arms(originals, RATES), arms(dice.choice([0, 1]), RIVALS_RATES)
    arrivals = [*segments, *dice.choices(segments, k=dice.randint(3, 8))]
    delays = dice.choice([(0,), (0,), (2,), (0, 1, 3), (3, 0)])
    case = Case(mechanism, own, rival, tuple(dice.sample(arrivals, len(arrivals))), delays, dice.randrange(100))
    copied, withheld = LISTS[originals]
    return case, dice.choice(copied if number % 2 else withheld)


def test_no_list_pays_more_in_any_segment_than_each_original_once():
    lost = 0
    for number in range(CASES):
        case, copies = random_case(number)
        gains = case.gains(copies)
        assert max(gains.values()) <= 0, (case, copies, gains)
        lost += min(gains.values()) < 0
    assert lost > CASES / 4


def test_a_mechanism_that_pools_segments_is_caught():
    """One search for all, fed by the same arrivals: these cases pay in total."""
    for case, copies in map(random_case, PAY_IF_POOLED):
        assert sum(case.gains(copies, pooled=True).values()) > 0 >= max(case.gains(copies).values())


def pleased(copies, draws_apart=False):
    """Pay of two items, pleasing all or nobody: a user of B comes if the one of A was pleased; one draw, no test."""
    mechanism, script, total = cp.mechanism("reservoir", rounds=1, draws=1, threshold=1), Script(), Fraction(0)
    for rates in permutations((0, 1)):
        items = [rate for rate, count in zip(rates, copies, strict=True) for _ in range(count)]
        for _ in script.leaves():
            held = {}

            def slots(rule, stream, pool, held=held):
                if draws_apart or stream not in held:
                    held[stream] = pool[script.choose([Fraction(1, len(pool))] * len(pool))]
                return [held[stream]]

            with patch("cloneproof.mechanisms.reservoir.rank.agent_slots", slots):
                live, paid = cp.session(mechanism, {"ana": len(items)}, 2, segments={"A": 0.5, "B": 0.5}), 0
                for segment in "AB":
                    if segment == "A" or paid:
                        paid += items[live.decide(segment).arm]
            total += script.weight * paid / 2
    return total


def test_draws_are_shared_so_that_arrivals_that_depend_on_rewards_pay_no_copies():
    lists = ((1, 1), (2, 1), (1, 0))
    assert [pleased(copies) for copies in lists] == [1, 1, 1]
    assert [pleased(copies, draws_apart=True) for copies in lists] == [Fraction(3, 4), Fraction(7, 9), 1]
