"""The parts of the tree, its refusals, and random markets beyond the brute force (own bonuses, continuous priors)."""

import math
from itertools import combinations

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.tree.choice import best, exceeds
from cloneproof.engines.tree.playing import samples
from cloneproof.engines.tree.shape import belief_of
from cloneproof.engines.tree.state_tree import tree
from cloneproof.errors import EngineError
from cloneproof.laws.best import best_mean
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.rules.etc import etc
from cloneproof.mechanisms.rules.slow_ucb import slow_ucb
from cloneproof.mechanisms.rules.ucb import ucb
from cloneproof.mechanisms.rules.uniform import uniform
from support.brute_force import brute_force

COIN = cp.Discrete([0, 1], [0.5, 0.5])
QUARTERS = cp.Discrete([0.25, 0.75], [0.5, 0.5])


@pytest.mark.parametrize(
    ("copies", "horizon", "mechanism"),
    [
        ((5,), 6, cp.mechanism("ucb1")),
        ((1, 6), 8, cp.mechanism("etc", arm_rounds=1, order="index")),
        ((1, 1, 1, 1, 1), 4, cp.mechanism("etc", arm_rounds=1, choice="greedy")),
        ((1, 1, 0, 1, 1, 1), 6, cp.mechanism("etc", arm_rounds=1, choice="greedy", order="index")),
    ],
)
@pytest.mark.parametrize("rewards", ["bernoulli", "deterministic"])
def test_many_alike(copies, horizon, mechanism, rewards):
    market = cp.Market([cp.Agent("ana", len(copies), QUARTERS)], horizon=horizon, rewards=rewards)
    expected, _ = brute_force(market, mechanism, {"ana": copies}, horizon)
    found = tree(market, mechanism, {"ana": copies})[horizon].payoff["ana"]
    assert found.value == pytest.approx(float(expected["ana"]))


def test_what_is_dropped_enters_the_error():
    market = cp.Market([cp.Agent("ana", 2, QUARTERS), cp.Agent("bo", 1, COIN)], horizon=10**6)
    found = tree(market, cp.mechanism("uniform-etc", arm_rounds=1), full_copies(market.agents, None))[10**6]
    assert found.payoff["bo"].value == pytest.approx(10**6 / 4, rel=1e-11)
    assert abs(found.payoff["bo"].value - 10**6 / 4) <= found.payoff["bo"].error


def test_a_commitment_costs_nothing_more_whatever_the_horizon():
    market = cp.Market([cp.Agent("ana", 2, QUARTERS), cp.Agent("bo", 1, QUARTERS)], horizon=10**12)
    for mechanism in (cp.mechanism("etc", arm_rounds=3), cp.mechanism("h-etc-r", agent_rounds=6, arm_rounds=2)):
        found = tree(market, mechanism, {"ana": (2, 1), "bo": (1,)})[10**12]
        assert 0.5 < sum(x.value for x in found.payoff.values()) / 10**12 < 0.75


def test_near_ties_are_decided_by_balls():
    assert exceeds(2, 2.0, False, 1, 0.25, 2, 0.5)
    for t, slow in ((7, False), (50, False), (50, True)):
        scale = 2.0 * math.log(t) * (math.sqrt(t) if slow else 1.0)
        tied = 0.5 + math.sqrt(scale / 3) - math.sqrt(scale / 2)  # with 2 pulls nearly the same index
        above, below = float(np.nextafter(tied, 9)) + 1e-14, float(np.nextafter(tied, -9)) - 1e-14
        assert exceeds(t, 2.0, slow, 2, above, 3, 0.5)
        assert not exceeds(t, 2.0, slow, 2, below, 3, 0.5)
        rule = ucb(constant=2.0) if not slow else slow_ucb(constant=2.0)
        for mean, winners in ((above, [True, False, False]), (below, [False, True, True])):
            pulls, means = np.array([[2], [3], [3]]), np.array([[mean], [0.5], [0.5]])
            assert best(rule, np.array([t]), pulls, means)[:, 0].tolist() == winners


