import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.bounds import first_horizon_with_award, holdout_arm_rounds, smallest
from cloneproof.mechanisms import CATALOGUE, Doubling, award_horizon, outside_conditions
from cloneproof.mechanisms.mechanism import mechanism_from_dict
from support.strategies import small

BERN = cp.Discrete([0, 1], [0.5, 0.5])


def fact_three(horizon):
    return cp.Market(
        [cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=horizon, rewards="deterministic"
    )


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_mechanism_is_restored_from_its_data(name):
    made = small(name)
    again = mechanism_from_dict(made.to_dict())
    assert (again.agent, again.arm, again.restart, again.score, again.sample) == (
        made.agent, made.arm, made.restart, made.score, made.sample,
    )  # fmt: skip


def test_the_theorems_numbers():
    assert cp.mechanism("h-etc-r", market=fact_three(4000)).parameters["arm_rounds"] == 36
    million = cp.mechanism("h-etc-r", market=fact_three(10**6)).parameters
    assert (million["arm_rounds"], million["agent_rounds"]) == (59, 3717)
    assert cp.mechanism("h-etc-r", market=fact_three(4000), factor=8.0).parameters["arm_rounds"] == 144
    etc = cp.mechanism("etc", market=fact_three(10_000)).parameters["arm_rounds"]
    assert etc == math.ceil(2 * 3 * math.log(20_000))
    given_m = cp.mechanism("h-etc-r", market=fact_three(4000), arm_rounds=500).parameters
    assert given_m["agent_rounds"] == 1000


@given(st.integers(2, 6), st.floats(0.05, 1), st.integers(10, 10**7))
def test_the_hold_out_condition_holds_and_one_round_less_would_not_do(originals, gap, horizon):
    def holds(m):
        return (originals - 1) * math.exp(-m * gap**2) <= m * gap / (originals * horizon) * (1 + 1e-12)

    m = holdout_arm_rounds(originals, gap, horizon)
    assert holds(m)
    assert m == 1 or not holds(m - 1)
    assert m <= max(1, math.ceil(math.log(originals**2 * horizon / gap) / gap**2))


def test_gaussian_rewards_ask_for_more_where_they_are_wider():
    def rounds(sd):
        market = cp.Market([cp.Agent("ana", 2, BERN)], horizon=1000, rewards={"family": "gaussian", "sd": sd})
        return cp.mechanism("holdout-h-etc", market=market).parameters["arm_rounds"]

    bounded = cp.bounds.pairs_arm_rounds(2, (0.0, 1.0), 1000, "sub-gaussian")
    assert rounds(0.5) == bounded
    assert rounds(2.0) > bounded > rounds(0.1)


def test_the_award_horizon_is_where_awards_begin_for_good():
    market = cp.Market([cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=10)
    start = award_horizon(market)
    for horizon in range(max(1, start - 30), start + 200):
        made = cp.mechanism("holdout-h-etc", market=market.with_horizon(horizon))
        runs = made.at_horizon(2, horizon)
        assert horizon < start or runs is made
    before = cp.mechanism("holdout-h-etc", market=market.with_horizon(start - 1))
    assert before.at_horizon(2, start - 1) is not before


@given(st.integers(1, 40), st.integers(1, 60))
def test_the_search_for_the_award_horizon_is_right(slope, step):
    def trial(horizon):
        return slope * (1 + horizon // (step * slope) // 4)

    brute = 1 + max(h for h in range(1, 40_000) if h < trial(h)) if trial(1) > 1 else 1
    assert first_horizon_with_award(trial) == brute


def test_smallest():
    assert [smallest(lambda n, k=k: n >= k) for k in range(1, 20)] == list(range(1, 20))


def test_doubling_epochs():
    epochs = Doubling()
    assert [epochs.epoch(t) for t in (1, 2, 3, 4, 5, 8, 9, 16, 17)] == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert [epochs.arm_rounds(i) for i in (1, 2, 3)] == [1, math.floor(math.log(4) ** 4), math.floor(math.log(8) ** 4)]


def test_conditions_are_told():
    made = cp.mechanism("h-etc-r", agent_rounds=10, arm_rounds=5)
    assert outside_conditions(made, {"ana": 2, "bo": 1}, 100) == []
    assert any("shorter" in text for text in outside_conditions(made, {"ana": 2, "bo": 1}, 19))
    assert any("3 arms" in text for text in outside_conditions(made, {"ana": 3, "bo": 1}, 100))
    assert any("committed" in text for text in outside_conditions(cp.mechanism("etc", arm_rounds=5), {"ana": 3}, 14))
    held = cp.mechanism("holdout-h-etc", arm_rounds=2, score_rounds=3, max_arms=2)
    assert any("no score" in text for text in outside_conditions(held, {"ana": 3, "bo": 1}, 100))
    assert any("uniformly" in text for text in outside_conditions(held, {"ana": 2, "bo": 1}, 13))
