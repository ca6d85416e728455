"""Reservoirs on pages by brute force, in fractions: every draw, coin and click of real sessions that matters.

In random markets of one to four agents and pages of two to four places, under tests and streams, against any fixed
clicks of the others, with rewards that are prompt or late by a fixed table, and in batches: no copies, no weights and
no withholding pay, on no page, so at no horizon (docs/textbook/slates.md). Mechanisms without a condition of the
theorems are caught.
"""

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import ceil
from random import Random
from typing import NamedTuple
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof._lib.ticks import ONE as ONE_CLICK
from cloneproof.mechanisms.reservoir.page_streams import StreamsState
from cloneproof.mechanisms.reservoir.pages import LaboratoryState, Seat
from support.late_by_hand import Script
from support.sizes import LONG

CASES = 2_000 if LONG else 12
NUMBERS = [number for number in range(CASES) if LONG or number != 3]  # which takes as long as all others together
RATES = [Fraction(number, 4) for number in (0, 0, 1, 2, 3, 4, 4)]
ATTENTIONS = [Fraction(number, 4) for number in (1, 2, 3, 4, 4)]
LAB = "cloneproof.mechanisms.reservoir.pages"
ZERO, ONE = Fraction(0), Fraction(1)
LISTS = {
    1: ([(2,)], [(1,)]),
    2: ([(2, 1), (3, 1), (1, 2), (5, 1)], [(1, 0), (0, 1)]),
    3: ([(2, 1, 1), (2, 2, 1), (3, 1, 1)], [(1, 0, 0), (1, 1, 0), (2, 1, 0)]),
}


class Case(NamedTuple):
    """A mechanism with its numbers, the attention of places, Ana's rates, the others' clicks, delays in pages."""

    name: str
    numbers: dict
    attention: tuple[Fraction, ...]
    originals: tuple[Fraction, ...]
    others: tuple[tuple[int, ...], ...]
    pages: int
    delays: tuple[int, ...] = (0,)
    seed: int = 0
    declared: bool = True  # whether the session knows the attention
    rival_arms: int = 1
    batch: int = 1
    joins: int = 0  # the page before which Ana joins; 0: she is there from the start
    rival_joins: int = 0  # likewise the last of the others

    def pay(self, copies, weighted=False):
        """What Ana expects on each page, on average over which of her originals has which rate."""
        orders, totals = Counter(permutations(self.originals)), [ZERO] * self.pages
        for order, times in orders.items():
            share = Fraction(times, sum(orders.values()))
            script = Script()
            for _ in script.leaves():
                for page, earned in enumerate(self._run(order, copies, weighted, script)):
                    totals[page] += share * script.weight * earned
        return totals

    def _run(self, rates, copies, weighted, script, forced=None):
        counts = [1] * len(rates) if weighted else copies
        items = [rate for rate, count in zip(rates, counts, strict=True) for _ in range(count)]
        rivals = {f"bo {number}": self.rival_arms for number in range(len(self.others))}
        held, registered, joiners = {}, {"ana": len(items)} | rivals, {}
        for name, page in (("ana", self.joins), (list(registered)[-1], self.rival_joins)):
            if page:
                joiners[name] = page, registered.pop(name)
        me = len(registered) if self.joins else 0

        def drawn(stream, draw, pool):
            if len(pool) == 1 or (not self.joins and stream != held.setdefault("ana", stream)):
                return pool[0]
            if (stream, draw) not in held:  # listings of one rate are one choice
                arms, found = {items[arm]: arm for arm in pool}, Counter(items[arm] for arm in pool)
                chances = [Fraction(count, len(pool)) for count in found.values()]
                held[stream, draw] = arms[list(found)[script.choose(chances) if len(found) > 1 else 0]]
            return held[stream, draw]

        def counts_click(stream, page, last, seen):
            """Whether a designated click counts: Ana's is drawn here, with that of the click."""
            state = live.state
            if len(state._coins) <= me or stream != state._coins[me]:
                return True
            chance = Fraction(last) * items[state.arm[me]]
            clicked = bool(chance) and (chance == 1 or bool(script.choose([1 - chance, chance])))
            coming.append(clicked)
            return clicked

        weights = {"ana": copies} if weighted and len(items) > 1 and sum(copies) else None
        places = [float(each) for each in self.attention] if self.declared else len(self.attention)
        coming, clicks, due, earned = [], [list(own) for own in self.others], [], [ZERO] * self.pages
        with patch.multiple(LAB, drawn=drawn, counts_click=counts_click):
            mechanism = cp.mechanism(self.name, **self.numbers)
            live = cp.session(
                mechanism,
                registered,
                self.pages,
                self.seed,
                weights=None if self.joins else weights,
                positions=places,
                batch=self.batch,
            )
            for page in range(self.pages):
                for name, (_, arms) in [own for own in joiners.items() if own[1][0] == page]:
                    live.join(name, arms, weights[name] if weights and name == "ana" else None)
                for entry in [entry for entry in due if entry[0] <= page]:
                    due.remove(entry)
                    live.reward(*entry[1:])
                coming.clear()
                for each in live.decide_slate():
                    value, counts = ZERO, live.pending[each.id].arm_counts
                    if each.agent == "ana":
                        chance = self.attention[each.place - 1] * items[each.arm]
                        earned[page] += chance
                        if forced is not None and page < 3:  # clicks of a test, that in the first place first
                            value = forced >= each.place
                        elif coming:
                            value = coming[0]
                        elif counts and chance:
                            value = chance == 1 or script.choose([1 - chance, chance])
                    elif counts:
                        own = clicks[int(each.agent[3:])]
                        value = own[0]
                        own.append(own.pop(0))
                    late = self.delays[page % len(self.delays)]
                    due.append((page + 1 + late, each.id, float(value)))
        return earned

    def gains(self, *lists, weighted=False):
        """What each list earns more than each original once, on each page."""
        honest = self.pay((1,) * len(self.originals))
        return [[a - b for a, b in zip(self.pay(own, weighted), honest, strict=True)] for own in lists]


