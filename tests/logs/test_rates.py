"""The law of rates that is fitted to a log, and what the log says of each item, against known truth."""

import numpy as np
import pytest
from scipy import stats

import cloneproof as cp
from cloneproof.logs.log import LoggedArm
from cloneproof.logs.rates import fit_rates, sliced
from cloneproof.market.priors import quantiles

VIEWS = 2000
LAWS = {
    "Beta": lambda dice, count: dice.beta(3, 97, count),
    "LogOdds": lambda dice, count: 1 / (1 + np.exp(3.6 - 0.6 * dice.normal(size=count))),
    "Mixture": lambda dice, count: np.where(
        dice.random(count) < 0.9, dice.beta(4, 196, count), dice.beta(20, 180, count)
    ),
}


def shown(clicks, views=VIEWS):
    return (LoggedArm("a", "x", views, int(clicks), int(clicks)),)


def fit_of(clicks, views=VIEWS):
    return fit_rates({"a": [shown(own, views) for own in clicks]})


@pytest.mark.parametrize("family", LAWS)
def test_the_family_and_its_tail_are_found(family):
    """1,000 items: the right one of three families, and the expected best of 200 items within a tenth."""
    dice = np.random.default_rng(1)
    fitted = fit_of(dice.binomial(VIEWS, LAWS[family](dice, 1000)))
    assert type(fitted.law).__name__ == family
    true_best = (
        LAWS[family](dice, (2000, 200)).max(axis=1).mean()
        if family == "Beta"
        else (np.mean([LAWS[family](dice, 200).max() for _ in range(2000)]))
    )
    best = quantiles(fitted.law, dice.random((2000, 200)).ravel()).reshape(2000, 200).max(axis=1).mean()
    assert best == pytest.approx(true_best, rel=0.1)


def test_items_without_a_click_count():
    """40 % of the items never earn anything at 30 views: left out, the mean would be two thirds too high."""
    dice = np.random.default_rng(2)
    clicks = dice.binomial(30, dice.beta(3, 97, 4000))
    assert (clicks == 0).mean() > 0.35
    assert fit_of(clicks, 30).law.mean == pytest.approx(0.03, rel=0.1)


def test_an_item_is_known_as_well_as_bayes_rule_says():
    """Under a Beta law the posterior of an item is a Beta again."""
    dice = np.random.default_rng(3)
    clicks = dice.binomial(VIEWS, dice.beta(3, 97, 400))
    fitted = fit_of(clicks)
    law = fitted.law
    assert isinstance(law, cp.Beta)
    for item in np.argsort(clicks)[[0, 200, 399]]:
        exact = stats.beta(law.a + clicks[item], law.b + VIEWS - clicks[item])
        told = fitted.item("a", int(item), 64)
        assert told.mean == pytest.approx(exact.mean(), rel=2e-3)
        assert [told.quantile(u) for u in (0.1, 0.5, 0.9)] == pytest.approx(exact.ppf([0.1, 0.5, 0.9]), rel=0.03)


def test_no_click_at_all_one_item_and_equal_items_are_fitted():
    assert fit_of([0, 0, 0]).law.quantile(0.9) < 0.002
    assert fit_of([100]).law.mean == pytest.approx(0.05, rel=0.05)
    assert fit_of([60] * 50).law.quantile(0.99) == pytest.approx(0.03, rel=0.15)
    assert fit_rates({"a": [(), shown(60)], "b": []}).posterior["a"].shape == (2, 600)  # one was never served


def test_slices_keep_the_mean():
    grid, chances = np.linspace(0, 1, 401), np.random.default_rng(4).dirichlet(np.full(401, 0.05))
    for points in (2, 3, 64):
        told = sliced(chances, grid, points)
        assert told.mean == pytest.approx(chances @ grid, abs=1e-5)
        assert len(told.atoms) <= points
