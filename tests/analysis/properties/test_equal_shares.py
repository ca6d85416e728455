"""The sequential test of equal shares keeps both of its error rates, which its users set to one in a million."""

import numpy as np
import pytest

from cloneproof.analysis.properties.equal_shares import biased_events, least_bias

RATE, MOST, REPEATS = 0.05, 300, 200
TOO_OFTEN = 0.05 + np.sqrt(np.log(1e6) / (2 * REPEATS))  # Hoeffding: once in a million at the rate itself


def named(probabilities, random):
    """Whether some event is named, and after how many trials, where one of them happens in each trial."""
    trials = ([event] for event in random.choice(len(probabilities), p=probabilities, size=MOST))
    biased, counts, seen = biased_events(trials, len(probabilities), 0.25, RATE, MOST)
    assert counts.sum() == seen
    return biased, seen


def test_equal_shares_are_seldom_called_biased_and_mostly_cleared_early():
    random = np.random.default_rng(1)
    found = [named([0.25] * 4, random) for _ in range(REPEATS)]
    assert np.mean([bool(biased) for biased, _ in found]) <= TOO_OFTEN
    assert np.mean([seen for _, seen in found]) < MOST / 2


@pytest.mark.parametrize("side", [-1, 1])
def test_a_bias_of_the_promised_size_is_seldom_missed(side):
    random, bias = np.random.default_rng(2), side * least_bias(4, RATE, MOST)
    off = [0.25 + bias, *[0.25 - bias / 3] * 3]
    assert np.mean([not named(off, random)[0] for _ in range(REPEATS)]) <= TOO_OFTEN


@pytest.mark.parametrize(("of_50", "biased"), [(17, []), (18, [0])])
def test_a_bias_between_the_two_is_decided_at_the_last_trial(of_50, biased):
    """Half the promised bias is 0.098: a share of 0.34 is within it, one of 0.36 is beyond."""
    trials = [[0] if number * of_50 % 50 < of_50 else [1 + number % 7 % 3] for number in range(MOST)]
    found, counts, seen = biased_events(trials, 4, 0.25, RATE, MOST)
    assert (found, seen, counts[0]) == (biased, MOST, MOST * of_50 // 50)


def test_too_few_trials_are_an_error():
    with pytest.raises(ValueError, match="expected 300 trials, got 1"):
        biased_events([[0]], 4, 0.25, RATE, MOST)
