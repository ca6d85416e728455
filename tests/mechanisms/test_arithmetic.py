"""Beta variates against SciPy's laws, and the tables that they rest on against their definition."""

import math
import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from cloneproof._lib.randomness import uniform
from cloneproof.laws import logarithm
from cloneproof.laws.logarithm import ENDS, HEIGHTS, TAIL, beta_variate, kl_upper_bound, log, normal_tail

ONE_IN_A_MILLION = 1e-6


def test_layers_have_one_area_and_close_at_the_peak():
    area = ENDS[256] * HEIGHTS[255]
    tail = math.sqrt(math.pi / 2) * math.erfc(TAIL / math.sqrt(2))
    assert ENDS[255] == TAIL
    assert area == pytest.approx(TAIL * math.exp(-(TAIL**2) / 2) + tail, rel=1e-13)
    assert np.allclose(np.exp(-(ENDS[:256] ** 2) / 2), HEIGHTS[:256], rtol=1e-13)
    assert np.allclose(ENDS[1:256] * (HEIGHTS[:255] - HEIGHTS[1:256]), area, rtol=1e-11)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 40), (3, 2), (17, 1), (200, 300), (5, 10**6)])
def test_the_law_is_beta(a, b):
    draws = [beta_variate(float(a), float(b), uniform(a, index)) for index in range(5_000)]
    assert stats.kstest(draws, stats.beta(a, b).cdf).pvalue > ONE_IN_A_MILLION


def test_a_wrong_shape_would_be_noticed():
    draws = [beta_variate(3.4, 2.0, uniform(1, index)) for index in range(5_000)]
    assert stats.kstest(draws, stats.beta(3, 2).cdf).pvalue < ONE_IN_A_MILLION


def test_the_law_of_the_tail():
    draws = [normal_tail(stream, 1.0) for stream in range(5_000)]
    assert stats.kstest(draws, stats.truncnorm(TAIL, math.inf).cdf).pvalue > ONE_IN_A_MILLION
    assert normal_tail(3, -1.0) == -normal_tail(3, 1.0)


def test_the_logarithm_is_right_to_the_last_bits():
    for index in range(2_000):
        x = uniform(9, index) * 10.0 ** (index % 600 - 300)
        exact = Decimal(x).ln()
        assert abs(Decimal(log(x)) - exact) <= Decimal("4e-16") * max(1, abs(exact))


def test_nearby_posteriors_give_nearby_draws():
    """One more success moves a draw by about the difference of the means: pairs stay paired."""
    moved = [beta_variate(21.0, 31.0, u) - beta_variate(20.0, 31.0, u) for u in (uniform(2, k) for k in range(4000))]
    apart = stats.beta(21, 31).mean() - stats.beta(20, 31).mean()
    assert np.mean(np.abs(np.array(moved) - apart) < 0.01) > 0.9


def divergence(successes, pulls, q):
    p, total = Decimal(successes) / pulls, Decimal(0)
    if successes:
        total += p * (p / q).ln()
    if successes < pulls:
        total += (1 - p) * ((1 - p) / (1 - q)).ln()
    return pulls * total


def pairs(number):
    draw = random.Random(3)
    for _ in range(number):
        pulls = draw.randint(1, draw.choice([3, 50, 10**4, 10**8]))
        successes = draw.choice([0, pulls, draw.randint(0, pulls), min(pulls, draw.randint(0, 4))])
        yield successes, pulls, draw.choice([0.1, 1.0, 13.8, 20.7])


def test_the_bound_is_right_to_a_few_units_in_the_last_place():
    with localcontext(prec=60):
        for successes, pulls, width in pairs(400):
            q = kl_upper_bound(successes / pulls, float(pulls), width)
            if q == 1.0:
                continue
            assert divergence(successes, pulls, Decimal(q) * (1 - Decimal(2) ** -49)) < Decimal(width)
            above = Decimal(q) * (1 + Decimal(2) ** -49)
            assert above > 1 or divergence(successes, pulls, above) > Decimal(width)


def test_close_calls_are_ordered_as_decimals_order_them():
    """Neighbours (n, s), (n', s') whose bounds are nearest to each other among thousands."""
    listed = sorted((kl_upper_bound(s / n, float(n), 9.0), n, s) for n in range(1, 120) for s in range(n + 1))
    with localcontext(prec=60):
        for (low, n, s), (high, other_n, other_s) in pairwise(listed):
            if high == low or high >= 1.0 or high - low > 1e-9:
                continue
            middle = (Decimal(low) + Decimal(high)) / 2
            assert divergence(s, n, middle) > 9
            assert divergence(other_s, other_n, middle) < 9


def test_more_successes_never_lower_the_bound():
    for pulls in (1, 7, 100, 12345):
        bounds = [kl_upper_bound(s / pulls, float(pulls), 5.0) for s in range(0, pulls + 1, max(1, pulls // 200))]
        assert all(a < b or a == b == 1.0 for a, b in pairwise(bounds))


def test_the_table_of_logarithms_is_right_when_threads_extend_it_at_once(monkeypatch):
    monkeypatch.setattr(logarithm, "_table", [0.0])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: [logarithm.ln(t) for t in range(1, 10_000)], range(4)))
    assert all(math.isclose(logarithm.ln(t), math.log(t), rel_tol=1e-15) for t in range(2, 10_000))


@pytest.mark.parametrize("wide", [np.longdouble, np.float64], ids=["long double", "no long double"])
def test_logarithms_of_a_block_are_those_of_decimals(monkeypatch, wide):
    """Wherever long doubles leave the rounding open, and everywhere where they are but doubles."""
    asked, one = [], logarithm._ln
    monkeypatch.setattr(logarithm, "_ln", lambda t: asked.append(t) or one(t))
    monkeypatch.setattr(np, "longdouble", wide)
    for first in (2, 99_000, 1_999_000):
        block = logarithm._logarithms(first, 1000)
        assert block == [one(t) for t in range(first, first + 1000)]
    assert len(asked) == 3000 if wide is np.float64 else 0 < len(asked) < 300
