"""The claims' tail bounds against exact laws, and where a claim of the paper is false."""

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

import cloneproof as cp
from cloneproof import bounds
from cloneproof.bounds.pairs import log_overtaken_pair
from support.fraction_etc import overtaken_pair


@pytest.mark.parametrize("rounds", [1, 2, 5, 12, 30])
def test_overtaken_bounds_the_exact_chance_in_fractions(rounds):
    eighths = [Fraction(k, 8) for k in range(9)]
    found = [(overtaken_pair(a, b, rounds), float(b - a)) for a in eighths for b in eighths if a < b]
    assert all(chance <= bounds.overtaken(gap, rounds) for chance, gap in found)
    assert all(bounds.overtaken(gap, rounds) <= bounds.mistake_paper(gap, rounds) for _, gap in found)
    caught = any(chance > bounds.overtaken(gap, rounds) ** 2 for chance, gap in found)
    assert caught == (rounds >= 5)  # twice the exponent is too much, which a few rounds do not show


def test_the_conditions_are_monotone_and_covered_gap_is_where_it_starts():
    for originals in (2, 3, 8):
        for horizon in (10, 10**4, 10**9):
            for m in (1, 30, 1000):
                gap = bounds.covered_gap(originals, m, horizon)
                if math.isfinite(gap):
                    assert bounds.holdout_applies(originals, gap, m, horizon)
                    assert not bounds.holdout_applies(originals, gap * (1 - 1e-9), m, horizon)
                    assert bounds.holdout_gain(originals, gap, m, horizon) == 0
                    assert bounds.trp_applies(originals, gap, m, horizon)
                else:
                    assert not bounds.holdout_applies(originals, 1.0, m, horizon)
                    assert bounds.holdout_gain(originals, 1.0, m, horizon) > 0
    m = [bounds.arm_rounds_without_gap(10**k) for k in range(2, 13)]
    gaps = [bounds.covered_gap(4, rounds, 10**k) for k, rounds in zip(range(2, 13), m, strict=True)]
    assert all(a > b for a, b in pairwise(gaps))  # without a known gap, ever smaller ones are covered
    assert bounds.covered_gap(1, 1, 10**9) == 0


@pytest.mark.parametrize("originals", [2, 3])
def test_no_copy_gains_more_than_the_bound_says(originals):
    """At m too small copies do pay, by no more than 2 eps T."""
    rng = random.Random(originals)
    paid = 0
    for _ in range(40):
        low, gap = rng.choice([(0.0, 0.25), (0.25, 0.5), (0.0, 0.5), (0.5, 0.25)])
        m, horizon = rng.randint(1, 12), rng.choice([60, 500, 4000])
        made = cp.mechanism("holdout-h-etc", arm_rounds=m, score_rounds=rng.randint(1, 5), max_arms=2 * originals)
        agents = [
            cp.Agent("ana", originals, cp.Discrete([low, low + gap], [0.5, 0.5])),
            cp.Agent("bo", 1, cp.Point(rng.randrange(9) / 8)),
        ]
        market = cp.Market(agents, horizon=horizon)
        copies = tuple(rng.randint(1, 3) for _ in range(originals))
        gain = cp.evaluate(market, made, {"ana": copies}).payoff["ana"] - cp.evaluate(market, made).payoff["ana"]
        assert gain.low <= bounds.holdout_gain(originals, gap, m, horizon)
        paid += gain.low > 1e-6
    assert paid > 5


@pytest.mark.parametrize("known", [(0.5, 0.5), (0.5, None), (None, 0.5), (None, None)])
def test_the_award_horizon_is_where_awards_begin_for_good(known):
    """Against a scan: the last horizon that is too short for the trials, and one more."""
    found = bounds.holdout_award_horizon(2, 2, *known)

    def trials(horizon):
        return 2 * bounds.holdout_trial(*bounds.holdout_rounds(2, 2, *known, horizon), 2)

    assert max(horizon for horizon in range(1, 3 * found) if horizon < trials(horizon)) + 1 == found


def test_the_exact_tail_of_means_that_nearly_coincide_needs_no_memory():
    """Beyond a million rounds it is Chernoff's, which is no less: a sum of 10^13 terms was tried before."""
    market = cp.Market([cp.Agent(name, 2, cp.Discrete([0.5, 0.5 + 1e-6], [0.5, 0.5])) for name in "ab"], horizon=10**6)
    assert cp.mechanism("holdout-h-etc", market=market).parameters["arm_rounds"] > 10**9
    for u, v in ((0.3, 0.4), (0.01, 0.02)):
        exact, chernoff = (bounds.log_overtaken_pair(u, v, 2000, tail) for tail in ("exact", "chernoff"))
        assert exact <= chernoff
        assert bounds.log_overtaken_pair(u, v, 2 * 10**6, "exact") == bounds.log_overtaken_pair(
            u, v, 2 * 10**6, "chernoff"
        )


@pytest.mark.parametrize(
    ("low", "high", "rounds"), [(0.002, 0.0025, 200_000), (0.4, 0.41, 50_000), (1e-5, 2e-5, 10**5)]
)
def test_binomial_terms_far_from_both_means_do_not_matter(low, high, rounds):
    """The sum over all counts, by SciPy's own tails."""
    counts = np.arange(rounds + 1)
    whole = logsumexp(binom.logpmf(counts, rounds, high) + binom.logsf(counts - 1, rounds, low))
    assert log_overtaken_pair(low, high, rounds, "exact") == pytest.approx(whole, abs=3e-6)
