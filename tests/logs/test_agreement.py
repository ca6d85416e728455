"""Whether rewards contradict one item: simulated copies and different items, by a test of its own making."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest

from cloneproof.logs.log import LoggedArm
from cloneproof.logs.originals import UNLIKELY, agreement


def arms(rounds, totals, squares=None):
    squares = totals if squares is None else squares
    return [
        LoggedArm("ana", f"x{k}", int(n), Fraction(float(total)), Fraction(float(square)))
        for k, (n, total, square) in enumerate(zip(rounds, totals, squares, strict=True))
    ]


def one_item(dice, size, spread=0.14):
    """Arms of one item, whose log-odds vary by the spread."""
    rounds = dice.integers(20_000, 200_000, size)
    rates = 1 / (1 + np.exp(3.0 - dice.normal(0, spread, size)))
    return rounds, dice.binomial(rounds, rates)


@pytest.mark.parametrize("size", [2, 5])
def test_p_values_of_copies_are_even_and_those_of_other_spreads_are_not(size):
    dice = np.random.default_rng(3)
    said = [agreement(arms(*one_item(dice, size))) for _ in range(2_000)]
    assert kstest(said, "uniform").pvalue > 1e-6
    for spread in (0.0, 0.3):
        other = [agreement(arms(*one_item(dice, size, spread))) for _ in range(2_000)]
        assert kstest(other, "uniform").pvalue < 1e-6


def test_it_is_the_square_of_the_difference_of_log_odds_for_two():
    """z of the difference, half a click added to each count, over sampling and twice the spread."""
    clicks, views = np.array([120.0, 190.0]), np.array([4_000, 4_000])
    hits, misses = clicks + 0.5, views - clicks + 0.5
    z = np.diff(np.log(hits / misses))[0] / np.sqrt((1 / hits + 1 / misses).sum() + 2 * 0.14**2)
    from scipy.stats import norm

    assert agreement(arms(views, clicks)) == pytest.approx(2 * norm.sf(abs(z)), rel=1e-9)
    assert 2 * norm.sf(3.3) == pytest.approx(UNLIKELY, rel=0.05)


def test_rewards_of_less_variance_say_more_and_arms_never_served_nothing():
    views, totals = [1_000, 1_000], [300.0, 400.0]
    spread_out, narrow = agreement(arms(views, totals)), agreement(arms(views, totals, [91.0, 161.0]))
    assert narrow < 0.03 < spread_out
    assert agreement(arms([*views, 0], [*totals, 0.0])) == spread_out
    assert agreement(arms([1_000, 0], [300.0, 0.0])) is None
    assert 0 < agreement(arms([1, 1], [0.0, 1.0])) <= 1
    assert agreement(arms([50, 60], [0.0, 0.0])) > 0.9
