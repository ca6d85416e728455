"""The study of advice plays mechanisms as the engines do, and notices what is wrong."""

import json

import numpy as np
import pytest

import advice
import cloneproof as cp
import played_advice as study
from support.sizes import LONG

SURE = 4.9  # standard errors: one wrong alarm in a million
VALUES = cp.Discrete([0.2, 0.5, 0.8], [0.5, 0.25, 0.25])
SEGMENTS = {"code": 0.3, "writing": 0.7}
PASS = {"rounds": 7, "draws": 4, "threshold": 5}
CONTEST = {"rounds": 5, "draws": 3, "threshold": 2, "constant": 0.4}
BEST = {"rounds": 5, "draws": 2, "choose": "best"}


def market(agents=3, originals=2, prior=VALUES, horizon=600, **more):
    return cp.Market([cp.Agent(name, originals, prior) for name in "abcdef"[:agents]], horizon, **more)


BETA = market(4, 3, cp.Beta(2, 8), 800)
RANDOM = market(3, 2, cp.Uniform(0.1, 0.6), 500, ends="at-random")
BY_SEGMENT = market(3, 2, {"code": VALUES, "writing": cp.Beta(2, 8)}, segments=SEGMENTS)
MANY = [
    (market(), "reservoir", {"rounds": 7, "draws": 4}),
    (BETA, "reservoir-contest", CONTEST | {"horizon": 800}),
    (RANDOM, "reservoir-index", {"draws": 4, "constant": 1.5}),
    (RANDOM, "reservoir-bars", {"bars": 0.55, "stake": 1.5, "draws": 3}),
    (RANDOM, "reservoir-bars", {"bars": 0.45, "stake": 1.0, "draws": 4}),
    (RANDOM, "reservoir-contest", CONTEST | {"horizon": 500}),
    (RANDOM, "reservoir", PASS),
    (market(), "h-ucb", {}),
    (BY_SEGMENT, "reservoir", PASS),
    (market(3, 2, cp.LogOdds(0.2, 0.5, 0.8), segments=SEGMENTS), "reservoir", PASS),
    (market(5, horizon=90, positions=(1, 0.6, 0.3)), "reservoir", BEST),
    (market(5, horizon=47, positions=(1, 0.6, 0.3)), "reservoir", BEST),  # tests do not end
    (market(3, horizon=90, positions=(1, 0.6, 0.3, 0.2, 0.2)), "reservoir", BEST),  # places stay empty
]


def as_data(market, **more):
    prior, places = market.agents[0].prior.to_dict(), market.positions
    fixed = {"horizon": market.horizon, "ends": market.ends, "prior": prior, "segments": dict(market.segments)}
    counts = {"agents": len(market.agents), "originals": market.most_originals}
    return {**counts, **fixed, "positions": places and list(places), "drift": None} | more


def costs_of(market, made, runs, worlds=(study.ALL,), more=None):
    play = study.Play("own", {world: [made.name, dict(made.parameters)] for world in worlds})
    return study.simulated(as_data(market, **(more or {})), [play], runs, [1, 2])[:, 0]


@pytest.fixture
def quick():
    """A row of the study, planted: two plays, of which the first is advised and costs a little less, 100 on average."""
    plays = [study.Play(label, {study.ALL: ["reservoir", {}]}) for label in ("advised", "other")]
    costs = np.random.default_rng(7).exponential(100.0, (2000, 1)) * [1.0, 1.05]
    return {"asked": as_data(market()), "advice": "advised", "said": [100.0, 0.0]}, plays, costs


def test_a_regret_that_is_right_passes_and_a_wrong_one_is_caught(quick):
    row, plays, costs = quick
    assert study.problems(row, plays, costs) == []
    wrong = row | {"said": [150.0, 0.0]}
    assert study.problems(wrong, plays, costs) == [
        f"3 x 2, rates(0.2, 0.5, 0.8), 600 rounds: said 150, simulated {costs[:, 0].mean():,.0f}"
    ]


def test_advice_that_costs_more_than_another_play_is_caught(quick):
    row, plays, costs = quick
    row, worse = row | {"said": [150.0, 0.0]}, costs * [1.5, 1.0]
    assert study.problems(row, plays, worse) == [
        "3 x 2, rates(0.2, 0.5, 0.8), 600 rounds: other costs less than advised"
    ]
    assert "| other, " in study.shown(row, plays, worse)
    assert study.ratio(worse)[0] == pytest.approx(1.5 / 1.05)


