"""Registering again after a season: the study against the closed form."""

from itertools import permutations

import numpy as np
import pytest

import cloneproof as cp
import second_season as study


def test_the_second_season_pays_what_the_closed_form_says():
    market = cp.Market([cp.Agent(name, prior=[cp.Point(0.03), cp.Point(0.02)]) for name in "ab"], study.HORIZON)
    mechanism, dice = cp.mechanism("reservoir", rounds=2000, draws=6, threshold=52), np.random.default_rng(1)
    means, weights = np.array([[0.03, 0.02], [0.03, 0.02]]), np.array([[0.75, 0.25], [0.5, 0.5]])
    exact = cp.evaluate(market, mechanism, {"a": (3, 1)}).payoff["a"].value
    orders = [np.array(order) for order in permutations(range(2))]
    missed = (1 - weights @ study.pass_chances((2000, 6, 52))[[2, 1]]).prod() ** 6  # the fallback is drawn
    found = np.mean([study.pay((2000, 6, 52), weights, means, order, dice) for order in orders])
    assert found == pytest.approx(exact, abs=missed * 0.03 * study.HORIZON)
    assert missed < 1e-3


def test_the_item_of_best_posterior_mean():
    dice = np.random.default_rng(1)
    assert study.posterior_best(dice, np.array([3400, 0, 3400]), np.array([68, 0, 34])) in (0, 1)
    assert study.posterior_best(dice, np.array([3400, 3400, 0]), np.array([34, 102, 0])) == 1
    assert study.posterior_best(dice, np.array([3400, 0, 3400]), np.array([34, 0, 34])) == 1


def test_knowing_pays_in_a_few_runs():
    honest, found = study.gains(60, 1)
    assert honest.shape == (60,)
    assert found[:, 2].mean() > honest.mean()
