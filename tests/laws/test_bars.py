"""Bars on slots in closed form: against the Markov chain of all balances, against sums, and its own precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloneproof._lib.schedules import Bar, bar_of
from cloneproof.laws.bars import bar_path, bar_regret, point_losses
from cloneproof.laws.reservoir import ReservoirMarket
from cloneproof.mechanisms.reservoir.bars_tuning import tune_bar

RATES = [(0.01, 1.0), (0.02, 1.0), (0.03, 1.0)]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.sampled_from([0.0, 0.25, 0.5]), st.floats(0, 1), st.integers(1, 10**9))
def test_a_point_is_lost_with_the_chance_that_solves_its_equation(
    whole: int, part: float, mean: float, horizon: int
) -> None:
    (loss,), grown = point_losses(np.array([mean]), Bar(1, whole, part), horizon)
    r = 1 - loss
    missing = -np.expm1(whole * np.log1p(-loss) + np.log1p(-part * loss)) if loss < 1 else 1.0
    again = 1 / horizon + (1 - 1 / horizon) * mean * missing
    assert 0 <= r < 1
    assert again == pytest.approx(loss, rel=1e-13)
    assert grown >= 1 - 1e-12


def test_one_slot_earns_all() -> None:
    for horizon in (1, 7, 10**6):
        market = ReservoirMarket([[[(0.3, 1.0)]]], horizon)
        assert bar_regret(market, bar_of(0.5, 1.0), 3) == pytest.approx(0, abs=1e-9 * horizon)


def test_probabilities_sum_to_one() -> None:
    """Somebody ends the market: over all levels and places in the order the chances of a slot add up to 1 / slots."""
    for horizon, bar in ((10, bar_of(1, 1)), (10**5, bar_of(0.025, 0.5)), (10**9, bar_of(0.3, 2))):
        path = bar_path(np.array([0.02, 0.6]), bar, horizon, 7)
        for v in range(2):
            total = 7 * np.sum(path.weights * path.fall[:, v] * path.left[:, v] ** 6)
            assert total == pytest.approx(1, abs=1e-13 * path.amplified)


def test_regrets_that_were_simulated_elsewhere() -> None:
    """20,000 worlds of the formula for one bar: 12.69 +- .31 and 10.59 +- .12."""
    for agents, horizon, regret in ((5, 10**5, 12.6152), (10, 10**6, 10.5717)):
        market = ReservoirMarket([[RATES] * 3] * agents, horizon)
        assert bar_regret(market, bar_of(0.025, 0.5), 16) == pytest.approx(regret, abs=1e-4)


def test_a_tuned_bar() -> None:
    _, regret = tune_bar(ReservoirMarket([[RATES] * 3] * 10, 10**6))
    assert regret < 9.7
