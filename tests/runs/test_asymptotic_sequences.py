"""Asymptotic confidence sequences: they cover at all times of long samples, are narrow, and say what they are."""

import numpy as np
import pytest
from scipy.stats import binom

import cloneproof as cp
from cloneproof.runs.statistics import (
    FIRST_TIME,
    TIGHTEST,
    TIGHTEST_OF_SLOW,
    Bounds,
    Estimands,
    RunTotals,
    asymptotic_widths,
)

PAIR = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=90)


of_each_length = pytest.mark.parametrize("tightest", [TIGHTEST, TIGHTEST_OF_SLOW])


@of_each_length
def test_they_cover_a_mean_at_all_times_from_the_first_one_on(tightest):
    """400 samples of 2,000 observations, looked at 120 times each, at 90 %."""
    values = np.random.default_rng(5).normal(size=(400, 2000))
    times = np.unique(np.geomspace(64, 2000, 120).astype(int))
    means = np.cumsum(values, axis=1)[:, times - 1] / times
    squares = np.cumsum(values**2, axis=1)[:, times - 1] / times
    variances = squares - means**2
    widths = np.stack([asymptotic_widths(variances[:, k], t, 0.1, 0.0, tightest) for k, t in enumerate(times)], 1)
    missed = int((np.abs(means) > widths).any(axis=1).sum())
    assert missed <= binom.isf(1e-6, 400, 0.1)
    at_one_time = np.abs(means[:, -1]) > 1.645 * np.sqrt(squares[:, -1] / times[-1])
    assert (np.abs(means) > 1.645 * np.sqrt(squares / times)).any(axis=1).sum() > 2 * at_one_time.sum()  # the CLT's


def test_the_width_is_near_that_of_the_central_limit_theorem():
    for count, most in ((256, 1.45), (1000, 1.45), (10**6, 2.0)):
        clt = 2.576 / np.sqrt(count)
        assert 1.0 < float(asymptotic_widths(np.array([1.0]), count, 0.01)[0]) / clt < most
    assert np.isinf(asymptotic_widths(np.array([1.0]), FIRST_TIME - 1, 0.01)).all()


@of_each_length
def test_a_rare_loss_that_few_pairs_miss_is_not_taken_for_a_gain(tightest):
    """Copies that win a little in most pairs, and lose all of a rare win of honesty: nothing is gained on average.

    The rarest are seen in no pair at all. Without room for what was not seen nearly every audit would be wrong; with it
    at most 2 % are, at 99 %, looked at 60 times, whatever the chance of the loss.
    """
    draws = np.random.default_rng(8)
    times = np.unique(np.geomspace(FIRST_TIME, 2000, 60).astype(int))
    for chance in (1 / 3, 1 / 12, 1 / 50, 1 / 200, 1 / 1000):
        gains = chance - (draws.random((1000, 2000)) < chance)  # of one honest payoff, the most there is
        means = np.cumsum(gains, axis=1)[:, times - 1] / times
        variances = np.maximum(0.0, np.cumsum(gains**2, axis=1)[:, times - 1] / times - means**2) * times / (times - 1)
        wrong = {}
        for unseen in (0.0, 1.0):
            widths = [asymptotic_widths(variances[:, k], int(t), 0.01, unseen, tightest) for k, t in enumerate(times)]
            wrong[unseen] = int((means - np.stack(widths, axis=1) > 0).any(axis=1).sum())
        assert wrong[1.0] <= binom.isf(1e-6, 1000, 0.02)
        assert chance > 0.1 or wrong[0.0] > 200


def test_few_observations_have_the_range():
    totals = RunTotals.empty(Estimands((Bounds(0.0, 10.0),))).plus(np.full((4, 1), 5.0))
    assert totals.half_widths(0.01, "asymptotic").tolist() == [5.0]


def test_they_are_narrower():
    proven, limit = (
        cp.gain(PAIR, cp.mechanism("thompson"), "ana", (8,), stop_when_decided=False, search=search)
        for search in (
            cp.Search(runs=200, seed=2, bounds="distribution-free"),
            cp.Search(runs=200, seed=2, bounds="asymptotic"),
        )
    )
    assert limit.estimate.value == proven.estimate.value
    assert limit.estimate.error < proven.estimate.error
    assert "asymptotic confidence sequence" in limit.estimate.method
    assert (limit.estimate.kind, limit.estimate.level) == ("confidence", 0.99)
    assert (limit.estimate - proven.honest).level == 0.98  # both hold
    found = cp.evaluate(PAIR, cp.mechanism("thompson"), search=cp.Search(runs=200, bounds="asymptotic"))
    assert {found.regret.kind, found.payoff["bo"].kind} == {"confidence"}
    audited = cp.audit(PAIR, cp.mechanism("thompson"), search=cp.Search(runs=64, bounds="asymptotic"), agent="ana")
    assert {witness.gain.kind for witness in audited.tried} == {"confidence"}
    assert audited.verdict != "exploitable" or "an interval" in str(audited.scope)
