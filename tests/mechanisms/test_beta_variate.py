"""Beta variates against SciPy's laws, and the tables that they rest on against their definition."""

import math

import flint
import numpy as np
import pytest
from scipy import stats

from cloneproof._randomness import uniform
from cloneproof.engines.monte_carlo.stepping.user_functions import with_callees
from cloneproof.mechanisms.beta_variate import (
    ENDS,
    HEIGHTS,
    TAIL,
    beta_variate,
    gamma_variate,
    normal_tail,
)
from cloneproof.mechanisms.kl_bound import log

ONE_IN_A_MILLION = 1e-6
compiled_variate = with_callees(beta_variate)


def test_layers_have_one_area_and_close_at_the_peak():
    area = ENDS[256] * HEIGHTS[255]
    tail = math.sqrt(math.pi / 2) * math.erfc(TAIL / math.sqrt(2))
    assert ENDS[255] == TAIL
    assert area == pytest.approx(TAIL * math.exp(-(TAIL**2) / 2) + tail, rel=1e-13)
    assert np.allclose(np.exp(-(ENDS[:256] ** 2) / 2), HEIGHTS[:256], rtol=1e-13)
    assert np.allclose(ENDS[1:256] * (HEIGHTS[:255] - HEIGHTS[1:256]), area, rtol=1e-11)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 40), (3, 2), (17, 1), (200, 300), (5, 10**6)])
def test_the_law_is_beta(a, b):
    draws = [compiled_variate(float(a), float(b), uniform(a, index)) for index in range(40_000)]
    assert stats.kstest(draws, stats.beta(a, b).cdf).pvalue > ONE_IN_A_MILLION


def test_a_wrong_shape_would_be_noticed():
    draws = [compiled_variate(3.2, 2.0, uniform(1, index)) for index in range(40_000)]
    assert stats.kstest(draws, stats.beta(3, 2).cdf).pvalue < ONE_IN_A_MILLION


def test_the_law_of_the_tail():
    draws = [normal_tail(stream, 1.0) for stream in range(20_000)]
    assert stats.kstest(draws, stats.truncnorm(TAIL, math.inf).cdf).pvalue > ONE_IN_A_MILLION
    assert normal_tail(3, -1.0) == -normal_tail(3, 1.0)


def test_compiled_code_gets_the_same_bits():
    for index in range(5_000):
        a, b = 1.0 + (index * index) % 97, 1.0 + (7 * index) % 1009
        assert compiled_variate(a, b, uniform(5, index)) == beta_variate(a, b, uniform(5, index))


def test_the_logarithm_is_right_to_the_last_bits():
    for index in range(2_000):
        x = uniform(9, index) * 10.0 ** (index % 600 - 300)
        exact = flint.arb(x).log()
        assert abs(float(flint.arb(log(x)) - exact)) <= 4e-16 * max(1.0, abs(float(exact)))


def test_nearby_posteriors_give_nearby_draws():
    """One more success moves a draw by about the difference of the means: pairs stay paired."""
    moved = [beta_variate(21.0, 31.0, u) - beta_variate(20.0, 31.0, u) for u in (uniform(2, k) for k in range(4000))]
    apart = stats.beta(21, 31).mean() - stats.beta(20, 31).mean()
    assert np.mean(np.abs(np.array(moved) - apart) < 0.01) > 0.9


def test_gamma_variates_have_their_mean():
    draws = [gamma_variate(2.0, stream, 0) for stream in range(10_000)]
    assert abs(np.mean(draws) - 2.0) < 5 * math.sqrt(2.0 / 10_000)
