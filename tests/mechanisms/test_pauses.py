"""Pauses: a paused arm is not shown, its tests wait, other draws of its agent go on; and what copies then gain.

`Slots` is the rule in fractions, written a second time: the slot of lowest rank whose arm is not paused is shown.
"""

import random
from fractions import Fraction
from itertools import permutations, product
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof.errors import NobodyLeftError, PausedError
from support.sizes import LONG

ONE, HALF, QUARTER = Fraction(1), Fraction(1, 2), Fraction(1, 4)
PAIRS = [(ONE, HALF), (HALF, 0), (3 * QUARTER, QUARTER), (ONE, 0)]


class Slots:
    """Slots in the order of their timetable: first pass or best of all after `pulls`, or bars of 1/2 and stake 1."""

    def __init__(self, kind, pulls, slots):
        self.kind, self.pulls, self.slots = kind, pulls, slots

    def rank(self, pulls, total, failures, left):
        if self.kind == "bars":
            return failures, 0
        tested = pulls >= self.pulls and not (self.kind == "first pass" and total == self.pulls)
        return int(tested), -total * tested

    def show(self, state, paused):
        shown = [k for k, slot in enumerate(self.slots) if slot not in paused]
        return min(shown, key=lambda k: (self.rank(*state[k]), k), default=None)

    def after(self, state, k, reward):
        pulls, total, failures, left = state[k]
        if self.kind == "bars":
            left += 2 * reward - 1
            failures, left = (failures, left) if left else (failures + 1, 1)
        if self.kind == "bars" or pulls < self.pulls:
            pulls, total = pulls + 1, total + reward
        return (*state[:k], (pulls, total, failures, left), *state[k + 1 :])

    @property
    def start(self):
        return ((0, 0, 0, 1),) * len(self.slots)

    def pay(self, means, paused, rounds):
        """What Ana expects; `paused` has the arms that are paused in each round, or says them after a history."""

        def rest(number, state, history):
            gone = paused(number, history)
            k = self.show(state, gone) if number < rounds else None
            if k is None:
                return rest(number + 1, state, history) if number < rounds else 0
            agent, mean = self.slots[k][0], means[self.slots[k]]
            return sum(
                chance
                * (reward * (agent == "ana") + rest(number + 1, self.after(state, k, reward), (*history, (k, reward))))
                for reward, chance in ((1, mean), (0, 1 - mean))
                if chance
            )

        return rest(0, self.start, ())


def expected(kind, pulls, draws, means, copies, rival, rounds, paused, by_name=False):
    """Averaged over which original has which mean, what Ana's slots hold, and who is first."""
    names = [original for original, count in enumerate(copies) for _ in range(count)]
    pay, cases = Fraction(0), 0
    for order, held, first in product(
        permutations(means), product(range(len(names)), repeat=draws), (0, 1) if rival is not None else (0,)
    ):
        own = [("ana", name if by_name else names[name]) for name in held]
        turns = [[slot] if rival is None else [slot, ("bo", 0)][:: 1 - 2 * first] for slot in own]
        worth = {("ana", name if by_name else original): order[original] for name, original in enumerate(names)}
        pay += Slots(kind, pulls, [slot for turn in turns for slot in turn]).pay(
            worth | {("bo", 0): rival}, paused, rounds
        )
        cases += 1
    return pay / cases


KINDS = [("first pass", 1, 2), ("best", 1, 2), ("bars", 1, 2), *([("first pass", 2, 2), ("first pass", 1, 3)] * LONG)]
ROUNDS = 3
DOWN = list(product((0, 1), repeat=ROUNDS))


def apart(one, other, rival=()):
    """Rounds in which Ana's first original is paused, her second, and the rival."""
    return lambda number, _: {
        slot
        for slot, down in ((("ana", 0), one), (("ana", 1), other), (("bo", 0), rival))
        if number < len(down) and down[number]
    }


@pytest.mark.parametrize("kind", KINDS)
def test_copies_gain_nothing_where_all_of_an_agent_is_paused_by_the_clock(kind):
    """LONG: 7,680 cases, none above 0."""
    rivals = [(), *([tuple(int(n == m) for n in range(ROUNDS)) for m in range(ROUNDS)] * LONG)]
    for down, rival_down, means, rival in product(
        DOWN if LONG else DOWN[2:6], rivals, PAIRS if LONG else PAIRS[:1], (HALF, None, *([3 * QUARTER] * LONG))
    ):
        paused = apart(down, down, rival_down)
        honest = expected(*kind, means, (1, 1), rival, ROUNDS, paused)
        for copies in ((2, 1), (1, 0), *([(1, 3), (2, 2)] * LONG)):
            assert expected(*kind, means, copies, rival, ROUNDS, paused) <= honest


@pytest.mark.parametrize("kind", KINDS)
def test_copies_gain_nothing_where_originals_are_paused_whichever_is_better(kind):
    """Each pair of pauses either way round, as she does not know which original will be down."""
    for one, other, means, rival in product(
        DOWN if LONG else DOWN[1:3], DOWN[3:], PAIRS if LONG else PAIRS[:1], (HALF, None)
    ):

        def either(copies, one=one, other=other, means=means, rival=rival):
            return sum(
                expected(*kind, means, copies, rival, ROUNDS, apart(*pair)) for pair in ((one, other), (other, one))
            )

        assert max(either((2, 1)), either((1, 0))) <= either((1, 1))


