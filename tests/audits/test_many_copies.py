"""What stands for every number of copies: a set of arms in play, and the limit of ever more copies of one original."""

from math import comb

import pytest

import cloneproof as cp
from cloneproof.audits.arguments import arms_in_play, limit_worlds
from cloneproof.audits.question import audit_case
from cloneproof.evaluation.evaluate import exact_evaluations

UNSURE = cp.Discrete([0.2, 0.9], [0.5, 0.5])
AGENTS = [cp.Agent("ana", 2, UNSURE), cp.Agent("bo", 1, cp.Point(0.6))]


def exact(market, mechanism, copies):
    evaluations, _ = exact_evaluations([(market, mechanism)], {"ana": copies, "bo": (1,)}, "tree")
    return evaluations[market.horizon].payoff["ana"].value


def average(market, mechanism, copies, arms):
    """Of the payoffs of the sets of so many arms, over the hypergeometric law of how many are of the first original."""
    first, second = copies
    weights = {n: comb(first, n) * comb(second, arms - n) for n in range(arms + 1)}
    worlds = {n: (n, arms - n) for n, weight in weights.items() if weight}
    return sum(weights[n] * exact(market, mechanism, world) for n, world in worlds.items()) / sum(weights.values())


@pytest.mark.parametrize("copies", [(3, 2), (4, 1), (4, 3)])
def test_more_arms_are_an_average_over_those_in_play(copies):
    """The lemma, payoff by payoff in the state tree: two computations, which share no step of the argument."""
    arms = 5
    market, mechanism = cp.Market(AGENTS, horizon=arms), cp.mechanism("h-ucb")
    assert arms_in_play(audit_case(market, mechanism, "ana")) == arms
    if sum(copies) >= arms:
        assert exact(market, mechanism, copies) == pytest.approx(average(market, mechanism, copies, arms), abs=1e-12)


def test_the_lemma_needs_its_conditions():
    """Planted: H-UCB with fewer arms than rounds, and a flat mechanism; no average over so few arms is right there."""
    market = cp.Market(AGENTS, horizon=8)
    mechanism = cp.mechanism("h-ucb")
    assert abs(exact(market, mechanism, (3, 2)) - average(market, mechanism, (3, 2), 3)) > 1e-3
    assert arms_in_play(audit_case(market, cp.mechanism("ucb1"), "ana")) is None
    assert arms_in_play(audit_case(market, cp.mechanism("thompson"), "ana")) is None


def test_the_limit_of_many_copies_is_the_original_alone():
    market, mechanism = cp.Market(AGENTS, horizon=4), cp.mechanism("h-ucb")
    assert limit_worlds(audit_case(market, mechanism, "ana")) == {0: (1, 0)}
    limit, rounds = exact(market, mechanism, (1, 0)), 4
    for copies in (7, 15):
        assert abs(exact(market, mechanism, (copies, 1)) - limit) <= rounds * rounds / (copies + 1)
    assert exact(market, mechanism, (5, 0)) == pytest.approx(limit, abs=1e-12)


def test_a_world_without_an_original_is_no_attack():
    """Where registering one original alone would pay, no verdict rests on that: it is not a replication."""
    agents = [cp.Agent("ana", prior=[cp.Point(0.9), cp.Point(0.1)]), cp.Agent("bo", 1, cp.Point(0.6))]
    market = cp.Market(agents, horizon=200)
    found = cp.audit(market, cp.mechanism("h-ucb"), agent="ana", search=cp.Search(copies=2, runs=512), tolerance=2.0)
    assert all(0 not in one.copies for one in (found.worst, *found.tried))
    assert {limit.original for limit in found.limits} == {1, 2}
    assert max(limit.gain.value for limit in found.limits) > 0


@pytest.mark.parametrize(("name", "copies"), [("thompson", 1000), ("ucb1", 4000), ("epsilon-greedy", 1000)])
def test_a_flat_mechanism_is_flooded(name, copies):
    """The limit in closed form, and a finite simulation with many copies beside it."""
    market = cp.Market(AGENTS, horizon=30, share=0.5)
    payoff = 0.5 * 30 * UNSURE.mean
    many = cp.evaluate(
        market, cp.mechanism(name), {"ana": (copies, 1)}, engine="monte-carlo", search=cp.Search(runs=100)
    )
    few = cp.evaluate(market, cp.mechanism(name), {"ana": (2, 1)}, engine="monte-carlo", search=cp.Search(runs=100))
    assert abs(many.payoff["ana"].value - payoff) < 0.12 * payoff
    assert many.payoff["bo"].value < 0.3 < 1.0 < few.payoff["bo"].value


def test_the_audit_of_a_flat_mechanism_has_its_limit():
    market = cp.Market(AGENTS, horizon=90, share=0.5)
    found = cp.audit(market, cp.mechanism("thompson"), search=cp.Search(copies=2, runs=4), tolerance=9.0)
    assert [(limit.agent, limit.copied.value) for limit in found.limits] == [
        ("ana", pytest.approx(0.5 * 90 * UNSURE.mean)),
        ("bo", pytest.approx(0.5 * 90 * 0.6)),
    ]
    assert found.limits[0].gain.error >= found.limits[0].honest.error
