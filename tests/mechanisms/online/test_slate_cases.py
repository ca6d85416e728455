"""Slates by brute force, in fractions: every draw and every click of real sessions (docs/textbook/slates.md).

In random markets of one to four agents and pages of two to four places, against any fixed clicks of the others, with
rewards that are prompt or late by a fixed table: no copies and no withholding pay, on no page, so at no horizon.
Mechanisms that give an agent two places, test in a better place what scores so far, test a larger list more often
or leave out tests of what stands in front are caught.
"""

from contextlib import nullcontext
from fractions import Fraction
from itertools import accumulate, permutations
from random import Random
from typing import NamedTuple
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof.mechanisms.online.slate import LaboratoryState
from support.late_by_hand import Script
from support.sizes import LONG

CASES = 2_000 if LONG else 8
RATES = [Fraction(number, 4) for number in (0, 0, 1, 2, 3, 4, 4)]
ATTENTIONS = [Fraction(number, 4) for number in (1, 2, 3, 4, 4)]
HALF, ONE, ZERO = Fraction(1, 2), Fraction(1), Fraction(0)
ANA_FIRST, BO_FIRST = 0, 1  # seeds, by whose draw is tested first
LISTS = {
    2: ([(2, 1), (3, 1), (1, 2)], [(1, 0)]),
    3: ([(2, 1, 1), (2, 2, 1), (3, 1, 1)], [(1, 0, 0), (1, 1, 0), (2, 1, 0)]),
}


class Case(NamedTuple):
    """Pulls, draws, the attention of places, Ana's rates, the others' clicks in tests, delays in pages.

    If planted to be so, as many draws of an agent are tested as it has listings.
    """

    pulls: int
    draws: int
    attention: tuple[Fraction, ...]
    originals: tuple[Fraction, ...]
    others: tuple[tuple[int, ...], ...]
    delays: tuple[int, ...]
    seed: int
    by_listings: bool = False

    @property
    def pages(self):
        """All tests, the rewards that are late, and a page more."""
        return (1 + len(self.others)) * self.pulls * self.draws + max(self.delays) + 1

    def pay(self, copies):
        """What Ana expects on each page, on average over which of her originals has which rate."""
        orders, totals = set(permutations(self.originals)), [Fraction(0)] * self.pages
        for order in orders:
            items = [rate for rate, count in zip(order, copies, strict=True) for _ in range(count)]
            script, more = Script(), True
            while more:
                for page, earned in enumerate(self._run(items, script)):
                    totals[page] += script.weight * earned / len(orders)
                more = script.advance()
        return totals

    def _run(self, items, script):
        registered = {"ana": len(items)} | {f"bo {number}": 1 for number in range(len(self.others))}
        drawn = list(registered.values()) if self.by_listings else [self.draws] * len(registered)

        def slots(rule, stream, pool):
            count = drawn[0 if len(pool) == len(items) else 1]
            return [pool[script.choose([Fraction(1, len(pool))] * len(pool))] for _ in range(count)]

        def timetable(draws, order, joined):
            return [(i, draw) for draw in range(max(drawn)) for i in order if draw < drawn[i]]

        mechanism = cp.mechanism("reservoir", rounds=self.pulls, draws=self.draws, choose="best")
        with patch.multiple("cloneproof.mechanisms.online.state", agent_slots=slots, timetable=timetable):
            live = cp.session(mechanism, registered, self.pages, seed=self.seed, positions=len(self.attention))
        due, clicks, earned = [], [list(own) for own in self.others], [Fraction(0)] * self.pages
        for page in range(self.pages):
            for entry in [entry for entry in due if entry[0] <= page]:
                due.remove(entry)
                live.reward(*entry[1:])
            for each in live.decide_slate():
                value = Fraction(0)
                if each.agent == "ana":
                    mean = sum(items) / Fraction(len(items)) if each.phase == "waiting" else items[each.arm]
                    value = mean * self.attention[each.place - 1]
                    if each.phase == "trial" and 0 < value < 1:
                        value = Fraction(script.choose([1 - value, value]))
                    earned[page] += value
                elif each.phase == "trial":
                    value = clicks[int(each.agent[3:])].pop()
                late = self.delays[page % len(self.delays)]
                due.append((page + 1 + late, each.id, float(value) if each.phase == "trial" else 0.0))
        return earned


