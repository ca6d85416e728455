"""Seasons where rates drift: the cost is that of the model, played, and the length is the best of those tried."""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.advice.regret import cheapest_seasons
from cloneproof.errors import CloneproofError
from cloneproof.report.recommendation import cost_words
from support.advised import advised


def test_the_cost_of_drift_is_that_of_a_choice_whose_rate_is_drawn_anew():
    """The choice is the best of five at the start; in the model it is an average one once it was drawn anew."""
    rng, length, lifetime, runs = np.random.default_rng(8), 50, 40.0, 5_000
    rates = rng.random((runs, 5))
    best, now = rates.max(1).mean(), rates.max(1).copy()
    lost = 0.0
    for _ in range(length):
        changed = rng.random(runs) < 1 / lifetime
        now = np.where(changed, rng.random(runs), now)
        lost += best - now.mean()
    model = length * cp.bounds.season_cost(length, 0.0, best - 0.5, lifetime)
    assert model == pytest.approx(lost, rel=0.05)


def test_the_season_costs_least_and_is_longer_where_rates_stay_longer():
    lengths = []
    for lifetime in (1e3, 1e5, 1e7):
        length, cost = cp.bounds.season_length(lambda rounds: rounds**0.5, 10**6, 0.1, lifetime)
        lengths.append(length)
        for other in (length // 2, length, min(10**6, 2 * length)):
            assert cost <= cp.bounds.season_cost(other, other**0.5, 0.1, lifetime) * 1.001
    assert lengths == sorted(lengths)
    assert cp.bounds.season_length(lambda rounds: rounds**0.5, 10**6, 0.1, 1e15)[0] == 10**6


def test_items_that_wait_shorten_the_season_to_where_the_formula_has_its_least():
    """R = r H^p and waiting w: the least is at (r (1 - p) / (w / 2))^(1 / (2 - p)), within a step of the lengths."""
    scale, power, waiting = 1.36, 0.46, 1e-4 * 0.00114
    best = (scale * (1 - power) / (waiting / 2)) ** (1 / (2 - power))
    length, cost = cp.bounds.season_length(lambda rounds: scale * rounds**power, 10**6, 0.1, waiting=waiting)
    assert 1 / 1.25 < length / best < 1.25
    assert round(best, -3) == 41_000
    assert cost == pytest.approx(0.0044 + 0.0024, abs=1e-4)
    assert cp.bounds.season_length(lambda rounds: rounds**0.5, 10**6, 0.1)[0] == 10**6


def test_waiting_costs_at_most_what_the_model_says():
    """Items arrive at random; until the season ends the best of those that wait is missed."""
    rng, length, rate, runs = np.random.default_rng(9), 40, 0.1, 4_000
    best, arrived = rng.random((runs, 5)).max(1), np.zeros(runs)
    excess, lost = np.maximum(rng.random((100_000, 1)) - rng.random((100_000, 5)).max(1, keepdims=True), 0).mean(), 0.0
    for _ in range(length):
        lost += np.maximum(arrived - best, 0).mean()
        arrived = np.maximum(arrived, np.where(rng.random(runs) < rate, rng.random(runs), 0))
    model = length * cp.bounds.season_cost(length, 0.0, 0.1, waiting=rate * excess)
    assert 0.7 * model < lost < model


def test_a_recommendation_names_the_season():
    market = cp.Market(
        [cp.Agent(name, 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for name in ("ana", "bo")], horizon=10**5
    )
    found = advised(market, drift=20_000, declared=())
    seasons, length = found.seasons, found.market.horizon
    assert length == seasons.length < seasons.rounds == 10**5
    assert found.cost.value > found.choice.regret.value * 10**5 / length  # drift costs something besides
    lost = 10**5 * cp.bounds.season_cost(length, found.choice.regret.value, seasons.gap, 20_000)
    assert found.cost.value == pytest.approx(lost)
    assert cost_words(found) in str(found).replace("\n", " ")
    assert "neutral to copies" in str(found).replace("\n", " ")
    assert cheapest_seasons(market, 1e15).length == 10**5
    with pytest.raises(CloneproofError, match="drift"):
        cp.recommend(market, drift=0)
