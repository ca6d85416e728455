import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import cloneproof as cp
from cloneproof.market.priors import prior_from_dict, smallest_gap
from support.strategies import priors


@given(priors)
def test_dictionary_form_gives_an_equal_prior(prior):
    assert prior_from_dict(prior.to_dict()) == prior


@given(priors, st.floats(1e-9, 1 - 1e-9))
def test_quantiles_lie_in_the_unit_interval_and_in_the_support(prior, u):
    value = prior.quantile(u)
    assert 0 <= value <= 1
    if prior.atoms is not None:
        assert value in [v for v, _ in prior.atoms]


@given(priors)
def test_the_quantile_function_has_the_stated_mean(prior):
    count = 4000
    average = math.fsum(prior.quantile((k + 0.5) / count) for k in range(count)) / count
    assert average == pytest.approx(prior.mean, abs=2e-3)


def test_discrete_quantiles_have_the_weights():
    prior = cp.Discrete([0.9, 0.1, 0.4], [0.5, 0.25, 0.25])
    assert [prior.quantile(u) for u in (0.1, 0.24, 0.26, 0.49, 0.51, 0.99)] == [0.1, 0.1, 0.4, 0.4, 0.9, 0.9]


MIXTURE = cp.Mixture([0.9, 0.1], [cp.Beta(2, 98), cp.Beta(20, 180)])


def test_the_quantiles_of_a_mixture_invert_its_distribution():
    levels = [1e-9, 1e-4, 0.1, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9]
    values = MIXTURE.quantiles(levels)
    below = sum(weight * stats.beta.cdf(values, prior.a, prior.b) for weight, prior in MIXTURE.parts)
    assert below == pytest.approx(levels, rel=1e-4)
    assert [MIXTURE.quantile(u) for u in levels] == values.tolist()
    assert cp.Mixture([1.0], [cp.Beta(3, 97)]).quantiles(levels) == pytest.approx(
        cp.Beta(3, 97).quantiles(levels), rel=1e-4
    )


def test_a_mixture_of_discrete_priors_is_discrete_and_of_both_kinds_refused():
    mixed = cp.Mixture([0.5, 0.5], [cp.Point(0.2), cp.Discrete([0.2, 0.8], [0.5, 0.5])])
    assert mixed.atoms == ((0.2, 0.75), (0.8, 0.25))
    assert mixed.mean == pytest.approx(0.35)
    assert [prior_from_dict(law.to_dict()) for law in (mixed, MIXTURE)] == [mixed, MIXTURE]
    for weights, parts in (
        ([0.5, 0.5], [cp.Point(0.2), cp.Beta(1, 1)]),
        ([1.0], []),
        ([0.5, 0.4], [cp.Beta(1, 1)] * 2),
    ):
        with pytest.raises(cp.errors.MarketError, match="expected "):
            cp.Mixture(weights, parts)


def test_zero_weights_are_not_in_the_support():
    assert cp.Discrete([0, 1], [0, 1]).atoms == ((1.0, 1.0),)


def test_bins_widen_the_gap():
    samples = [0.501, 0.502, 0.8]
    assert smallest_gap([v for v, _ in cp.Empirical(samples).atoms]) == pytest.approx(0.001)
    assert smallest_gap([v for v, _ in cp.Empirical(samples, bins=2).atoms]) > 0.1
    assert cp.Empirical([1.0], bins=4).atoms == ((1.0, 1.0),)


def test_bins_are_cut_at_quantiles_so_click_rates_stay_apart():
    rates = [0.001 * k for k in range(1, 101)]
    prior = cp.Empirical(rates, bins=4)
    assert [round(value, 4) for value, _ in prior.atoms] == [0.013, 0.038, 0.063, 0.088]
    assert prior.mean == pytest.approx(sum(rates) / 100)


def test_bins_in_which_values_merge_warn():
    with pytest.warns(UserWarning, match="2 values are left of 4 bins"):
        merged = cp.Empirical([0.1] * 75 + [0.2, 0.3, 0.4] * 8 + [0.5], bins=4)
    assert len(merged.atoms) == 2


CONTINUOUS = [cp.Uniform(0.2, 0.9), cp.Beta(2, 3), cp.Beta(0.5, 0.5), cp.Beta(0.01, 5), cp.Beta(400, 1), MIXTURE]


@pytest.mark.parametrize("n", [1, 2, 7, 100])
@pytest.mark.parametrize("prior", [*CONTINUOUS, cp.Empirical([0.1, 0.1, 0.3, 0.35, 0.7, 0.9, 1.0])], ids=str)
def test_a_discretised_prior_has_the_mean_and_few_values(prior, n):
    made = prior.discretised(n)
    assert isinstance(made, cp.Discrete)
    assert 1 <= len(made.values) <= n
    assert made.mean == pytest.approx(prior.mean, rel=1e-12, abs=1e-15)
    assert list(made.values) == sorted(made.values)
    assert cp.Market([cp.Agent("ana", 2, made)], 10).gap is not None


@pytest.mark.parametrize("prior", CONTINUOUS[:3], ids=str)
def test_more_values_come_nearer_to_the_prior(prior):
    def distance(n):
        made = prior.discretised(n)
        return max(abs(made.quantile(u) - prior.quantile(u)) for u in (0.05, 0.21, 0.43, 0.77, 0.95))

    assert distance(400) < 0.02
    assert distance(400) < distance(4)


def test_discrete_priors_stay_as_they_are():
    discrete = cp.Discrete([0.2, 0.4], [0.5, 0.5])
    assert discrete.discretised(1) is discrete
    assert cp.Point(0.3).discretised(5) == cp.Discrete([0.3], [1.0])
    assert cp.Empirical([0.1, 0.9, 0.9]).discretised(2).atoms == cp.Empirical([0.1, 0.9, 0.9]).atoms


def test_a_refused_continuous_prior_is_told_of_it():
    market = cp.Market([cp.Agent("ana", 1, cp.Uniform())], 10)
    with pytest.raises(cp.errors.MarketError, match=r"discretised\(5\)"):
        next(market.realisations())
    with pytest.raises(cp.errors.MechanismError, match=r"discretised\(5\)"):
        cp.mechanism("etc", market=market)
    proven = cp.evaluate(market, cp.mechanism("etc", arm_rounds=1)).payoff["ana"]
    assert (proven.kind, proven.value) == ("exact", pytest.approx(5.0))  # by a rule that ten coins cannot tell from it
