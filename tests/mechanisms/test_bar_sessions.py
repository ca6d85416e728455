"""Bars on slots: the session against the chain of its chapter in fractions, against the kernel, and with faults."""

import random
from fractions import Fraction
from functools import partial
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._lib.randomness import uniform
from cloneproof._lib.schedules import bar_of
from cloneproof.evaluation.reference import runs_of
from cloneproof.mechanisms.reservoir import rank
from cloneproof.mechanisms.reservoir.kernel import slots
from cloneproof.mechanisms.reservoir.rank import SlotLevel
from support.reference_runs import played

ARMS = {"ana": 3, "bo": 1}
MEANS = {("ana", 0): Fraction(1, 5), ("ana", 1): Fraction(2, 3), ("ana", 2): Fraction(1, 2), ("bo", 0): Fraction(3, 7)}
WHOLE = [({"bars": 0.5, "stake": 1, "draws": 2}, 7), ({"bars": 0.25, "stake": 0.5, "draws": 1}, 7)]


def opened(made, seed, **options):
    return cp.session(made, ARMS, 40, seed=seed, rewards="bernoulli", **options)


def chain(means, bar, rounds):
    """What is earned in `rounds` rounds by slots in their order, as the chapter has it: by recursion, in fractions."""

    def value(slots, left):
        if not left:
            return Fraction(0)
        k = min(range(len(slots)), key=lambda j: slots[j][0])  # the first in the order that has failed least often
        failures, balance = slots[k]
        total = means[k]
        for click, chance in ((1, means[k]), (0, 1 - means[k])):
            points = balance - 1 + click * bar.whole
            after = (failures, points) if points else (failures + 1, bar.stake)
            total += chance * value((*slots[:k], after, *slots[k + 1 :]), left - 1)
        return total

    return value(tuple((0, bar.stake) for _ in means), rounds)


def by_session(made, seed, rounds):
    """The same of a session, by all sequences of rewards; and its slots in their order."""
    total = Fraction(0)
    for rewards in product((0, 1), repeat=rounds):
        live, chance, earned = opened(made, seed), Fraction(1), 0
        for reward in rewards:
            decision = live.decide()
            mean = MEANS[decision.agent, decision.arm]
            chance *= mean if reward else 1 - mean
            earned += reward
            live.reward(decision.id, reward)
        total += chance * earned
    state = live.state
    order = sorted(range(len(state.candidates)), key=state.level.order.__getitem__)
    names = list(ARMS)
    return total, [MEANS[names[state.candidates[k][0]], state.candidates[k][1]] for k in order]


def agrees(options, rounds, seed):
    made = cp.mechanism("reservoir-bars", **options)
    earned, means = by_session(made, seed, rounds)
    return earned == chain(means, made.arm.bar, rounds)


@pytest.mark.parametrize(("options", "rounds"), WHOLE)
def test_a_session_earns_what_the_chain_does_in_fractions(options, rounds):
    assert all(agrees(options, rounds, seed) for seed in range(3))


def again_at_once(bar):
    """A fault: a slot that has failed starts again before the others."""
    made = failures(bar)
    return made._replace(after=lambda *slot: (0, made.after(*slot)[1]))


def stake_by_arms(self, order, openings, keys, kept):
    """A fault: an agent of several arms, as Ana, has a larger stake."""
    plain(self, order, openings, keys, kept)
    self.purse = [bar_of(0.5, 2 if key >> 32 == 0 else 1).stake for key in keys]


def order_by_arms(self, order, openings, keys, kept):
    """A fault: agents of more arms come first."""
    plain(self, keys, openings, keys, kept)


failures, plain = rank.failures, SlotLevel.seat


@pytest.mark.parametrize(
    ("place", "name", "fault"), [(rank, "failures", again_at_once), (SlotLevel, "seat", stake_by_arms)]
)
def test_the_chain_catches_a_fault_of_the_session(place, name, fault):
    with patch.object(place, name, fault):
        assert not all(agrees(*WHOLE[0], seed) for seed in range(3))


def test_every_order_of_slots_is_equally_likely_and_a_fault_is_seen():
    """Ana has more arms, and her slot is first as often as Bo's: 400 seeds leave six deviations with chance 1e-8."""
    made = cp.mechanism("reservoir-bars", bars=0.5, draws=1)

    def firsts():
        return sum(opened(made, seed).decide().agent == "ana" for seed in range(400))

    assert abs(firsts() - 200) < 60
    with patch.object(SlotLevel, "seat", order_by_arms):
        assert abs(firsts() - 200) == 200


