"""A session that is saved at any point goes on as one that is not, whatever mechanism runs and whatever happens."""

import random
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof.errors import CloneproofError
from cloneproof.mechanisms import CATALOGUE, Rule
from cloneproof.mechanisms.segment import Segment
from cloneproof.mechanisms.streams import Coins
from support.sizes import LONG
from support.strategies import small

MOVES = 150 if LONG else 45
SUMS = {"rounds": 3, "draws": 4, "coins": False}
GREEDY = Rule("greedy", lambda inputs: inputs.mean, tries=4, binarise=True)
MECHANISMS = {name: small(name) for name in CATALOGUE} | {
    "best of draws": cp.mechanism("reservoir", rounds=2, draws=3, choose="best"),
    "contest by ucb": cp.mechanism("reservoir-contest", rounds=2, draws=3, horizon=120, contest="ucb"),
    "sums": cp.mechanism("reservoir", threshold=1.9, **SUMS),
    "best of sums": cp.mechanism("reservoir", choose="best", **SUMS),
    "contest of sums": cp.mechanism("reservoir-contest", horizon=120, contest="ucb", **SUMS),
    "bar": cp.mechanism("reservoir-bars", bars=0.28, stake=3, draws=2),
    "one's own": cp.bandit(arm=GREEDY),
}
TWO = {"code": 0.3, "writing": 0.7}
TERMS = {
    "plain": {"rewards": "beta"},
    "to a random end": {"ends": "at-random"},
    "with a window": {"window": 6},
    "segments": {"segments": TWO, "window": 9},
    "segments to a random end": {"segments": TWO, "ends": "at-random"},
    "weights": {"weights": {"ana": (2, 0, 1)}, "rewards": "beta"},
    "batches": {"batch": 4, "segments": TWO},
    "batches of pages": {"positions": 2, "batch": 6},
    "pages": {"positions": (1, 0.6)},
    "pages in segments": {"positions": {"code": 3, "writing": (1, 0.5)}, "segments": TWO, "ends": "at-random"},
}


def told(session, call):
    """What a call answers, or the sentence that refuses it."""
    try:
        return call(session)
    except CloneproofError as problem:
        return str(problem)


def same(sessions, call):
    """The answer that both sessions give to a call."""
    first, second = (told(one, call) for one in sessions)
    assert first == second
    return first


def move(both, dice, waiting, number):
    """Do something to both sessions."""
    live = both[0]
    kind = dice.choice(["decide"] * 7 + ["reward"] * 6 + ["withdraw", "pause", "resume", "join"])
    if kind == "decide":
        name = dice.choice(list(live.segments)) if live.segments else None
        if live.positions is None:
            shown = same(both, lambda one: ([one.decide(name)], one.probability))
        else:
            shown = same(both, lambda one: (one.decide_slate(name), one.probabilities))
        waiting += [] if isinstance(shown, str) else [decision.id for decision in shown[0]]
    elif kind == "reward" and waiting:
        due, worth = waiting.pop(dice.randrange(len(waiting))), dice.choice([0.0, 1.0, 0.5 * dice.random()])
        same(both, lambda one: one.reward(due, worth))
    elif kind == "join":
        same(both, lambda one: one.join(f"late {number}", 2, mixed=bytes([number])))
    elif kind != "reward" and dice.random() < 0.6:
        agent, arm = dice.choice([("ana", 1), ("ana", 2), ("bo", 0)])
        same(both, lambda one: getattr(one, kind)(agent, arm))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_saved_session_goes_on_as_one_that_is_not(name):
    mechanism, played = MECHANISMS[name], 0
    for case, terms in TERMS.items():
        dice, waiting = random.Random(f"{name} {case}"), []
        try:
            live, saved = (cp.session(mechanism, {"ana": 3, "bo": 2}, 90, seed=5, **terms) for _ in range(2))
        except CloneproofError:
            continue
        for number in range(MOVES):
            move((live, saved), dice, waiting, number)
            if dice.random() < 0.2:
                text = saved.to_json()
                saved = cp.Session.from_json(text, mechanism if name == "one's own" else None)
                assert saved.to_json() == text
        assert live.to_json() == saved.to_json()
        assert (live.payoff, live.ledger, live.out, live.last) == (saved.payoff, saved.ledger, saved.out, saved.last)
        played += live.round > MOVES / 9  # segments that do not take the terms say so when they begin
    assert played >= 4


restore = Segment.restore
FAULTS = {
    "coins that are forgotten": (Coins, "restore", lambda self, data: None, "reservoir"),
    "a batch that is forgotten": (Segment, "restore", lambda self, data: restore(self, {**data, "held": ()}), "ucb1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault):
    *place, name = FAULTS[fault]
    with patch.object(*place), pytest.raises((AssertionError, KeyError)):
        test_a_saved_session_goes_on_as_one_that_is_not(name)