def test_pages_are_filled_as_in_the_closed_form():
    pages, attention = market(4, horizon=60, positions=(1, 0.6, 0.3)), np.array([1, 0.6, 0.3])
    dice = np.random.default_rng(5)
    np.random.seed(5)
    worlds = [study.drawn_worlds(as_data(pages), dice)[study.ALL] for _ in range(600)]
    costs = np.array([study.slates.py_func(world, 60, attention, 5, 2) for world in worlds])
    said = cp.evaluate(pages, cp.mechanism("reservoir", **BEST)).regret
    assert abs(costs.mean() - said.value) < study.half_width(costs, SURE) + said.error


def test_rates_of_segments_have_their_laws_and_the_rounds_their_parts():
    law, dice = cp.LogOdds(0.2, 0.5, 0.8), np.random.default_rng(3)
    worlds = [study.drawn_worlds(as_data(market(prior=law, segments=SEGMENTS)), dice) for _ in range(500)]
    code, writing = (np.array([world[name].rates[0] for world in worlds]).ravel() for name in SEGMENTS)
    for rates in (code, writing):
        assert abs(rates.mean() - law.mean) < study.half_width(rates, SURE)
    for world in worlds[:5]:
        assert sum(int(world[name].ends[-1]) for name in SEGMENTS) == world[study.ALL].ends[-1] == 600
        averages = sum(part * world[name].rates for name, part in SEGMENTS.items())
        assert world[study.ALL].rates == pytest.approx(averages)
        assert world[study.ALL].best >= averages.max()
    together = np.corrcoef(*(np.log(rates / (1 - rates)) for rates in (code, writing)))[0, 1]
    assert abs(together - 0.25 / 0.89) < SURE / len(code) ** 0.5


def test_rates_that_drift_are_drawn_anew_as_often_as_said():
    dice, drift = np.random.default_rng(3), 200.0
    worlds = [study.drawn_worlds(as_data(BETA, drift=drift), dice)[study.ALL] for _ in range(200)]
    expected = 200 * 12 * 800 / drift  # 12 items
    assert abs(sum(len(world.ends) - 1 for world in worlds) - expected) < 0.05 * expected + SURE * expected**0.5
    world = worlds[0]
    assert (np.diff(world.rates.reshape(len(world.ends), -1), axis=0) != 0).sum(axis=1).tolist() == [1] * (
        len(world.ends) - 1
    )
    assert world.ends[-1] == 800
    assert world.best == pytest.approx(world.rates.max(axis=(1, 2)))


def test_neighbours_change_one_or_two_numbers_and_thresholds_follow_pulls():
    play = study.Play("reservoir", {study.ALL: ["reservoir", {"rounds": 40, "draws": 1, "threshold": 10}]})
    found = {each.label: each.parts[study.ALL][1] for each in study.neighbours(play)}
    assert found["reservoir (rounds x 0.5)"] == {"rounds": 20, "draws": 1, "threshold": 5}
    assert found["reservoir (draws x 2, threshold x 1.25)"] == {"rounds": 40, "draws": 2, "threshold": 12}
    assert "reservoir (draws x 0.5)" not in found  # the same as one draw
    bars = study.Play("bars", {study.ALL: ["reservoir-bars", {"bars": 0.9, "stake": 2.0, "draws": 4}]})
    assert 0.9 not in [each.parts[study.ALL][1]["bars"] for each in study.neighbours(bars) if "bars x" in each.label]
    assert {"bars": 1.0, "stake": 4.0, "draws": 4} in [each.parts[study.ALL][1] for each in study.neighbours(bars)]


def test_the_file_has_the_markets_of_the_page():
    written = json.loads(study.ADVICE.read_text())
    assert [each["asked"] for each in written] == [advice.asked(number) for number in range(advice.MARKETS)]
    assert [bool(each["asked"]["segments"]) for each in written] == [True] + [False] * 7
    assert all(each["plays"][0]["label"] == each["advice"].split(",")[0].split(" ")[0] for each in written)
    for each in written:
        worlds = study.drawn_worlds(each["asked"], np.random.default_rng(0))
        assert all(set(play.parts) <= set(worlds) for play in study.plays_of(each))


@pytest.mark.skipif(not LONG, reason="compiles eight programs")
@pytest.mark.parametrize(("played", "name", "numbers"), MANY)
def test_programs_play_as_the_engines_do(played, name, numbers):
    made, runs = cp.mechanism(name, **numbers), 4000
    costs = costs_of(played, made, runs, tuple(played.segments) or (study.ALL,))
    said = cp.evaluate(played, made, engine="runs", search=cp.Search(runs=2 * runs, bounds="asymptotic")).regret
    assert abs(costs.mean() - said.value) < study.half_width(costs, SURE) + said.error