def random_case(number):
    """A case, and a list with copies or one that withholds; small enough to be enumerated."""
    dice = Random(number)
    originals, rivals = dice.choice([2, 2, 2, 3]), dice.choice([0, 1, 1, 2, 2, 3])
    attention = tuple(sorted(dice.choices(ATTENTIONS, k=dice.randint(2, 4)), reverse=True))
    agents, views = 1 + rivals, min(1 + rivals, len(attention))
    declared = dice.random() < 0.8
    kind = dice.choice(["tests", "streams"])
    if kind == "streams":
        rotations, blocks = dice.choice([(1, 1), (1, 2), (1, 2), (2, 1), (1, 3)] if views < 3 else [(1, 1), (1, 2)])
        name, numbers = "reservoir-streams", {"rotations": rotations, "blocks": blocks}
        if dice.random() < 0.5:  # the fewest turns between verdicts
            numbers["turns"] = ceil(rotations * sum(attention[:views]) / attention[views - 1])
        horizon = rotations * ((blocks + 1) * agents - 1) + dice.randint(1, 4)
    else:
        rounds, draws = dice.choice([(1, 1), (1, 2), (1, 2), (2, 1), (1, 3)] if views < 3 else [(1, 1), (1, 2)])
        name, numbers = "reservoir", {"rounds": rounds, "draws": draws}
        horizon = rounds * draws * agents + dice.randint(1, 3)
    own = tuple(dice.choices(RATES, k=originals))
    others = tuple(tuple(dice.choices((0, 1), k=8)) for _ in range(rivals))
    delays = dice.choice([(0,), (0,), (2,), (0, 1, 3)])
    horizon += 2 * max(delays) if kind == "tests" else 0
    copied, withheld = LISTS[originals]
    seed = dice.randrange(100)
    batch = dice.choice([1, 2, 3, 4] if kind == "tests" else [1, rotations])
    horizon += batch - 1 if kind == "tests" else 0
    case = Case(name, numbers, attention, own, others, horizon, delays, seed, declared, 1, batch)
    return case, dice.choice(copied if number % 2 else withheld)