def ringer(failing, values):
    """The mean of the slot that is shown at a random end, in the order drawn: T times it is earned."""
    reached, total = Fraction(1), Fraction(0)
    for fails, value in zip(failing, values, strict=True):
        total += reached * (1 - fails) * value
        reached *= fails
    return total / (1 - reached)


@pytest.mark.parametrize("bar", [1, 2, 3])
def test_the_chain_to_a_random_end_has_the_closed_form(bar):
    """Means are chosen so that the root r of r = g (1 - v + v r^K) is a fraction; the rest of the rounds is bounded."""
    stay, rounds, rng = Fraction(1, 3), 9, random.Random(bar)
    for _ in range(3):
        roots = [Fraction(rng.randint(1, 9), 30) for _ in range(3)]
        means = [(1 - root / stay) / (1 - root**bar) for root in roots]
        stake = bar_of(1 / bar, rng.choice((1, 2)))
        values = [chain(means, stake, left) for left in range(rounds + 1)]
        paid = sum(stay**left * (values[left + 1] - values[left]) for left in range(rounds))
        exact = ringer([root**stake.stake for root in roots], means) / (1 - stay)
        assert 0 <= exact - paid <= stay**rounds / (1 - stay)


def plain_play(made, live, clicks):
    """Slots in the order in which a plain program shows them, with the points that clicks earn from the same coins."""
    level, bar = live.state.level, made.arm.bar
    failures, balance, views = ([value] * len(level.keys) for value in (0, bar.stake, 0))
    for click in clicks:
        k = min(range(len(level.keys)), key=lambda j: (failures[j], level.order[j]))
        yield k
        balance[k] += click * (bar.whole + (uniform(level._coins[k], views[k]) < bar.part)) - 1
        views[k] += 1
        if balance[k] == 0:
            failures[k] += 1
            balance[k] = bar.stake


def test_points_that_are_not_whole_are_rounded_by_coins_of_slot_and_view():
    made = cp.mechanism("reservoir-bars", bars=0.28, stake=3, draws=3)
    for seed in range(5):
        rng = random.Random(seed)
        clicks = [int(rng.random() < 0.45) for _ in range(150)]
        live = cp.session(made, ARMS, 150, seed=seed, ends="at-horizon")
        for click, slot in zip(clicks, plain_play(made, live, clicks), strict=True):
            decision = live.decide()
            assert decision.slot == slot
            live.reward(decision.id, click)


def test_a_captured_slot_is_cheap_however_long_the_market_is():
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.03))], horizon=10**15)
    made = cp.mechanism("reservoir-bars", bars=0.02, draws=1)
    payoff = played(partial(slots, blocks=True), runs_of(market, made, {"ana": (1,)}, 1), 0, 3).payoff
    assert np.allclose(payoff, 0.03 * 10**15, rtol=1e-4)


def test_late_rewards_cost_their_point_when_they_arrive():
    live = cp.session(cp.mechanism("reservoir-bars", bars=0.5, stake=1, draws=1), {"ana": 1, "bo": 1}, 20)
    first = live.decide()
    others = [live.decide() for _ in range(5)]
    assert {decision.slot for decision in others} == {first.slot}
    live.reward(others[0].id, 0.0)
    live.reward(others[2].id, 1.0)  # balance 2 - 1 - 1 + 2 = 2
    assert live.decide().slot == first.slot
    live.reward(others[1].id, 0.0)
    live.reward(first.id, 0.0)
    assert live.decide().slot != first.slot


def test_a_run_of_decisions_is_as_long_as_the_balance():
    live = cp.session(cp.mechanism("reservoir-bars", bars=0.1, stake=3, draws=1), {"ana": 1, "bo": 1}, 500)
    assert live.decide_run(100)[1] == 1  # whose slot comes first is not known before
    assert live.probability is None
    first, several = live.decide_run(100)
    assert (several, live.probability) == (29, 1.0)
    live.reward_many([(decision, 0.0) for decision in range(1, 30)])
    assert live.decide_run(100) == (first._replace(id=31), 1)
    live.reward(30, 0.0)
    assert live.decide().slot != first.slot


def test_numbers_are_kept_as_floats():
    made = cp.mechanism("reservoir-bars", bars=np.float64(0.5), stake=2, draws=2)
    assert made.parameters == {"bars": 0.5, "stake": 2.0, "draws": 2}
    assert cp.Session.from_json(opened(made, 1).to_json()).mechanism.arm == made.arm
