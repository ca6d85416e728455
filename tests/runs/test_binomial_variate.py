"""The binomial sampler against exact probabilities, from ten trials to 10^15."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.mechanisms.committing.kernel import committing_kernel
from support.native_functions import log_chance
from support.reference_runs import played

DRAWS = 100_000
CASES = [
    (10, 0.5), (40, 0.02), (30, 0.34), (21, 0.48), (50, 0.8), (10**4, 0.0009), (10**4, 0.0011), (1000, 0.5),
    (10**6, 0.999), (10**9, 1e-8), (10**9, 0.3), (10**12, 0.5), (10**15, 0.37), (10**15, 2e-14),
]  # fmt: skip


def draws_of(trials, chance, number=DRAWS):
    """What a lone arm is paid by the compiled kernel, for which all its rounds are one block."""
    market = cp.Market([cp.Agent("ana", 1, cp.Point(chance))], horizon=trials)
    job = runs_of(market, cp.mechanism("etc", arm_rounds=trials), {"ana": (1,)}, 5)
    return played(committing_kernel, job, 0, number).payoff[:, 0]


@pytest.mark.parametrize(("trials", "chance"), CASES)
def test_the_law_is_binomial(trials, chance):
    """A chi-square test over about 60 cells of equal weight; each of the 14 cases may fail once in 14 million."""
    law = stats.binom(trials, chance)
    draws = draws_of(trials, chance)
    edges = np.unique(law.ppf(np.linspace(0, 1, 61)[1:-1]))
    weights = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=len(weights))
    kept = weights * DRAWS >= 20
    counts, weights = np.append(counts[kept], counts[~kept].sum()), np.append(weights[kept], weights[~kept].sum())
    counts, weights = counts[weights * DRAWS > 5], weights[weights * DRAWS > 5]
    assert stats.chisquare(counts, weights / weights.sum() * counts.sum()).pvalue > 1e-6 / len(CASES)
    assert abs(draws.mean() - law.mean()) < 5.6 * law.std() / np.sqrt(DRAWS)


def test_the_tails_are_there():
    """Of 1,000 normal numbers 2.7 are beyond three standard deviations; within 6 standard errors."""
    draws = draws_of(10**9, 0.25)
    beyond = np.abs(draws - 0.25e9) > 3 * np.sqrt(10**9 * 0.1875)
    assert abs(beyond.mean() - 0.0027) < 6 * np.sqrt(0.0027 / DRAWS)


@pytest.mark.parametrize(("trials", "chance"), [case for case in CASES if min(case[1], 1 - case[1]) * case[0] > 1])
def test_probabilities_hold_at_every_size(trials, chance):
    """Against sixty decimals. From 2^53 trials on the product of trials and chance is itself rounded."""
    spread = np.sqrt(trials * chance * (1 - chance))
    with localcontext(prec=60):
        p = Decimal(chance)
        for step in (-6, -2.5, -1, 0, 0.3, 2, 7):
            k = min(max(int(trials * chance + step * spread), 0), trials)
            ways = ln_factorial(trials) - ln_factorial(k) - ln_factorial(trials - k)
            exact = float(ways + k * p.ln() + (trials - k) * (1 - p).ln())
            assert log_chance(k, trials, chance) == pytest.approx(exact, abs=1e-11 + 1e-22 * trials)


def ln_factorial(n):
    """By Stirling's series, with 2 pi as a decimal; its error is at most the next term."""
    if n < 200:
        return Decimal(math.factorial(n)).ln()
    two_pi = Decimal("6.283185307179586476925286766559005768394338798750211641949889")
    series = [Fraction(1, 12), Fraction(-1, 360), Fraction(1, 1260), Fraction(-1, 1680), Fraction(1, 1188)]
    rest = sum(Decimal(c.numerator) / c.denominator / Decimal(n) ** (2 * k + 1) for k, c in enumerate(series))
    return (n + Decimal("0.5")) * Decimal(n).ln() - n + two_pi.ln() / 2 + rest


def test_the_ends():
    assert [*draws_of(5, 0.0, 1), *draws_of(5, 1.0, 1)] == [0, 5]
    assert [*draws_of(10**15, 5e-324, 1), *draws_of(10**15, 1 - 2.0**-53, 1)] == [0, 10**15]
