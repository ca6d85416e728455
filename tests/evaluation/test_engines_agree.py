"""Two engines and a brute force in exact fractions on the same random markets.

`make test` tries some cases for each mechanism; `make check-engines` sets CLONEPROOF_EXAMPLES and tries hundreds.
"""

import os
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings

import cloneproof as cp
from cloneproof.market import full_copies
from cloneproof.mechanisms.bandits.tree import tree
from cloneproof.runs.job import Job
from support.brute_force import brute_force
from support.market_strategies import COMMITTING, cases, committing_mechanisms, composed_mechanisms

EXAMPLES = int(os.environ.get("CLONEPROOF_EXAMPLES", "5"))


def tried(name):
    """More cases where there are more kinds of them."""
    return settings(max_examples=EXAMPLES * (6 if name == "structures" else 1), suppress_health_check=list(HealthCheck))


def assert_covers(evaluation, payoffs, regret):
    """Every estimate's interval contains the exact value, and is narrow."""
    for name, exact in payoffs.items():
        estimate = evaluation.payoff[name]
        assert abs(Fraction(estimate.value) - exact) <= Fraction(estimate.error), (name, estimate, float(exact))
        assert estimate.error <= 1e-10 * max(1.0, abs(estimate.value))
    assert abs(Fraction(evaluation.regret.value) - regret) <= Fraction(evaluation.regret.error)


ON_ARMS = ("etc", "prior-independent-etc", "uniform-etc", "h-etc-r", "ucb1", "h-ucb", "epsilon-greedy")
CASES = {name: cases(names=[name]) for name in ON_ARMS} | {"composed": cases(composed=composed_mechanisms())}
COMMITTED = {name: cases(names=[name], greedy=False) for name in COMMITTING}
COMMITTED |= {"structures": cases(composed=committing_mechanisms())}


@pytest.mark.parametrize("name", CASES)
def test_the_tree_is_the_brute_force(name):
    @tried(name)
    @given(CASES[name])
    def check(case):
        copies = full_copies(case.market.agents, case.copies)
        exact = brute_force(case.market, case.mechanism, copies, case.market.horizon)
        assert_covers(tree(case.market, case.mechanism, copies)[case.market.horizon], *exact)

    check()


@pytest.mark.parametrize("name", COMMITTED)
def test_the_closed_form_is_the_brute_force(name):
    @tried(name)
    @given(COMMITTED[name])
    def check(case):
        copies = full_copies(case.market.agents, case.copies)
        exact = brute_force(case.market, case.mechanism, copies, case.market.horizon)
        found = case.mechanism.law(Job(case.market, copies))
        assert_covers(found, *exact)
        assert all(estimate.kind == "exact" for estimate in found.payoff.values())

    check()


@pytest.mark.parametrize("name", [*(name for name in COMMITTED if name in ON_ARMS), "structures"])
def test_the_engines_agree_where_brute_force_cannot_follow(name):
    """Longer horizons: tree and closed form."""

    @tried(name)
    @given(COMMITTED[name], COMMITTED[name])
    def check(case, other):
        market = case.market.with_horizon(8 + case.market.horizon + 2 * other.market.horizon)
        copies = full_copies(market.agents, case.copies)
        leaves = tree(market, case.mechanism, copies)[market.horizon]
        law = case.mechanism.law(Job(market, copies))
        for agent in copies:
            assert abs(leaves.payoff[agent].value - law.payoff[agent].value) <= 1e-12 * market.horizon

    check()


@pytest.mark.parametrize("agent", [None, "thompson", "uniform"])
def test_sampled_thompson_is_the_brute_force(agent):
    """Intervals that fail once in a million; no exact engine draws from posteriors."""
    market = cp.Market(
        [cp.Agent("ana", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.5))], horizon=4
    )
    mechanism = cp.bandit(agent=agent and cp.rule(agent), arm=cp.rule("thompson"))
    copies = {"ana": (2, 1)}
    payoffs, regret = brute_force(market, mechanism, full_copies(market.agents, copies), 4)
    found = cp.evaluate(
        market,
        mechanism,
        copies,
        confidence=1 - 1e-7,
        search=cp.Search(runs=20_000, seed=3, bounds="distribution-free"),
    )
    assert found.engine == "runs"
    for name, estimate in found.payoff.items():
        assert abs(estimate.value - payoffs[name]) <= estimate.error < 0.2
    assert abs(found.regret.value - regret) <= found.regret.error


@pytest.mark.parametrize("choice", ["commit", "greedy"])
@pytest.mark.parametrize("originals", [2, 3])
def test_exploration_by_index_starts_again_at_the_award(originals, choice):
    """A restart gives the first registered arm its turn again: states must not be sorted by what was learnt."""
    prior = cp.Discrete([0.25, 0.75], [0.5, 0.5])
    for trial, horizon in ((2, 5), (3, 8)):
        market = cp.Market([cp.Agent("ana", originals, prior), cp.Agent("bo", 1, cp.Point(0.5))], horizon=horizon)
        mechanism = cp.mechanism("h-etc-r", agent_rounds=trial, arm_rounds=1, order="index", choice=choice)
        copies = full_copies(market.agents, None)
        exact = brute_force(market, mechanism, copies, horizon)
        assert_covers(tree(market, mechanism, copies)[horizon], *exact)
        if choice == "commit":
            assert_covers(mechanism.law(Job(market, copies)), *exact)


def test_agents_that_look_alike_are_told_apart_by_the_order_of_registration():
    market = cp.Market([cp.Agent(name, 1, cp.Discrete([0.25, 0.75], [0.5, 0.5])) for name in ("ana", "bo")], horizon=1)
    copies = full_copies(market.agents, None)
    for mechanism in (cp.mechanism("etc", arm_rounds=1, order="index"),
                      cp.mechanism("h-etc-r", agent_rounds=2, arm_rounds=1, agent_order="index")):  # fmt: skip
        for engine in (lambda m, made: tree(m, made, copies)[m.horizon], lambda m, made: made.law(Job(m, copies))):
            assert [e.value for e in engine(market, mechanism).payoff.values()] == [0.5, 0.0]


def test_every_horizon_of_one_pass_is_the_evaluation_at_that_horizon():
    market = cp.Market(
        [cp.Agent("ana", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.5))], horizon=10
    )
    copies = full_copies(market.agents, {"ana": (2, 1)})
    for name in ON_ARMS:
        mechanism = cp.mechanism(name, **SMALL.get(name, {}))
        together = tree(market, mechanism, copies, range(1, 11))
        for horizon in (1, 4, 10):
            alone = tree(market.with_horizon(horizon), mechanism, copies)[horizon]
            for agent in copies:
                assert together[horizon].payoff[agent].value == pytest.approx(alone.payoff[agent].value, rel=1e-13)


SMALL = {"etc": {"arm_rounds": 2}, "uniform-etc": {"arm_rounds": 2}, "h-etc-r": {"agent_rounds": 4, "arm_rounds": 1}}
