"""The law of rates that is fitted to a log, its draws, and what each says of items."""

import numpy as np
import pytest
from scipy import stats

import cloneproof as cp
from cloneproof.logs.fit import DRAWS, FAMILIES, fit_rates, sliced

VIEWS = 2000
LAWS = {
    "Beta": lambda dice, count: dice.beta(3, 97, count),
    "logit-normal": lambda dice, count: 1 / (1 + np.exp(3.6 - 0.6 * dice.normal(size=count))),
    "two Betas": lambda dice, count: np.where(
        dice.random(count) < 0.9, dice.beta(4, 196, count), dice.beta(20, 180, count)
    ),
    "equal": lambda dice, count: np.full(count, 0.03),
    "two points": lambda dice, count: np.where(dice.random(count) < 0.9, 0.02, 0.05),
    "three points": lambda dice, count: dice.choice([0.01, 0.03, 0.06], count, p=[0.5, 0.4, 0.1]),
    "Laplace": lambda dice, count: np.minimum(0.9, 0.01 * dice.random(count) ** -0.4),
}


@pytest.mark.parametrize("family", LAWS)
def test_the_family_and_its_tail_are_found(family):
    """1,000 items: of seven families mostly the right one; the best of 200 within a tenth, of a Pareto a quarter."""
    dice = np.random.default_rng(1)
    fitted = fit_rates(dice.binomial(VIEWS, LAWS[family](dice, 1000)), [VIEWS] * 1000)
    assert max(fitted.families, key=fitted.families.__getitem__) == family
    true = np.mean([LAWS[family](dice, 200).max() for _ in range(4000)])
    assert fitted.fresh(4000, 200, 0).max(axis=1).mean() == pytest.approx(
        true, rel=0.25 if family == "Laplace" else 0.1
    )
    assert fitted.prior.mean == pytest.approx(float(fitted.average @ fitted.grid), rel=0.01)


def test_items_without_a_click_count():
    """40 % of the items never earn anything at 30 views: left out, the mean would be two thirds too high."""
    dice = np.random.default_rng(2)
    clicks = dice.binomial(30, dice.beta(3, 97, 4000))
    assert (clicks == 0).mean() > 0.35
    assert fit_rates(clicks, [30] * 4000).prior.mean == pytest.approx(0.03, rel=0.1)


def test_an_item_is_known_as_well_as_bayes_rule_says():
    """Under a Beta law, known well from 4,000 items, the posterior of an item is a Beta, and the draws are of it."""
    dice = np.random.default_rng(3)
    clicks = dice.binomial(VIEWS, dice.beta(3, 97, 4000))
    asked = np.argsort(clicks)[[0, 2000, 3999]]
    fitted = fit_rates(clicks, [VIEWS] * 4000, asked)
    assert fitted.rates.shape == (DRAWS, 3)
    for place, item in enumerate(asked):
        exact = stats.beta(3 + clicks[item], 97 + VIEWS - clicks[item])
        told = fitted.item(place, 64)
        assert told.mean == pytest.approx(exact.mean(), rel=0.03)
        assert [told.quantile(u) for u in (0.1, 0.5, 0.9)] == pytest.approx(exact.ppf([0.1, 0.5, 0.9]), rel=0.06)
        assert abs(fitted.rates[:, place].mean() - exact.mean()) < 5 * exact.std() / DRAWS**0.5


def test_draws_differ_as_much_as_the_log_leaves_open():
    """Of 50 items at a known spread the law's mean is known to its standard error: so do the draws' means differ."""
    dice = np.random.default_rng(5)
    rates = dice.beta(3, 97, 50)
    fitted = fit_rates(dice.binomial(20_000, rates), [20_000] * 50)
    means = [float(law.masses @ (1 / (1 + np.exp(-law.places)))) for law in fitted.laws]
    assert np.std(means) == pytest.approx(rates.std() / 50**0.5, rel=0.4)


def test_one_seed_gives_one_fit_and_equal_items_are_taken_together():
    one, other = (fit_rates([60, 61, 60] * 20, [VIEWS] * 60, seed=seed) for seed in (0, 0))
    assert (one.rates == other.rates).all()
    assert (one.posterior[0] == one.posterior[2]).all()
    assert not (fit_rates([60, 61, 60] * 20, [VIEWS] * 60, seed=1).rates == one.rates).all()


def test_no_click_at_all_one_item_and_items_never_served_are_fitted():
    assert fit_rates([0, 0, 0], [VIEWS] * 3).prior.quantile(0.9) < 0.005
    assert fit_rates([100], [VIEWS]).item(0, 64).mean == pytest.approx(0.05, rel=0.1)
    never = fit_rates([0, 60, 60, 58], [0, VIEWS, VIEWS, VIEWS])
    assert never.rates.shape == (DRAWS, 4)
    assert never.rates[:, 0].mean() == pytest.approx(0.03, rel=0.3)


def test_a_law_is_written_with_its_tail():
    """A mixture of a few slices has the quantiles of the average law, also far out."""
    dice = np.random.default_rng(6)
    fitted = fit_rates(dice.binomial(VIEWS, LAWS["Laplace"](dice, 500)), [VIEWS] * 500)
    assert isinstance(fitted.prior, cp.Mixture)
    assert len(fitted.prior.priors) < 60
    levels = (0.01, 0.5, 0.99, 0.999)
    assert [fitted.prior.quantile(u) for u in levels] == pytest.approx([fitted.quantile(u) for u in levels], rel=0.03)


def test_every_family_has_limits_for_its_parameters():
    places = np.linspace(-6, -2, 600)
    for family in FAMILIES:
        low, high = family.limits(places)
        law = family.law((low + high) / 2, places)
        assert law.masses.sum() == pytest.approx(1.0)


def test_slices_keep_the_mean():
    grid, chances = np.linspace(0, 1, 401), np.random.default_rng(4).dirichlet(np.full(401, 0.05))
    for points in (2, 3, 64):
        told = sliced(chances, grid, points)
        assert told.mean == pytest.approx(chances @ grid, abs=1e-5)
        assert len(told.atoms) <= points