def test_equal_averages_tie_exactly_whatever_the_pulls():
    # greedy on agents' averages of 0.1: sums of three and of two floats 0.1 would not divide to the same number
    agents = [cp.Agent("ana", 1, cp.Point(0.1)), cp.Agent("bo", 1, cp.Point(0.1)), cp.Agent("cy", 1, cp.Point(0.1))]
    market = cp.Market(agents, horizon=40, rewards="deterministic")
    greedy = cp.Mechanism(agent=etc(1, "greedy", "index"), arm=uniform())
    found = tree(market, greedy, full_copies(agents, None))[40]
    assert [x.value for x in found.payoff.values()] == pytest.approx([4 / 3] * 3)


def test_continuous_priors_have_the_right_predictive_laws():
    pulls, successes = np.array([0, 1, 10, 30]), np.array([0, 1, 3, 30])
    success, failure = belief_of(cp.Uniform(0, 1), 40, False).predictive(pulls, successes)
    assert success == pytest.approx((1 + successes) / (2 + pulls), rel=1e-12)
    assert failure == pytest.approx((1 + pulls - successes) / (2 + pulls), rel=1e-12)
    assert belief_of(cp.Beta(1, 1), 40, False).predictive(pulls, successes)[0] == pytest.approx(success, rel=1e-12)
    assert best_mean([cp.Uniform(0, 1)] * 3)[0] == pytest.approx(0.75, abs=1e-12)
    assert best_mean([cp.Beta(2, 1), cp.Beta(1, 1)])[0] == pytest.approx(0.75, abs=1e-10)
    assert best_mean([cp.Point(0.5), cp.Uniform(0, 1)])[0] == pytest.approx(0.625, abs=1e-12)


def test_a_long_history_needs_no_table():
    belief = belief_of(QUARTERS, 5000, False)
    success, failure = belief.predictive(np.array([5000, 3]), np.array([2500, 2]))
    assert success == pytest.approx([0.5, 0.625], rel=1e-9)
    assert success + failure == pytest.approx([1, 1])


def test_samples_of_many_alike_are_few():
    assert samples((2, 1), 5, ("x", "y")) == {(2, 1): 1.0}
    many = samples((1,) * 40 + (3,) * 10, 12, ("x",) * 40 + ("y",) * 10)  # by labels these would be billions
    assert sum(many.values()) == pytest.approx(1)
    assert len(many) < 200


@pytest.mark.parametrize(
    ("copies", "size", "kinds"), [((2, 1, 3), 3, "xyx"), ((1, 2, 2, 1), 4, "xxyy"), ((3, 3), 2, "xx")]
)
def test_samples_are_those_of_every_labelled_sample(copies, size, kinds):
    labels = [o for o, count in enumerate(copies) for _ in range(count)]
    brute = {}
    for chosen in combinations(range(len(labels)), size):
        kept = [sum(labels[c] == o for c in chosen) for o in range(len(copies))]
        key = tuple(sorted((kind, number) for kind, number in zip(kinds, kept, strict=True)))
        brute[key] = brute.get(key, 0) + 1
    total = sum(brute.values())
    found = {tuple(sorted(zip(kinds, key, strict=True))): p for key, p in samples(copies, size, tuple(kinds)).items()}
    assert found == {key: pytest.approx(count / total) for key, count in brute.items()}


def test_other_refusals_and_the_method():
    market = cp.Market([cp.Agent("ana", 2, QUARTERS)], horizon=9)
    with pytest.raises(EngineError, match="whole number from 1"):
        tree(market, cp.mechanism("ucb1"), {"ana": (1, 1)}, [0])
    own = tree(market, cp.mechanism("ucb1", bonus=lambda t, n: 1 / n), {"ana": (1, 1)})[9]
    assert "compared in floats" in own.payoff["ana"].method
    plain = tree(market, cp.mechanism("ucb1"), {"ana": (1, 1)})[9]
    assert "compared" not in plain.payoff["ana"].method
    assert plain.payoff["ana"].kind == "estimated"
    assert plain.payoff["ana"].error < 1e-11
