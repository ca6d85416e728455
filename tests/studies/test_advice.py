"""The study of advice plays mechanisms as the engines do, and notices what is wrong."""

import sys

import numpy as np
import pytest

import advice as study
import cloneproof as cp
from cloneproof.engines.estimate import Estimate
from support.sizes import LONG

SURE = 4.9  # standard errors: one wrong alarm in a million
LISTED = cp.Market([cp.Agent(name, 2, cp.Discrete([0.2, 0.5, 0.8], [0.5, 0.25, 0.25])) for name in "abc"], 600)
BETA = cp.Market([cp.Agent(name, 3, cp.Beta(2, 8)) for name in "abcd"], 800)
RANDOM = cp.Market([cp.Agent(name, 2, cp.Uniform(0.1, 0.6)) for name in "abc"], 500, ends="at-random")
PASS = {"rounds": 7, "draws": 4, "threshold": 5}
CONTEST = {"rounds": 5, "draws": 3, "threshold": 2, "constant": 0.4}
MANY = [
    (LISTED, "reservoir", {"rounds": 7, "draws": 4}),
    (LISTED, "holdout-h-etc", {"arm_rounds": 12, "score_rounds": 20, "max_arms": 2}),
    (LISTED, "holdout-h-etc", {"arm_rounds": 60, "score_rounds": 120, "max_arms": 2}),  # too short for an award
    (LISTED, "h-etc-r", {"arm_rounds": 12, "agent_rounds": 40, "max_arms": 2}),
    (LISTED, "uniform-etc", {"arm_rounds": 12}),
    (LISTED, "holdout-kl-ucb", {"arm_rounds": 10, "max_arms": 2, "horizon": 600, "constant": 0.7}),
    (LISTED, "h-ucb", {}),
    (LISTED, "rh-ucb", {}),
    (BETA, "reservoir-contest", CONTEST | {"horizon": 800}),
    (RANDOM, "reservoir-index", {"draws": 4, "constant": 1.5}),
    (RANDOM, "reservoir-bars", {"bars": [0.55, 0.4, 0.3], "stake": 1.5, "draws": 3}),
    (RANDOM, "reservoir-contest", CONTEST | {"horizon": 500}),
    (RANDOM, "reservoir", PASS),
]


@pytest.fixture(scope="module")
def quick():
    """A row of the study: one small market, with the regret of the closed form as what was said."""
    made = cp.mechanism("reservoir", **PASS)
    plays = [(made, sys.maxsize), (cp.mechanism("reservoir", **PASS | {"draws": 1}), sys.maxsize)]
    costs = study.simulated(study.Asked(LISTED, {}), plays, 2000, 1)
    return study.Row("small", "reservoir", cp.evaluate(LISTED, made).regret, ["reservoir", "one draw"], costs)


def test_a_regret_that_is_right_passes_and_a_wrong_one_is_caught(quick):
    assert study.problems(quick) == []
    wrong = Estimate(1.3 * quick.said.value, 0.0, "estimated", "planted")
    assert study.problems(quick._replace(said=wrong)) == [
        f"small: said {wrong.value:,.0f}, simulated {quick.costs[:, 0].mean():,.0f}"
    ]


def test_advice_that_costs_more_than_another_mechanism_is_caught(quick):
    worse = quick._replace(costs=np.column_stack([1.3 * quick.costs[:, 0], quick.costs[:, 0]]), said=quick.said)
    said = Estimate(float(worse.costs[:, 0].mean()), 0.0, "estimated", "planted")
    assert study.problems(worse._replace(said=said)) == ["small: one draw costs less than reservoir"]
    assert "| one draw, " in study.shown(worse)


def test_rates_that_drift_are_drawn_anew_as_often_as_said():
    dice, drift = np.random.default_rng(3), 200.0
    worlds = [study.drawn_world(study.Asked(BETA, {"drift": drift}), dice)[0] for _ in range(200)]
    expected = 200 * 12 * 800 / drift  # 12 items
    assert abs(sum(len(world.ends) - 1 for world in worlds) - expected) < 0.05 * expected + SURE * expected**0.5
    world = worlds[0]
    assert (np.diff(world.rates.reshape(len(world.ends), -1), axis=0) != 0).sum(axis=1).tolist() == [1] * (
        len(world.ends) - 1
    )
    assert world.ends[-1] == 800
    assert world.best == pytest.approx(world.rates.max(axis=(1, 2)))


def test_markets_are_those_of_the_page():
    asked = [study.asked(number) for number in range(study.MARKETS)]
    assert [each.market.gap is None for each in asked] == [True] * 6 + [False] * 2 + [True] * 2
    assert [sorted(each.options) for each in asked] == [[]] * 8 + [["drift"], ["providers"]]
    assert all(5 <= len(each.market.agents) <= 10 and 2 <= each.market.most_originals <= 4 for each in asked)
    assert all(2 * 10**4 <= each.market.horizon <= 2 * 10**5 for each in asked)


@pytest.mark.skipif(not LONG, reason="compiles thirteen programs")
@pytest.mark.parametrize(("market", "name", "numbers"), MANY)
def test_programs_play_as_the_engines_do(market, name, numbers):
    made, runs = cp.mechanism(name, **numbers), 4000
    costs = study.simulated(study.Asked(market, {}), [(made, sys.maxsize)], runs, 2)[:, 0]
    said = cp.evaluate(market, made, engine="monte-carlo", search=cp.Search(runs=2 * runs, bounds="asymptotic")).regret
    assert abs(costs.mean() - said.value) < study.half_width(costs, SURE) + said.error
