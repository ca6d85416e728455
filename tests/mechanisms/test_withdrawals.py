"""Withdrawing an arm: on slots it never pays, elsewhere the arm is skipped (docs/textbook/reservoir.md, section 9)."""

import random
from collections import Counter
from fractions import Fraction
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof.errors import NobodyLeftError
from cloneproof.mechanisms.neutral import NeutralRounds
from cloneproof.mechanisms.registration import Withdrawals, open_registration
from support.sizes import LONG
from support.withdrawing import best_pay, ten_slots, worlds

HALF, ONE = Fraction(1, 2), Fraction(1)
CASES = 300 if LONG else 16
FIRST_PASS = cp.mechanism("reservoir", rounds=2, draws=3, threshold=2)
BEST = cp.mechanism("reservoir", rounds=1, draws=3, choose="best")
CONTEST = cp.mechanism("reservoir-contest", rounds=2, draws=2, threshold=2, horizon=60)
INDEX = cp.mechanism("reservoir-index", draws=3, constant=0.7)
BARS = cp.mechanism("reservoir-bars", bars=0.5, draws=3)
ON_SLOTS = [FIRST_PASS, BEST, CONTEST, INDEX, BARS]
ELSEWHERE = [
    *(cp.mechanism(name) for name in ("ucb1", "thompson", "epsilon-greedy", "h-ucb")),
    cp.mechanism("prior-independent-etc"),
    cp.mechanism("etc", arm_rounds=2, order="block"),
    cp.mechanism("h-etc-r", arm_rounds=2, agent_rounds=8),
]
IDS = [mechanism.name for mechanism in ON_SLOTS]


def empty_slots():
    """A planted fault: a slot that holds a withdrawn arm is passed over, and its agent goes on."""
    return patch.multiple(Withdrawals, ends=lambda *_: False, skips=lambda self, agent, arm: (agent, arm) in self.arms)


def run(mechanism, gone, seed, delayed=False):
    """Whom each round serves; `gone` has (round, agent, arm). Rewards follow from the round, the agent and the arm."""
    live = cp.session(mechanism, {"ana": 3, "bo": 2, "cy": 1}, 60, seed=seed)
    served, due = [], []
    for number in range(1, 61):
        for entry in [entry for entry in due if entry[0] <= number]:
            due.remove(entry)
            live.reward(*entry[1:])
        for when, agent, arm in gone:
            if when == number:
                live.withdraw(agent, arm)
        try:
            decision = live.decide()
        except NobodyLeftError:
            served.append(None)
            continue
        served.append((decision.agent, decision.arm, live.probability))
        assert (decision.agent, decision.arm) not in [each[1:] for each in gone if each[0] <= number]
        draw = random.Random(f"{seed} {number} {decision.agent} {decision.arm}")
        due.append((number + 1 + delayed * draw.randrange(6), number, float(draw.random() < (decision.arm + 1) / 4)))
    return served


def cases(count):
    for number in range(count):
        draw = random.Random(number)
        arms = [("bo", 0), ("bo", 1), ("cy", 0)]
        others = [(draw.randint(1, 60), *arm) for arm in draw.sample(arms, draw.choice([0, 0, 0, 1, 1, 2]))]
        own = [(draw.randint(1, draw.choice([8, 40])), "ana", arm) for arm in draw.sample(range(3), draw.randint(1, 2))]
        yield number, others, own, {"delayed": number % 3 == 0}


@pytest.mark.parametrize("mechanism", ON_SLOTS, ids=IDS)
def test_who_withdraws_is_served_in_no_round_in_which_she_would_not_be_otherwise(mechanism):
    """So withdrawing pays nobody: whenever it is done, whatever was seen, and whatever the others do or withdraw."""
    lost = 0
    for seed, others, own, terms in cases(CASES):
        honest, withdrawn = run(mechanism, others, seed, **terms), run(mechanism, [*others, *own], seed, **terms)
        for with_ana, shown in zip(honest, withdrawn, strict=True):
            assert shown is None or shown[0] != "ana" or shown[:2] == with_ana[:2]
        lost += sum(a is not None and a[0] == "ana" for a in honest) > sum(
            b is not None and b[0] == "ana" for b in withdrawn
        )
    assert lost >= 3