def random_case(number):
    """A case, and a list with copies or one that withholds; small enough to be enumerated."""
    dice = Random(number)
    originals, rivals = dice.choice([2, 2, 3]), dice.choice([0, 1, 1, 2, 3])
    pulls, draws = dice.choice([(1, 1), (1, 2), (2, 1), (1, 2), (1, 3)] if originals == 2 else [(1, 1), (1, 2)])
    attention = sorted(dice.choices(ATTENTIONS, k=dice.randint(2, 4)), reverse=True)
    own, tests = tuple(dice.choices(RATES, k=originals)), pulls * draws
    others = tuple(tuple(dice.choices((0, 1), k=tests)) for _ in range(rivals))
    delays = dice.choice([(0,), (0,), (0,), (2,), (0, 1, 3)])
    copied, withheld = LISTS[originals]
    case = Case(pulls, draws, tuple(attention), own, others, delays, dice.randrange(100))
    return case, dice.choice(copied if number % 2 else withheld)


def gains(case, copies):
    """What a list earns more than each original once, on each page."""
    return [a - b for a, b in zip(case.pay(copies), case.pay((1,) * len(copies)), strict=True)]


def test_no_list_pays_more_on_any_page_than_each_original_once():
    lost = 0
    for number in range(CASES):
        case, copies = random_case(number)
        found = gains(case, copies)
        assert max(found) <= 0, (case, copies, found)
        lost += min(found) < 0
    assert lost > CASES / 4


def two_places(self):
    """Rank draws, and not agents: an agent may stand in front twice."""
    level = self.level
    finished = [k for k in range(len(self.places)) if level.arrived[k] == level.explore]
    self.ranking = sorted(finished, key=lambda k: (-level.total[k], k))
    self.waiting = [i for i in self.turns.order if i not in {self.places[k][0] for k in finished}]


def better_place(self, page):
    """Test in the first place what has scored so far, or whose agent has; who was there has the last one."""
    shown = honest_page(self, page)
    agent, total = shown[-1].agent, self.level.total
    if shown[-1].phase == "trial" and any(total[k] for k, (i, _) in enumerate(self.places) if i == agent):
        shown[0], shown[-1] = shown[-1], shown[0]
    return shown


def no_test_of_what_is_shown(self, page):
    """Leave a test out if its listing stands in front."""
    shown = honest_page(self, page)
    if (shown[-1].agent, shown[-1].arm) in [(each.agent, each.arm) for each in shown[:-1]]:
        shown[-1] = None
    return shown


honest_page = LaboratoryState.next_page
PLANTED = {
    "two places": (
        patch.object(LaboratoryState, "leave_out", two_places),
        Case(2, 2, (ONE, ONE), (ONE, HALF), ((0, 0, 0, 1),), (0,), ANA_FIRST),
        (8, Fraction(1, 384)),
    ),
    "a better place": (
        patch.object(LaboratoryState, "next_page", better_place),
        Case(1, 2, (ONE, HALF), (ZERO, ONE), ((0, 0),), (0,), ANA_FIRST),
        (2, Fraction(1, 144)),
    ),
    "more tests of a longer list": (
        nullcontext(),
        Case(1, 2, (ONE, ONE), (ZERO, ONE), ((0, 0),), (0,), BO_FIRST, by_listings=True),
        (3, Fraction(17, 36)),
    ),
    "no test of what is shown": (
        patch.object(LaboratoryState, "next_page", no_test_of_what_is_shown),
        Case(1, 2, (ONE, ONE), (ZERO, ONE), ((0, 0),), (0,), ANA_FIRST),
        (2, Fraction(1, 12)),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_other_mechanisms_pay_copies(name):
    """Copies (2, 1) gain on a page and until then, as docs/textbook/slates.md says; not by the laboratory."""
    planted, case, (page, gain) = PLANTED[name]
    with planted:
        found = gains(case, (2, 1))
    assert found[page] == gain
    assert max(gains(case._replace(by_listings=False), (2, 1))) <= 0


@pytest.mark.parametrize("name", [name for name in PLANTED if LONG or name == "a better place"])
def test_random_cases_catch_them_too(name):
    planted, hand_made, _ = PLANTED[name]
    found = []
    for number in range(400 if LONG else 5):
        case, copies = random_case(number)
        if sum(copies) <= 4:
            with planted:
                found.append(max(accumulate(gains(case._replace(by_listings=hand_made.by_listings), copies))) > 0)
    assert any(found)