def test_who_knows_which_original_will_be_down_registers_the_other_more_often():
    """As weights would say it: what she knows, not what she copies, is what pays."""
    paused = apart((0, 1, 1), ())
    pay = [expected("first pass", 1, 2, (ONE, HALF), copies, HALF, 3, paused) for copies in ((1, 1), (1, 2), (0, 1))]
    assert pay == sorted(pay)
    assert pay[0] < pay[2]


def test_names_that_go_down_by_themselves_are_worth_copying():
    """One original of 3/4 beside 1/2, four rounds; in rounds 2 and 3 each name is down with chance 1/2."""
    pays = []
    for names in (1, 2, 3):
        pays.append(Fraction(0))
        for down in product((0, 1), repeat=names):
            gone = {("ana", name) for name in range(names) if down[name]}
            pays[-1] += expected(
                "first pass", 1, 2, (3 * QUARTER,), (names,), HALF, 4,
                lambda number, _, gone=gone: gone if number in (1, 2) else set(), by_name=True,
            ) / 2**names  # fmt: skip
    assert pays == [Fraction(687, 512), Fraction(351, 256), Fraction(707, 512)]


def test_a_pause_of_her_own_after_a_failure_pays():
    """Alone, three draws, five rounds: the item that has failed is paused, so that later draws hold the other one."""

    def own(number, history):
        return {slots[k] for k, reward in history if not reward}

    gains = []
    for paused in (lambda *_: set(), own):
        pay = Fraction(0)
        for order, held in product(((ONE, HALF), (HALF, ONE)), product((0, 1), repeat=3)):
            slots = [("ana", original) for original in held]
            pay += Slots("first pass", 1, slots).pay({("ana", i): mean for i, mean in enumerate(order)}, paused, 5) / 16
        gains.append(pay)
    assert gains == [Fraction(259, 64), Fraction(529, 128)]


MECHANISMS = {
    "first pass": cp.mechanism("reservoir", rounds=2, draws=3, threshold=2),
    "best": cp.mechanism("reservoir", rounds=2, draws=3, choose="best"),
    "bars": cp.mechanism("reservoir-bars", bars=0.5, stake=0.5, draws=3),
}


def played(kind, seed):
    """Whom a session serves under random pauses, and whom `Slots` would serve."""
    dice, live = random.Random(f"{kind} {seed}"), cp.session(MECHANISMS[kind], {"ana": 3, "bo": 2}, 60, seed=seed)
    order, names = sorted(range(6), key=live.state.level.order.__getitem__), ("ana", "bo")
    rule = Slots(kind, 2, [(names[i], arm) for i, arm in (live.state.candidates[k] for k in order)])
    state, shown = rule.start, []
    for _ in range(40):
        arm = (dice.choice(names), dice.choice([0, 1, None]))
        (live.pause if dice.random() < 0.5 else live.resume)(*arm)
        gone = {(name, each) for name, arms in live.paused.items() for each in arms}
        k = rule.show(state, gone)
        if gone >= {("ana", 0), ("ana", 1), ("ana", 2), ("bo", 0), ("bo", 1)}:
            with pytest.raises(PausedError, match="paused; resume"):
                live.decide()
            continue
        decision = live.decide()
        assert (decision.agent, decision.arm) not in gone
        shown.append(((decision.agent, decision.arm), None if k is None else rule.slots[k]))
        reward = dice.randrange(2)
        live.reward(decision.id, float(reward))
        if decision.phase == "waiting":
            assert k is None
            shown[-1] = (None, None)
        else:
            state = rule.after(state, k, reward)
    return shown


@pytest.mark.parametrize("kind", MECHANISMS)
def test_the_slot_of_lowest_rank_that_is_not_paused_is_shown(kind):
    neutral = 0
    for seed in range(60 if LONG else 12):
        shown = played(kind, seed)
        assert [one for one, _ in shown] == [other for _, other in shown]
        neutral += (None, None) in shown
    assert neutral


def test_a_rank_that_is_forgotten_in_a_pause_is_caught():
    def forgets(self, gone):
        for k in gone:
            self.rank[k], self.purse[k], self.arrived[k], self.decided[k] = self.judge.start, self.judge.purse, 0, 0
        self.gone = gone
        self._queue_anew()

    with patch("cloneproof.mechanisms.reservoir.rank.SlotLevel.leave_out", forgets), pytest.raises(AssertionError):
        test_the_slot_of_lowest_rank_that_is_not_paused_is_shown("best")


def test_a_round_that_is_refused_changes_nothing():
    live = cp.session(MECHANISMS["first pass"], {"ana": 2, "bo": 1}, 100, seed=3)
    for _ in range(3):
        live.reward(live.decide().id, 0.0)
    live.withdraw("bo", 0)
    live.pause("ana")
    before = live.to_json()
    for _ in range(3):  # the slot of bo that would be reached holds what was withdrawn
        with pytest.raises(PausedError):
            live.decide()
    assert live.to_json() == before
    assert live.resume("ana", 1)
    assert not live.resume("ana", 1)
    assert live.paused == {"ana": [0]}
    assert live.decide().agent == "ana"
    live.resume("ana")
    live.withdraw("ana", 0)
    live.withdraw("ana", 1)
    with pytest.raises(NobodyLeftError):
        live.decide()


def test_chances_are_not_told_where_a_hidden_order_decides():
    on_slots, usual = (cp.session(one, {"ana": 2, "bo": 2}, 100) for one in (MECHANISMS["best"], cp.mechanism("ucb1")))
    for live in (on_slots, usual):
        live.reward(live.decide().id, 1.0)
        live.pause("bo", 0)
        live.decide()
    assert on_slots.probability is None
    assert usual.probability == pytest.approx(1 / 2)
