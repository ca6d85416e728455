import itertools
import math

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.market import family_names, reward_family

MEANS = (0.0, 0.1, 0.5, 0.9, 1.0)
LEVELS = [(k + 0.5) / 400 for k in range(400)]


@pytest.mark.parametrize("name", family_names())
def test_rewards_have_the_mean_and_lie_in_the_support(name):
    family = reward_family(name)
    for mean in MEANS:
        rewards = [family.sample(mean, u) for u in LEVELS]
        assert all(family.allows(reward) for reward in rewards)
        assert math.fsum(rewards) / len(rewards) == pytest.approx(mean, abs=5e-3)


@pytest.mark.parametrize("name", family_names())
def test_rewards_are_stochastically_ordered_by_the_mean(name):
    family = reward_family(name)
    for low, high in itertools.pairwise(MEANS):
        assert all(family.sample(low, u) <= family.sample(high, u) for u in LEVELS)


@pytest.mark.parametrize("name", family_names())
def test_the_spread_is_a_sub_gaussian_standard_deviation(name):
    """E exp(x (r - mean)) <= exp(x^2 spread^2 / 2), up to the coarse grid of levels."""
    family = reward_family(name)
    fine = (np.arange(20_000) + 0.5) / 20_000
    for mean in MEANS:
        deviations = np.array([family.sample(mean, u) for u in fine]) - mean
        for x in (-4.0, -1.0, 1.0, 4.0):
            assert np.mean(np.exp(x * deviations)) <= math.exp(x * x * family.spread**2 / 2) * 1.001


def test_every_family_states_its_support_in_words():
    assert {name: reward_family(name).support for name in ("bernoulli", "deterministic", "gaussian", "beta")} == {
        "bernoulli": "{0, 1}",
        "deterministic": "[0, 1]",
        "gaussian": "any finite number",
        "beta": "[0, 1]",
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("gausian", "did you mean 'gaussian'"),
        ({"family": "gaussian", "sdd": 1}, "did you mean 'sd'"),
        ({"family": "gaussian", "sd": 0}, "above 0"),
        ({"family": "gaussian", "sd": math.nan}, "above 0"),
        ({"family": "beta", "concentration": -1}, "above 0"),
        ({}, "expected rewards"),
        (3, "expected rewards"),
    ],
)
def test_bad_families_get_one_clear_sentence(spec, words):
    with pytest.raises(cp.errors.MarketError, match=words):
        reward_family(spec)
