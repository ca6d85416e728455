"""The parts of the tree, and its refusals."""

import pytest

import cloneproof as cp
from cloneproof.errors import EngineError
from cloneproof.laws.best import best_mean
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.bandits.tree import _belief, _predicted, tree
from cloneproof.mechanisms.committing.committing import Committing

COIN = cp.Discrete([0, 1], [0.5, 0.5])
QUARTERS = cp.Discrete([0.25, 0.75], [0.5, 0.5])


def test_a_commitment_costs_nothing_more_whatever_the_horizon():
    market = cp.Market([cp.Agent("ana", 2, QUARTERS), cp.Agent("bo", 1, QUARTERS)], horizon=10**12)
    for mechanism in (cp.mechanism("etc", arm_rounds=3), cp.mechanism("h-etc-r", agent_rounds=6, arm_rounds=2)):
        found = tree(market, mechanism, {"ana": (2, 1), "bo": (1,)})[10**12]
        assert 0.5 < sum(x.value for x in found.payoff.values()) / 10**12 < 0.75


def test_equal_averages_tie_exactly_whatever_the_pulls():
    # greedy on agents' averages of 0.1: sums of three and of two floats 0.1 would not divide to the same number
    agents = [cp.Agent("ana", 1, cp.Point(0.1)), cp.Agent("bo", 1, cp.Point(0.1)), cp.Agent("cy", 1, cp.Point(0.1))]
    market = cp.Market(agents, horizon=40, rewards="deterministic")
    greedy = Committing(arm_rounds=1, agent_rounds=1, choice="greedy", agent_order="index")
    found = tree(market, greedy, full_copies(agents, None))[40]
    assert [x.value for x in found.payoff.values()] == pytest.approx([4 / 3] * 3)


def test_continuous_priors_have_the_right_predictive_laws():
    uniform = _belief(cp.Uniform(0, 1), 40, False)
    for seen, successes in ((0, 0), (1, 1), (10, 3), (30, 30)):
        values, odds = _predicted(uniform, seen, successes, False)
        assert values == (0, 1)
        assert odds == pytest.approx([(1 + seen - successes) / (2 + seen), (1 + successes) / (2 + seen)], rel=1e-12)
        assert _predicted(_belief(cp.Beta(1, 1), 40, False), seen, successes, False)[1] == pytest.approx(
            odds, rel=1e-12
        )
    assert best_mean([cp.Uniform(0, 1)] * 3)[0] == pytest.approx(0.75, abs=1e-12)
    assert best_mean([cp.Beta(2, 1), cp.Beta(1, 1)])[0] == pytest.approx(0.75, abs=1e-10)
    assert best_mean([cp.Point(0.5), cp.Uniform(0, 1)])[0] == pytest.approx(0.625, abs=1e-12)


def test_a_long_history_does_not_underflow():
    belief = _belief(QUARTERS, 5000, False)
    assert _predicted(belief, 5000, 2500, False)[1] == pytest.approx([0.5, 0.5], rel=1e-9)
    assert _predicted(belief, 3, 2, False)[1] == pytest.approx([0.375, 0.625], rel=1e-12)


def test_what_nothing_changes_any_more_is_paid_at_once():
    market = cp.Market([cp.Agent("ana", 2, QUARTERS), cp.Agent("bo", 1, COIN)], horizon=300)
    found = tree(market, cp.mechanism("uniform-etc", arm_rounds=1), full_copies(market.agents, None))[300]
    assert found.payoff["bo"].value == pytest.approx(75, rel=1e-12)


def test_other_refusals_and_the_method():
    market = cp.Market([cp.Agent("ana", 2, QUARTERS)], horizon=9)
    with pytest.raises(EngineError, match="whole number from 1"):
        tree(market, cp.mechanism("ucb1"), {"ana": (1, 1)}, [0])
    plain = tree(market, cp.mechanism("ucb1"), {"ana": (1, 1)})[9]
    assert plain.payoff["ana"].kind == "exact"
    assert plain.payoff["ana"].error < 1e-11
