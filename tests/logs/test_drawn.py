"""Costs and gains in the draws of a log's market."""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.logs.drawn import DRAWS, LEVEL, DrawnMarket, _estimate
from cloneproof.logs.fit import fit_rates
from support.command import run

RATES = [0.02, 0.03, 0.05, 0.04, 0.1, 0.03]


def drawn_market(views, horizon=5_000, segments=("",)):
    """Return three agents' two items each, as a log of that many views an item shows them."""
    fits = {name: fit_rates([round(rate * views) for rate in RATES], [views] * 6) for name in segments}
    law = {name: fit.prior for name, fit in fits.items()} if segments != ("",) else fits[""].prior
    terms = {"segments": {name: 1 / len(segments) for name in segments}} if segments != ("",) else {}
    return DrawnMarket(cp.Market([cp.Agent(name, 2, law) for name in "abc"], horizon=horizon, **terms), fits)


def test_items_that_are_known_cost_what_a_market_of_points_costs():
    """With 10^8 views an item every draw is the market itself: `cp.evaluate` says the same, and so of the gain."""
    drawn, mechanism = drawn_market(10**8), cp.mechanism("reservoir", rounds=40, draws=6, threshold=3)
    known = cp.Market([cp.Agent(name, prior=[*map(cp.Point, own)]) for name, own in zip(
        "abc", np.array(RATES).reshape(3, 2), strict=True)], horizon=5_000)  # fmt: skip
    exact = cp.evaluate(known, mechanism, engine="law").regret.value
    told = drawn.cost(mechanism)
    assert told.lost.kind == "posterior"
    assert told.lost.level == LEVEL
    assert told.lost.value == pytest.approx(exact, rel=0.15)
    assert told.part.value == pytest.approx(told.lost.value / (5_000 * 0.1), rel=0.02)
    gained = drawn.gain(mechanism, "c", (5, 1))
    pay = {own: cp.evaluate(known, mechanism, {"c": own}, engine="law").payoff["c"].value for own in ((1, 1), (5, 1))}
    assert gained.value == pytest.approx(pay[5, 1] / pay[1, 1] - 1, abs=0.1)


def test_costs_of_segments_add_up_and_one_seed_gives_one_answer():
    drawn, mechanism = drawn_market(2_000, 10_000, ("desk", "phone")), cp.mechanism("reservoir", rounds=40, draws=6)
    both, alone = drawn.cost(mechanism).lost, drawn_market(2_000).cost(mechanism).lost
    assert both.value == pytest.approx(2 * alone.value, rel=0.25)
    assert both == drawn_market(2_000, 10_000, ("desk", "phone")).cost(mechanism).lost


def test_fewer_views_leave_more_open():
    mechanism = cp.mechanism("reservoir", rounds=40, draws=6)
    errors = [drawn_market(views).cost(mechanism).part.error for views in (200, 20_000)]
    assert errors[0] > 1.5 * errors[1]


@pytest.mark.parametrize("within", [0.5, 3.0])
def test_the_interval_is_that_of_the_expectations(within):
    """Draws whose expectations differ by a normal law of deviation 1: the interval is 1.645 wide, and a little more."""
    dice = np.random.default_rng(1)
    halves = []
    for _ in range(40):
        values = dice.normal(size=DRAWS) + within * dice.normal(size=(8, DRAWS))
        halves.append(_estimate(values.ravel(), least=-100.0).error)
    assert 1.55 < np.mean(halves) < 2.2


def test_a_market_file_has_the_average_law_or_each_items_own(tmp_path):
    rows = [f"{'abc'[k % 3]},i{k},2000,{20 + 15 * k}" for k in range(6)]
    (tmp_path / "x.csv").write_text("\n".join(["agent,arm,views,clicks", *rows]))
    for options, kind, points in (((), cp.Mixture, None), (("--as-logged",), cp.Discrete, 64)):
        done = run("log", tmp_path / "x.csv", "--market-file", tmp_path / "m.toml", *options)
        assert done.returncode == 0, done.stderr
        assert "is the market of this log" in " ".join(done.stdout.split())
        market = cp.load_market(tmp_path / "m.toml")
        assert market.horizon == 12_000
        assert all(isinstance(law, kind) for agent in market.agents for law in agent.laws)
        assert all(points is None or 2 < len(law.atoms) <= points for agent in market.agents for law in agent.laws)
    assert [agent.laws[0].mean for agent in market.agents] == pytest.approx([0.01, 0.0175, 0.025], rel=0.3)
    assert run("log", tmp_path / "x.csv", "--as-logged").returncode == 2