def test_empty_slots_break_this():
    def more(mechanism):
        for seed, others, own, terms in cases(CASES):
            honest, withdrawn = run(mechanism, others, seed, **terms), run(mechanism, [*others, *own], seed, **terms)
            yield any(b is not None and b[0] == "ana" != a[0] for a, b in zip(honest, withdrawn, strict=True))

    with empty_slots():
        assert any(more(FIRST_PASS))


SMALL = {
    "first pass": cp.mechanism("reservoir", rounds=1, draws=2, threshold=1),
    "best of all": cp.mechanism("reservoir", rounds=1, draws=2, choose="best"),
    "contest": cp.mechanism("reservoir-contest", rounds=1, draws=2, threshold=1, horizon=6, contest="ucb"),
    "index": cp.mechanism("reservoir-index", draws=2, constant=0.5),
    "bars": cp.mechanism("reservoir-bars", bars=0.5, stake=0.5, draws=2),
}


def most_gained(mechanism, copies=(1, 1), rivals=None, delay=0, horizon=4 if LONG else 3):
    """What the best adaptive withdrawals add to honest registration of two originals of 1 and 1/2."""

    def start(registered):
        return worlds(mechanism, (ONE, HALF), registered, rivals or {}, horizon)

    return best_pay(start(copies), delay=delay) - best_pay(start((1, 1)), withdraws=False, delay=delay)


@pytest.mark.parametrize("name", SMALL)
def test_no_adaptive_withdrawal_gains_a_fraction(name):
    """Every strategy: any arms, after any history."""
    mechanism = SMALL[name]
    assert most_gained(mechanism) == 0
    assert most_gained(mechanism, delay=1, horizon=3) == 0
    if LONG or name == "best of all":
        assert most_gained(mechanism, rivals={"bo": [HALF]}) == 0
    if LONG:
        assert most_gained(mechanism, (2, 1)) <= 0
        assert most_gained(mechanism, (2, 1), {"bo": [HALF]}) <= 0


def test_copies_and_withdrawals_together_gain_nothing():
    assert most_gained(SMALL["first pass"], (2, 1), horizon=3) <= 0


@pytest.mark.parametrize("name", ["best of all", "index"])
def test_empty_slots_are_worth_withdrawing_for(name):
    with empty_slots():
        assert most_gained(SMALL[name]) > 0


def test_the_example_with_ten_slots():
    """Pausing the item that has failed is worth what empty slots are; withdrawing it costs."""
    honest, withdrawn, paused = (ten_slots(way) for way in (None, cp.Session.withdraw, cp.Session.pause))
    with empty_slots():
        left_empty = ten_slots(cp.Session.withdraw)
    assert [round(float(pay), 1) for pay in (honest, left_empty, paused)] == [83.2, 87.3, 87.4]
    assert withdrawn < honest


def served(live, rewards=(), most=1):
    """The next decisions, with rewards of 0 or those given."""
    shown = []
    for number in range(most):
        decision = live.decide()
        live.reward(decision.id, float(rewards[number]) if number < len(rewards) else 0.0)
        shown.append((decision.agent, decision.arm, decision.phase))
    return shown


def opened(mechanism=FIRST_PASS, registered=None, seed=0, **terms):
    return cp.session(mechanism, registered or {"ana": 2, "bo": 1}, 100, seed=seed, **terms)


def first_agent_is(name, mechanism, registered=None):
    """A session whose timetable begins with this agent."""
    return next(
        opened(mechanism, registered, seed)
        for seed in range(100)
        if opened(mechanism, registered, seed).decide().agent == name
    )


