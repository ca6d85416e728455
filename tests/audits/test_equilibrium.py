"""Iterated best responses: fixed points are equilibria by brute force, cycles are seen, samples agree with the tree."""

from itertools import product
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof.audits.equilibrium import CopyGame, follow
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate, Evaluation

CREATORS = cp.load_market(Path(__file__).parents[2] / "examples" / "creators.toml")
TWO = cp.Market([cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=60)


@pytest.mark.parametrize("name", ["etc", "h-etc-r"])
def test_nobody_gains_on_creators(name):
    found = cp.equilibrium(CREATORS, cp.mechanism(name, market=CREATORS), max_copies=4)
    assert found.status == "equilibrium"
    assert found.largest_incentive < 1e-6
    assert found.copies["ana"][0] == 4  # the cap binds
    assert "ana" in found.at_cap
    for agent, vector in (("ana", (3, 1)), ("bo", (3,)), ("cy", (2, 2))):  # by another call
        deviating = cp.evaluate(CREATORS, found.mechanism, {**found.copies, agent: vector}).payoff[agent]
        assert deviating.high <= found.evaluation.payoff[agent].value * (1 + 1e-6)


@pytest.mark.parametrize("name", ["reservoir", "uniform-etc"])
def test_honesty_is_where_a_clone_proof_mechanism_ends(name):
    found = cp.equilibrium(CREATORS, cp.mechanism(name, market=CREATORS), max_copies=3)
    assert found.status == "equilibrium"
    assert found.copies == {"ana": (1, 1), "bo": (1,), "cy": (1, 1)}
    assert found.price == 1.0
    assert len(found.path) == 1


@pytest.mark.parametrize("make", [lambda: cp.mechanism("etc", arm_rounds=3), lambda: cp.mechanism("ucb1")])
def test_fixed_points_are_those_of_brute_force(make):
    """All profiles, every deviation compared: nothing of the dynamics is used."""
    market = TWO if make().arm.commits else cp.Market(TWO.agents, horizon=7, rewards="deterministic")
    vectors = {"ana": [(1, 1), (2, 1), (2, 2)], "bo": [(1,), (2,)]}
    paid = {
        (ana, bo): cp.evaluate(market, make(), {"ana": ana, "bo": bo}).payoff
        for ana, bo in product(vectors["ana"], vectors["bo"])
    }
    stable = [
        (ana, bo)
        for ana, bo in paid
        if all(paid[other, bo]["ana"].value <= paid[ana, bo]["ana"].value + 1e-9 for other in vectors["ana"])
        and all(paid[ana, other]["bo"].value <= paid[ana, bo]["bo"].value + 1e-9 for other in vectors["bo"])
    ]
    found = cp.equilibrium(market, make(), max_copies=2)
    assert found.status == "equilibrium"
    assert (found.copies["ana"], found.copies["bo"]) in stable
    assert found.to_dict()["status"] == "equilibrium"
    assert len(found.to_columns()["agent"]) == 2


def test_agents_of_one_kind_share_their_questions():
    """As if each were asked: an order of agents makes them different, and gives the same answer here."""
    prior = cp.Discrete([0.2, 0.8], [0.5, 0.5])
    market = cp.Market([cp.Agent(name, 2, prior) for name in "abc"], horizon=300)
    equal = cp.equilibrium(market, cp.mechanism("etc", arm_rounds=10), max_copies=2)
    for name in "abc":
        for vector in ((1, 1), (2, 1)):
            other = cp.evaluate(market, equal.mechanism, {**equal.copies, name: vector}).payoff[name]
            assert other.value <= equal.evaluation.payoff[name].value + 1e-6


def test_samples_end_where_the_tree_does():
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7, rewards="deterministic")
    exact = cp.equilibrium(market, cp.mechanism("ucb1"), max_copies=2)
    sampled = cp.equilibrium(market, cp.mechanism("ucb1"), max_copies=2, runs=4000)
    assert exact.copies == sampled.copies == {"ana": (2, 1)}
    assert "exact" in exact.scope
    assert "sampled" in sampled.scope
    assert sampled.incentives["ana"].low <= exact.incentives["ana"].value <= sampled.incentives["ana"].high


class Pennies(CopyGame):
    """A game of two agents with one or two copies each, in which the first wants to be equal and the second not."""

    def evaluation(self, profile):
        equal = profile["ana"] == profile["bo"]
        payoffs = {"ana": 2.0 if equal else 1.0, "bo": 1.0 if equal else 2.0}
        paid = {name: Estimate(value, 0.0, "exact", "") for name, value in payoffs.items()}
        return Evaluation(paid, Estimate(1.0, 0.0, "exact", ""), "planted")


@pytest.mark.parametrize("in_turn", [False, True])
def test_a_game_without_an_equilibrium_is_a_cycle(in_turn):
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.6))], horizon=10)
    every = {name: [(1,), (2,)] for name in ("ana", "bo")}
    game = Pennies(market, cp.mechanism("ucb1"), every, "tree", tolerance=0.0, damping=1.0)
    path = follow(game, {"ana": (1,), "bo": (1,)}, 50, Deadline(), in_turn)
    assert len({tuple(sorted(profile.items())) for profile in path.cycle}) == 4
    for now, then in zip(path.cycle, path.cycle[1:] + path.cycle[:1], strict=True):
        assert now != then


def test_a_step_goes_half_of_the_way_and_by_one_copy_at_least():
    game = CopyGame(TWO, cp.mechanism("ucb1"), {}, "tree")
    assert game.step("ana", (1, 1), (8, 2)) == (5, 2)


def test_an_unfinished_search_says_so():
    found = cp.equilibrium(CREATORS, cp.mechanism("etc", market=CREATORS), max_copies=8, steps=1)
    assert found.status == "unfinished"
    assert found.largest_incentive > 0.01
