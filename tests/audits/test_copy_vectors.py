"""Copy vectors: nothing missing, nothing twice."""

import math
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.audits.deviations import (
    OriginalKinds,
    all_below,
    grid,
    kinds_of,
    ladders,
    of_sum,
    withholding_vectors,
)
from cloneproof.audits.question import audit_case

COIN = cp.Discrete([0, 1], [0.5, 0.5])


def test_sums_are_complete():
    for arms in range(2, 9):
        assert set(of_sum(OriginalKinds((0, 1)), arms)) == {(a, arms - a) for a in range(1, arms)}
    assert all_below(OriginalKinds((0, 0)), 6, 100) == [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1)]
    assert all_below(OriginalKinds((0, 0)), 60, 100) is None


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(0, 1), st.integers(1, 4))
def test_the_grid_is_what_all_products_leave(marks, least, cap):
    """Against every product of numbers, filtered: the same vectors in the same order, and the count of what is cut."""
    kinds = OriginalKinds(tuple(marks))
    every = [
        vector
        for vector in product(range(least, cap + 1), repeat=len(marks))
        if kinds.canonical(vector) and vector != kinds.honest and any(vector)
    ]
    ordered = sorted(every, key=lambda vector: (sum(vector), vector))
    assert grid(kinds, cap, least) == (ordered[:2000], max(0, len(ordered) - 2000))


@pytest.mark.parametrize("labels", [(0,) * 50, tuple(range(50)), tuple(k % 7 for k in range(50)), (0,) * 150])
def test_many_originals_are_counted_and_cut_without_enumerating_them_all(labels):
    vectors, missing = grid(OriginalKinds(labels), 4)
    assert len(vectors) == len(set(vectors)) == 2000
    assert [sum(vector) for vector in vectors] == sorted(sum(vector) for vector in vectors)
    assert min(map(min, vectors)) == 1
    every = math.prod(math.comb(3 + number, number) for number in Counter(labels).values())
    assert missing == every - 1 - 2000
    assert all_below(OriginalKinds(labels), 10**6, 100) is None


def test_ladders_reach_the_horizon_and_no_more_arms_than_there_may_be():
    one, all_of_them = ladders(OriginalKinds((0, 0)), 1000)
    assert one[-1] == (512, 1)
    assert all_of_them[-1] == (512, 512)
    assert max(sum(vector) for ladder in ladders(OriginalKinds((0, 0, 0)), 10**12) for vector in ladder) <= 10**7
    assert ladders(OriginalKinds((0,)), 1) == [[(2,)]]
    assert len(ladders(OriginalKinds((0, 1)), 8)) == 3


def test_order_of_registration_breaks_the_symmetry():
    ana = cp.Agent("ana", 2, COIN)
    assert kinds_of(ana, in_order=False).labels == (0, 0)
    market = cp.Market([ana], horizon=9)
    found = cp.audit(market, cp.mechanism("etc", arm_rounds=2, order="index"), search=cp.Search(copies=2))
    assert {(2, 1), (1, 2)} <= {one.copies for one in found.tried}


def test_withheld_vectors_leave_something_out_and_register_something():
    assert withholding_vectors(OriginalKinds((0, 0)), 2) == [(1, 0), (2, 0)]
    assert withholding_vectors(OriginalKinds((0,)), 3) == []


@pytest.mark.parametrize("mechanism", [
    cp.mechanism("etc", arm_rounds=3), cp.mechanism("etc", arm_rounds=3, choice="greedy"), cp.mechanism("ucb1"),
    cp.mechanism("prior-independent-etc"), cp.mechanism("uniform-etc", arm_rounds=2),
    cp.mechanism("h-etc-r", arm_rounds=2, agent_rounds=5),
])  # fmt: skip
def test_no_payoff_exceeds_the_ceiling(mechanism):
    ana = cp.Agent("ana", 2, cp.Discrete([0.25, 1], [0.5, 0.5]))
    for others in ([], [cp.Agent("bo", 1, cp.Point(0.5))]):
        market = cp.Market([ana, *others], horizon=12, share=0.5)
        case = audit_case(market, mechanism, "ana")
        if case.mechanism.agent is None and others:
            assert case.proof.earns is None
            continue
        for copies in ((2, 1), (2, 2), (3, 1), (3, 2), (4, 1)):
            paid = cp.evaluate(market, mechanism, {"ana": copies}).payoff["ana"]
            for arms in range(2, sum(copies) + 1):
                assert paid.low <= case.proof.earns(arms)