def joining_case(number):
    """A case in which Ana, or another one, joins while it runs; and a list."""
    dice = Random(-1 - number)
    mine, rivals = dice.random() < 0.6, dice.choice([2, 2, 3])
    agents = rivals if mine else 1 + rivals - 1
    attention = tuple(sorted(dice.choices(ATTENTIONS, k=2), reverse=True))
    if dice.random() < 0.5:
        agents = rivals = 3
        blocks = 1
        name, numbers = "reservoir-streams", {"rotations": 1, "blocks": blocks}
        latest = (blocks + 1) * agents
        horizon = latest + blocks * (agents + 1) + dice.randint(1, 3)
    else:
        rounds, draws = dice.choice([(1, 1), (1, 2)])
        name, numbers = "reservoir", {"rounds": rounds, "draws": draws}
        latest = rounds * draws * agents + 2
        horizon = rounds * draws * (agents + 2) + dice.randint(2, 3)
    delays = dice.choice([(0,), (0,), (1,)])
    page, own = dice.randint(1, latest), tuple(dice.choices(RATES, k=2))
    others = tuple(tuple(dice.choices((0, 1), k=8)) for _ in range(rivals))
    case = Case(name, numbers, attention, own, others, horizon + 2 * max(delays), delays, dice.randrange(100))
    copied, withheld = LISTS[2]
    joined = case._replace(**{"joins" if mine else "rival_joins": page})
    return joined, dice.choice(copied if number % 2 else withheld)


def over_lots(case):
    """What Ana expects in all, on average over the orders of the agents that are there from the start."""
    lots = list(permutations(range(len(case.others) + (not case.joins))))
    total = ZERO
    for lot in lots:
        with patch(f"{LAB}.word", lambda stream, key, lot=lot: lot.index(key)):
            total += sum(case.pay((1, 1)))
    return total / len(lots)


