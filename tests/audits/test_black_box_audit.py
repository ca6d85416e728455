"""Somebody's own policy in the audit: the same search, and nothing assumed of it."""

import time

import pytest

import cloneproof as cp
from cloneproof.errors import brief
from support.black_box_policies import InTurn

PAIR = [cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))]


class Agents(InTurn):
    """Serves agents in turn, whatever they register: copies change nothing."""

    def select(self):
        self.round += 1
        return 0 if self.round % 2 else len(self.arms) - 1


class Slow(InTurn):
    def select(self):
        time.sleep(0.01)
        return super().select()


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    monkeypatch.setattr("cloneproof.audits.strategies.available_threads", lambda: 1)


def test_an_attack_on_an_own_policy_is_found():
    found = cp.audit(cp.Market(PAIR, horizon=40), cp.BlackBox(InTurn), search=cp.Search(runs=256))
    assert (found.verdict, found.mechanism.name) == ("exploitable", "InTurn")
    assert found.worst.gain.low > 0


def test_where_copies_change_nothing_no_attack_is_found():
    found = cp.audit(cp.Market(PAIR, horizon=8), cp.BlackBox(Agents), search=cp.Search(runs=512), tolerance=5.0)
    assert (found.verdict, found.state) == ("undecided", "none tried pays")
    assert {one.agent for one in found.tried} == {"ana", "bo"}  # nobody stands for another: order may matter


def test_a_budget_ends_between_two_calls():
    """One run of 600 rounds takes six seconds; what is known after a tenth of a second is nothing, and that is said."""
    market, slow, search = cp.Market(PAIR, horizon=600), cp.BlackBox(Slow), cp.Search(seconds=0.1)
    for asked in (lambda: cp.audit(market, slow, agent="ana", search=search),
                  lambda: cp.gain(market, slow, "ana", (2,), search=search)):  # fmt: skip
        with pytest.raises(cp.errors.OutOfTimeError, match=r"one pair of runs of 600 rounds, got 0.1 s"):
            asked()


def test_an_object_whose_repr_raises_is_named_by_its_type():
    class Odd:
        def __repr__(self):
            raise ValueError

    assert brief(Odd()) == "an object of type Odd whose repr raises ValueError"
    assert brief(10**5000) == "a number of thousands of digits"
