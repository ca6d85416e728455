"""Confidence sequences cover: at every time at once, so wherever one chooses to stop."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

import cloneproof as cp
from cloneproof.runs.statistics import (
    COSTS,
    CUT,
    LOG_WEIGHTS,
    RATES,
    Bounds,
    Estimands,
    RunTotals,
    _bets,
    cut,
    deviations,
    gain_bounds,
    payoff_bounds,
    regret_bounds,
    round_up,
    served_bounds,
)
from support.sizes import LONG

ONE_IN_A_MILLION = 1e-6
LAWS = {
    "fair coin": (lambda g, shape: g.integers(0, 2, shape) * 1.0, 0.5),
    "rare event": (lambda g, shape: (g.random(shape) < 0.01) * 1.0, 0.01),
    "almost sure": (lambda g, shape: (g.random(shape) < 0.95) * 1.0, 0.95),
    "uniform": (lambda g, shape: g.random(shape), 0.5),
    "narrow": (lambda g, shape: 0.3 + 0.001 * g.random(shape), 0.3005),
    "constant": (lambda g, shape: np.full(shape, 1.0), 1.0),
    "skewed": (lambda g, shape: g.beta(0.2, 2.0, shape), 0.2 / 2.2),
}


def log_wealth(deviation, variations, scales, bold=0.0):
    """The logarithm of the sum of bets at S = `deviation`."""
    slopes, offsets = _bets(variations, scales, bold)
    return np.logaddexp.reduce(deviation[..., None] * slopes + offsets, axis=-1)


def most_misses(alpha, trials):
    """More misses than this are rarer than one in a million for a sequence that covers."""
    return int(binom.isf(ONE_IN_A_MILLION, trials, alpha))


def paths(values, kept=np.minimum):
    """S and V after every observation of every row, c = 1 and 1/2, by the guesses that `RunTotals` makes.

    With c = 1/2 they are kept at most in the middle for bets that S grows, at least there for bets that it falls.
    """
    count = np.arange(1, values.shape[1] + 1)
    sums = np.cumsum(values - 0.5, axis=1)
    guesses = np.concatenate([np.zeros((len(values), 1)), sums[:, :-1] / count[1:]], axis=1)
    squares = [(values - 0.5 - guesses) ** 2, (values - 0.5 - kept(guesses, 0.0)) ** 2]
    return sums, np.stack([np.cumsum(each, axis=1) for each in squares], axis=2), count


SCALES = np.array([1.0, 0.5])


TRIALS, LENGTH = (300, 800) if LONG else (100, 200)


@pytest.mark.parametrize("bold", [0.0, 0.5])
@pytest.mark.parametrize("law", LAWS)
def test_a_path_leaves_its_interval_no_more_often_than_allowed_however_one_stops(law, bold):
    """The adversary stops the moment that the interval excludes the truth, or else where it is nearest to doing so."""
    draw, mean = LAWS[law]
    values = draw(np.random.default_rng(4), (TRIALS, LENGTH))
    sums, grows, count = paths(values)
    above = sums - (mean - 0.5) * count
    wealth = np.maximum(  # above ln(2/alpha): the truth is excluded
        log_wealth(above, grows, SCALES, bold), log_wealth(-above, paths(values, np.maximum)[1], SCALES, bold)
    )
    for alpha in (0.2, 0.05, 0.01):
        missed = (wealth >= math.log(2 / alpha)).any(axis=1).sum()
        assert missed <= most_misses(alpha, TRIALS), (alpha, missed)


def test_the_same_check_catches_intervals_for_one_fixed_time():
    """The central limit theorem's interval, watched all along, leaves the truth out far too often."""
    sums, _, count = paths(LAWS["fair coin"][0](np.random.default_rng(4), (TRIALS, LENGTH)))
    missed = (np.abs(sums) > norm.isf(0.025) * 0.5 * np.sqrt(count))[:, 30:].any(axis=1).sum()
    assert missed > most_misses(0.05, TRIALS)