def test_joiners_gain_by_no_list_and_by_no_waiting_and_change_nobodys_promise():
    later, lost = 0, 0
    for number in range(CASES // 2 if LONG else 4):
        case, copies = joining_case(number)
        (found,) = case.gains(copies, weighted=number % 5 == 0)
        assert max(found) <= 0, (number, case, copies, found)
        lost += min(found) < 0
        if case.joins and (LONG or not later):
            assert over_lots(case) <= over_lots(case._replace(joins=0)), (number, case)
            later += 1
    assert later
    assert lost


def test_no_list_pays_more_on_any_page_than_each_original_once():
    lost, batches, kinds = 0, 0, Counter()
    for number in NUMBERS:
        case, copies = random_case(number)
        (found,) = case.gains(copies, weighted=number % 5 == 0)
        assert max(found) <= 0, (number, case, copies, found)
        lost += min(found) < 0
        kinds[case.name] += 1
        batches += case.batch > 1
    assert lost > CASES / 4
    assert len(kinds) == 2
    assert batches > CASES / 4


def collected(self, allocation, ticks, coin):
    """Clicks are charged a block late."""
    own = vars(self).setdefault("clicks", {})
    own[allocation.agent] = own.get(allocation.agent, 0) + bool(coin)


def late_verdict(self, i):
    """A slot plays on until its failure is known, one block late; the last block counts at once."""
    waiting = vars(self).setdefault("waiting", {}).setdefault(i, [])
    waiting.append(vars(self).setdefault("clicks", {}).pop(i, 0))
    self.verdicts[i] += 1
    self.ranking = []
    while len(waiting) > (self.verdicts[i] < self.blocks):
        self.score[i] += waiting.pop(0) - 1
        if not self.score[i]:
            self.score[i] = 1
            self._show_draw(i, self.draw[i] + 1)
            waiting.clear()


def stake_of_two(self, i):
    """A slot starts with two clicks."""
    self.score[i] -= self.verdicts[i] > 0
    self.verdicts[i] += 1
    self.ranking = []
    if not self.score[i]:
        self.score[i] = 2
        self._show_draw(i, self.draw[i] + 1)


def unaligned(self, seat, place, clock):
    """What is shown changes only with every second view of one's own."""
    i, shown = seat.agent, vars(self).setdefault("shown", {})
    number, arm = shown.get(i, (0, None))
    arm = self.arm[i] if number % 2 == 0 or seat.phase == "award" else arm
    shown[i] = number + 1, arm
    return honest_shown(self, seat, place, clock)._replace(arm=arm)


def ties_by_arms(self):
    """Of equal scores that of the agent with more listings comes first."""
    arms = self.registration.arms
    self.ranking = sorted(self.order, key=lambda i: (-self.score[i], -arms[i]))


honest_shown = StreamsState._shown
ANA_FIRST, RIVAL_FIRST = 0, 1  # seeds, by who is first in the order of two


def one_place(rotations, blocks, rate):
    """Items of 0 and a rate, one place, a rival that is never clicked and wins ties; one page after the laboratory."""
    numbers, pages = {"rotations": rotations, "blocks": blocks}, rotations * (2 * blocks + 1) + 1
    return Case("reservoir-streams", numbers, (ONE,), (ZERO, rate), ((0,),), pages, seed=RIVAL_FIRST)


PLANTED = {
    "a slot plays on until its failure is known": (
        patch.multiple(StreamsState, _verdict=late_verdict, add=collected),
        one_place(2, 4, Fraction(1, 10)),
        {(2, 1): Fraction(151, 72_000_000), (5, 1): Fraction(151, 18_000_000), (1, 0): Fraction(151, 8_000_000)},
    ),
    "a stake of two": (
        patch.object(StreamsState, "_verdict", stake_of_two),
        one_place(1, 3, Fraction(1, 4)),
        {(2, 1): Fraction(11, 9216), (5, 1): Fraction(11, 2304), (1, 0): Fraction(11, 1024)},
    ),
    "refreshes not aligned with blocks": (
        patch.object(StreamsState, "_shown", unaligned),
        one_place(3, 2, Fraction(1, 10)),
        {(2, 1): Fraction(2603, 90_000_000), (5, 1): Fraction(2603, 22_500_000), (1, 0): Fraction(2603, 10_000_000)},
    ),
    "ties by the number of arms": (
        patch.object(LaboratoryState, "_rank", ties_by_arms),
        Case(
            "reservoir",
            {"rounds": 1, "draws": 1},
            (ONE, ONE / 2),
            (ZERO, ONE),
            ((1, 0, 0, 0),),
            3,
            seed=RIVAL_FIRST,
            rival_arms=2,
        ),
        {(2, 1): Fraction(1, 8)},
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_without_a_condition_of_the_theorems_lists_pay(name):
    """On the page after the laboratory, as docs/textbook/slates.md says; in the mechanism as it is none does."""
    planted, case, expected = PLANTED[name]
    with planted:
        assert [found[-1] for found in case.gains(*expected)] == list(expected.values())
    (usual,) = case.gains(next(iter(expected)))
    assert max(usual) <= 0


def contest(self, d, counts=True):
    """Places by a UCB index that counts the laboratory's clicks too, in batches of three pages; all clicks count."""
    seen = vars(self).setdefault("seen", [sum(self.attention[: self.filled])] * self.agents)
    if vars(self).setdefault("page", 0) % 3 == 0:
        index = [self.score[i] / ONE_CLICK / seen[i] + (8 / seen[i]) ** 0.5 for i in range(self.agents)]
        self.ranking = sorted(self.order, key=lambda i: -index[i])
    self.page += 1
    for place, i in enumerate(self.ranking[: self.filled]):
        seen[i] += self.attention[place]
    return [Seat(i, counts=True, phase="trial") for i in self.ranking[: self.filled]]


def test_a_contest_that_counts_the_clicks_of_the_laboratory_pays_copies():
    """Passing a weak rival early keeps its index inflated: a champion of two clicks earns less than one of one.

    Ana's items have rates 0 and 1, tests have a view in places of attention 1 and 1/8, and 24 draws are tested: the
    champion has two clicks unless no draw of the good item is clicked in the second place.
    """
    attention, draws = (ONE, Fraction(1, 8)), 24
    order = next(
        seed
        for seed in range(99)
        if cp.session(cp.mechanism("reservoir", rounds=1, draws=1), {"a": 1, "b": 1, "c": 1}, 9, seed, positions=2)
        .begun[None]
        .state.order
        == [0, 1, 2]
    )

    def earned(clicks):
        """What the good item earns on six pages after a test with so many clicks, by the session."""
        case = Case("reservoir", {"rounds": 1, "draws": 1}, attention, (ONE,), ((0,), (1,)), 9, seed=order)
        script, total = Script(), ZERO
        for _ in script.leaves():
            pages = case._run((ONE,), (1,), False, script, forced=clicks)
            total += script.weight * sum(pages[3:])
        return total

    def gain(copies):
        one, two = earned(1), earned(2)
        shares = [Fraction(count, sum(copies)) for count in copies]
        lists = [(shares, 1), ([Fraction(1, 2)] * 2, -1)]
        return sum(
            sign * (two - (two - one) * (1 - w / 8) ** draws - one * (1 - w) ** draws) / 2
            for own, sign in lists
            for w in own
        )

    assert gain((2, 1)) < 0
    assert earned(2) >= earned(1)
    with patch.object(LaboratoryState, "_by_score", contest):
        assert earned(2) == 3 < earned(1)
        assert gain((3, 1)) > gain((2, 1)) > 0