@pytest.mark.parametrize("mechanism", [
    cp.mechanism("etc", arm_rounds=10), cp.mechanism("prior-independent-etc"),
    cp.mechanism("uniform-etc", arm_rounds=2), cp.mechanism("h-etc-r", arm_rounds=2, agent_rounds=30),
    cp.mechanism("h-etc-r", arm_rounds=2, agent_rounds=300),
])  # fmt: skip
@pytest.mark.parametrize("alone", [True, False])
def test_the_ceiling_is_what_a_commitment_earns_that_never_errs(mechanism, alone):
    """Sure rewards make it: the law of payoffs there, and the ceiling's formula, where the agent's rounds are given."""
    ana = cp.Agent("ana", 2, COIN)
    market = cp.Market([ana] if alone else [ana, cp.Agent("bo", 1, cp.Point(0.5))], horizon=100, share=0.5)
    proof = audit_case(market, mechanism, "ana").proof
    if proof.earns is None:
        assert mechanism.name in ("etc", "prior-independent-etc")
        assert not alone  # the rounds of one agent depend on what the others register
        return
    for arms in (2, 3, 6, 20):
        sure = cp.Market(market.agents, 100, 0.5, "deterministic")
        paid = cp.evaluate(sure, mechanism, {"ana": (arms - 1, 1)}, engine="law").payoff["ana"].value
        assert proof.earns(arms) >= paid * (1 - 1e-9)
        assert proof.earns(arms) == pytest.approx(paid, rel=1e-9) or not proof.apart
    if mechanism.name == "etc":
        assert proof.earns(3) == pytest.approx(0.5 * 67.5)  # 30 rounds at 1/2, 70 at 3/4


def test_the_theorems_conditions_are_sharp_where_they_should_be():
    quarter = cp.Agent("ana", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5]))
    etc = cp.mechanism("etc", arm_rounds=20)
    assert audit_case(cp.Market([quarter], horizon=1480), etc, "ana").proof.settles
    assert not audit_case(cp.Market([quarter], horizon=1500), etc, "ana").proof.settles
    wide = cp.Market([quarter], horizon=1480, rewards={"family": "gaussian", "sd": 1.0})
    assert not audit_case(wide, etc, "ana").proof.settles
    greedy = cp.mechanism("etc", arm_rounds=20, choice="greedy")
    assert not audit_case(cp.Market([quarter], horizon=1480), greedy, "ana").proof.settles


def test_elementary_arguments_know_their_limits():
    blind = cp.bandit(agent=cp.rule("uniform"), arm=cp.rule("uniform"))
    unequal = cp.Agent("ana", prior=[cp.Point(0.2), cp.Point(0.9)])
    bo = cp.Agent("bo", 1, cp.Point(0.5))
    assert not audit_case(cp.Market([unequal, bo], horizon=9), blind, "ana").proof.same
    flat = cp.bandit(arm=cp.rule("uniform"))
    assert not audit_case(cp.Market([bo, cp.Agent("cy", 1, cp.Point(0.1))], horizon=9), flat, "bo").proof.same
    adaptive = cp.bandit(agent=cp.rule("ucb"), arm=cp.rule("uniform"))
    coin = cp.Agent("ana", 2, COIN)
    assert not audit_case(cp.Market([coin, bo], horizon=9), adaptive, "ana").proof.same
    assert audit_case(cp.Market([bo, coin], horizon=9), cp.mechanism("h-ucb"), "bo").proof.same