def test_it_catches_a_variation_that_knows_the_future():
    """Guessing each observation by itself (V = 0) is no bet from the past, and does not cover."""
    sums, _, _ = paths(LAWS["fair coin"][0](np.random.default_rng(4), (TRIALS, LENGTH)))
    missed = (log_wealth(np.abs(sums), np.zeros((*sums.shape, 2)), SCALES) >= math.log(2 / 0.05)).any(axis=1).sum()
    assert missed > most_misses(0.05, TRIALS)


def test_strata_cover_as_well():
    """Unequal weights and unlike strata; stopped at the first pass that excludes the truth."""
    generator, trials, alpha = np.random.default_rng(5), 30, 0.1
    weights, means = (0.5, 0.3, 0.2), np.array([0.1, 0.5, 0.9])
    estimands, truth = Estimands((Bounds(0.0, 1.0),), weights), float(np.dot(weights, means))
    missed = 0
    for _ in range(trials):
        state = RunTotals.empty(estimands)
        for _ in range(20):
            state = state.plus((generator.random((8, 3)) < means).reshape(-1, 1) * 1.0)
            if abs(state.means[0] - truth) > state.half_widths(alpha)[0]:
                missed += 1
                break
    assert missed <= most_misses(alpha, trials)


def test_variations_in_fractions():
    """The three V of unlike strata, beside plain sums of fractions."""
    weights, reach, bounds = (0.5, 0.125, 0.375), (0.5, 1.0, 0.25), Bounds(-2.0, 4.0)
    rows = np.random.default_rng(3).integers(-8, 17, (12, 3)) / 16 * np.array(reach) * 4
    rows = np.clip(rows, -2 * np.array(reach), 4 * np.array(reach))
    scale = max(Fraction(weight) * Fraction(part) for weight, part in zip(weights, reach, strict=True)) * 3
    expected = [Fraction(0)] * 3
    for stratum, (weight, part) in enumerate(zip(map(Fraction, weights), map(Fraction, reach), strict=True)):
        values, room = [Fraction(x) - part for x in rows[:, stratum]], scale / weight - 3 * part
        for place, value in enumerate(values):
            guess = sum(values[:place], Fraction(0)) / (place + 1)
            for way, kept in enumerate((guess, min(guess, room), max(guess, -room))):
                assert way == 0 or (value - kept if way == 1 else kept - value) * weight >= -scale
                expected[way] += (weight * (value - kept)) ** 2
    totals = RunTotals.empty(Estimands((bounds,), weights, reach=reach)).plus(rows.reshape(-1, 1))
    assert totals.variations[:, 0] == pytest.approx([float(each) for each in expected], rel=1e-12)
    assert len({round(float(each), 9) for each in expected}) == 3


def test_each_bet_is_fair_by_the_inequality_it_rests_on():
    """Fan, Grama and Liu: exp(r x - f(r) x^2) <= 1 + r x for x >= -1, the reason why the wealth cannot grow."""
    x = np.linspace(-1, 3, 4001)
    for rate, cost in zip(RATES, COSTS, strict=True):
        assert (np.exp(rate * x - cost * x * x) <= (1 + rate * x) * (1 + 1e-12)).all()
    assert np.exp(LOG_WEIGHTS).sum() <= 1 + 1e-12


@given(st.floats(0, 1e12), st.floats(1, 9), st.floats(1e-9, 0.9))
def test_the_bound_solves_its_equation_from_above(variation, factor, alpha):
    variations = np.array([variation, variation * factor])
    bound = deviations(variations, SCALES, alpha)
    goal = math.log(2 / alpha)
    assert log_wealth(bound, variations, SCALES) >= goal - 1e-9 * max(1.0, goal, variation * 1e-6)
    assert log_wealth(bound * (1 - 1e-6), variations, SCALES) <= goal


def width(count, variance, beside_middle):
    """The half-width at 99 % of observations in [0, 1] with that variance, so far from the middle."""
    variations = count * np.array([variance, variance + beside_middle**2])
    return float(deviations(variations, SCALES, 0.01)) / count