def test_after_a_champion_the_tests_of_the_others_go_on_where_they_were():
    live = first_agent_is("ana", FIRST_PASS)
    ((_, arm, phase),) = set(served(live, (1, 1), 2))
    assert phase == "trial"
    assert served(live, most=3) == [("ana", arm, "award")] * 3
    live.withdraw("ana", 1 - arm)  # holds no place of hers
    assert served(live) == [("ana", arm, "award")]
    live.withdraw("ana", arm)
    live.withdraw("ana", arm)
    assert live.out == []
    assert served(live, (1, 1), 2) == [("bo", 0, "trial")] * 2
    assert live.out == ["ana"]
    assert live.withdrawn == {"ana": [0, 1]}
    assert served(live, most=5) == [("bo", 0, "award")] * 5
    live.withdraw("bo", 0)
    with pytest.raises(NobodyLeftError, match="every agent"):
        live.decide()
    assert live.out == ["ana", "bo"]
    assert live.round == 13


def test_a_slot_that_failed_is_of_no_consequence_unless_the_best_count_picks_it():
    mechanism = cp.mechanism("reservoir", rounds=2, draws=1, threshold=2)
    for scores, out in (((0, 1), []), ((1, 0), ["ana"]), ((0, 0), ["ana"])):
        live = first_agent_is("ana", mechanism, {"ana": 1, "bo": 1})
        assert served(live, (0, scores[0]), 2)[0][0] == "ana"
        live.withdraw("ana", 0)
        assert served(live, (0, scores[1]), 3)[-1] == ("bo", 0, "award")
        assert live.out == out


def test_a_test_that_passes_late_brings_nobody_back():
    """The first slot of an agent passes when its second one, which holds what she withdrew, has been reached."""
    mechanism = cp.mechanism("reservoir", rounds=1, draws=2, threshold=1)
    live = next(
        live
        for live in (opened(mechanism, {"ana": 2, "bo": 1}, seed) for seed in range(100))
        if live.state.order == [0, 1] and live.state.candidates[0] != live.state.candidates[2]
    )
    first = live.decide()
    live.withdraw("ana", live.state.candidates[2][1])
    assert [live.decide().agent for _ in range(2)] == ["bo", "bo"]
    assert live.out == ["ana"]
    live.reward(first.id, 1.0)
    for number in (2, 3):
        live.reward(number, 0.0)
    assert served(live, most=3) == [("bo", 0, "award")] * 3


def test_nobody_left_is_for_good():
    """A late reward that would have made a champion does not bring back an agent that is out."""
    live = next(
        live
        for live in (opened(SMALL["first pass"], {"ana": 2}, seed) for seed in range(100))
        if live.state.candidates[0] != live.state.candidates[1]
    )
    first = live.decide()
    live.withdraw("ana", 1 - first.arm)
    with pytest.raises(NobodyLeftError):
        live.decide()
    live.reward(first.id, 1.0)
    again = cp.Session.from_json(live.to_json())
    for each in (live, again):
        with pytest.raises(NobodyLeftError):
            each.decide()
        assert each.round == 1
        assert each.payoff == {"ana": 1.0}


@pytest.mark.parametrize("mechanism", ELSEWHERE, ids=lambda mechanism: mechanism.name)
def test_where_nothing_is_drawn_an_arm_is_skipped(mechanism):
    """The others go on until nothing is left at all."""
    for seed in range(2):
        shown = run(mechanism, [(9, "ana", 0), (20, "bo", 0), (21, "bo", 1)], seed, delayed=seed % 2 == 1)
        assert {agent for agent, _, _ in shown[20:]} <= {"ana", "cy"}
        everything = [(30, agent, arm) for agent, count in (("ana", 3), ("bo", 2), ("cy", 1)) for arm in range(count)]
        assert run(mechanism, everything, seed)[29:] == [None] * 31


def test_in_waiting_rounds_a_turn_passes_and_its_chance_is_known():
    """Two agents, one of Ana's two arms gone: half of her turns go to Bo, whose chance says so."""
    public = open_registration({"ana": 2, "bo": 1})
    waiting = NeutralRounds(public, 0, Withdrawals({(0, 0)}, slots=True))
    shown = Counter((public.names[agent], chance) for agent, _, chance in (waiting.turn() for _ in range(100)))
    assert shown.keys() == {("ana", 0.5), ("bo", 1.0), ("bo", 0.5)}
    assert shown["bo", 1.0] == 50
    assert 10 < shown["ana", 0.5] < 40
