"""Exact engines look at the clock themselves; audits that were stopped say so."""

import pytest

import cloneproof as cp
from cloneproof._clock import check_time
from cloneproof.analysis.audit import strategies as refinement
from cloneproof.engines.closed_form.exact_payoffs import closed_form
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.tree.state_tree import tree
from cloneproof.errors import OutOfTimeError

COIN = cp.Discrete([0.2, 0.5, 0.8], [0.3, 0.4, 0.3])
MARKET = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 2, COIN)], horizon=60)
HONEST = {"ana": (1, 1), "bo": (1, 1)}
TWO_PHASES = cp.mechanism("h-etc-r", agent_rounds=12, arm_rounds=4)


@pytest.mark.parametrize("arithmetic", ["float", "ball"])
@pytest.mark.parametrize(
    "made", [TWO_PHASES, cp.mechanism("etc", arm_rounds=3), cp.mechanism("uniform-etc", arm_rounds=3)]
)
def test_the_closed_form_stops(made, arithmetic):
    with Deadline(0.0).for_engines(), pytest.raises(OutOfTimeError, match="no time"):
        closed_form(MARKET.with_horizon(61), made, HONEST, arithmetic)
    assert closed_form(MARKET.with_horizon(61), made, HONEST, arithmetic).payoff  # and does not remember it


def test_the_tree_stops():
    with Deadline(0.0).for_engines(), pytest.raises(OutOfTimeError, match="the tree"):
        tree(MARKET.with_horizon(9), cp.mechanism("ucb1"), HONEST)


def test_a_limit_inside_another_cannot_prolong_it():
    with Deadline(0.0).for_engines(), Deadline(1000.0).for_engines(), pytest.raises(OutOfTimeError):
        check_time("tree")
    check_time("tree")


def test_an_attack_that_was_not_enclosed_in_time_says_so(monkeypatch):
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=40)
    made = cp.mechanism("etc", arm_rounds=1, order="index")
    monkeypatch.setattr(refinement, "AFTER", -1000.0)
    late = cp.audit(market.with_horizon(41), made, search=cp.Search(seconds=60))
    assert any("enclosed in ball arithmetic" in note for note in late.notes)
    monkeypatch.undo()
    assert not any("enclosed in ball" in note for note in cp.audit(market, made, search=cp.Search(seconds=60)).notes)


def test_dominance_that_was_stopped_is_undecided(monkeypatch):
    monkeypatch.setattr(Deadline, "left", property(lambda self: 0.0))
    stopped = cp.audit(MARKET.with_horizon(62), TWO_PHASES, opponents="any", search=cp.Search(seconds=5))
    assert stopped.verdict == "undecided"
    assert "out of time" in stopped.scope
    assert stopped.worst.gain.high == 62.0  # no more than all rounds pay