def test_widths_beside_the_central_limit_theorem_and_hoeffding():
    """At 99 %: 1.6 to 1.9 times the width of a fixed time's normal interval, for a thousand to 10^8 fair coins."""
    for count in (10**3, 10**4, 10**6, 10**8):
        normal = norm.isf(0.005) * 0.5 / math.sqrt(count)
        hoeffding = math.sqrt(math.log(2 / 0.01) / (2 * count))
        assert 1.6 < width(count, 0.25, 0.0) / normal < 1.9
        assert width(count, 0.25, 0.0) / hoeffding < 1.4
        assert width(count, 1e-4, 0.3) < hoeffding / (2 if count < 10**4 else 8)
        assert width(count, 1e-4, 0.0) < width(count, 1e-4, 0.3)


@given(st.floats(1e-300, 1e300))
def test_rounding_goes_up_and_not_far(value):
    up = float(round_up(np.array([value]))[0])
    assert value <= up <= value * (1 + 2**-31)


def test_bounds_of_markets():
    agents = [cp.Agent("ana", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.5))]
    market = cp.Market(agents, horizon=100, share=0.5)
    assert payoff_bounds(market) == Bounds(0.0, 50.0)
    assert served_bounds(market, "ana") == Bounds(0.0, 37.5)
    assert gain_bounds(market, "ana") == Bounds(-37.5, 37.5)
    assert regret_bounds(market) == Bounds(0.0, 50.0)
    noisy = cp.Market([cp.Agent("ana", 1, cp.Uniform(0, 1))], 100, 0.5, rewards={"family": "gaussian", "sd": 0.2})
    assert payoff_bounds(noisy) == Bounds(0.0, 50.0, 1.0)
    assert gain_bounds(noisy, "ana") == Bounds(-50.0, 50.0)  # means have no noise
    assert regret_bounds(noisy) == Bounds(0.0, 100.0)


def test_cutting_moves_the_mean_of_a_gaussian_by_less_than_the_bias():
    """The exact loss of both tails, against the bound that the error includes."""
    bounds = Bounds(0.0, 1.0, noise=0.5)
    exact = 2 * 0.5 * (norm.pdf(CUT) - CUT * norm.sf(CUT))
    assert 0 < exact <= bounds.bias < 1e-14


def test_an_outcome_out_of_bounds_is_an_error():
    assert cut(np.array([[1e9]]), [Bounds(0.0, 1.0, noise=1.0)]) == 9.0


@given(st.data())
def test_progress_is_a_fold_whatever_the_pieces(data):
    """Any cuts: the same bits."""
    strata = data.draw(st.integers(1, 3))
    weights = {1: (1.0,), 2: (0.75, 0.25), 3: (0.5, 0.3, 0.2)}[strata]
    estimands = Estimands((Bounds(0.0, 1.0), Bounds(-2.0, 1.0, 0.1)), weights, "a job")
    rows = np.random.default_rng(data.draw(st.integers(0, 99))).random((12 * strata, 2))
    whole = RunTotals.empty(estimands).plus(rows)
    cuts = sorted(data.draw(st.sets(st.integers(1, 11), max_size=5)))
    pieces = RunTotals.empty(estimands)
    for piece in np.split(rows, [place * strata for place in cuts]):
        pieces = pieces.plus(piece)
    assert pieces == whole
    assert pieces.runs == 12 * strata
    assert pieces.estimates(0.99, "so") == whole.estimates(0.99, "so")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_estimates_are_means_inside_their_bounds(values):
    state = RunTotals.empty(Estimands((Bounds(0.0, 1.0),))).plus(np.array(values)[:, None])
    (estimate,) = state.estimates(0.95, "by hand")
    assert estimate.value == pytest.approx(math.fsum(values) / len(values), abs=1e-12)
    few = len(values) < 16
    assert estimate.error == math.inf if few else estimate.error <= max(estimate.value, 1 - estimate.value)
    assert estimate.kind == "confidence"
    assert estimate.method == "by hand, confidence sequence at 95 %"
