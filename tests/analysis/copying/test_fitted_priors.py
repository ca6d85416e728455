"""Priors fitted to arms' rewards, and the probability of copies at stated odds: planted, counted, calibrated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from cloneproof.analysis.copying.judging import judge_arms
from cloneproof.analysis.copying.priors import believed, binomial_evidence, em_fit

GRID = np.linspace(0.0, 1.0, 2001)
EVEN = np.full(len(GRID), 1 / len(GRID))
Z = norm.isf(1e-6 / 20)  # two-sided, over the ten comparisons of a test: 1e-6 for all of them together


def evidence(means, rewards):
    """Log-likelihoods of arms with these means of so many rewards."""
    means = np.asarray(means, dtype=float)
    return binomial_evidence(means, believed(means, np.full(len(means), float(rewards)), GRID[1], 4000.0), GRID)


def on_grid(values, weights):
    prior = np.zeros(len(GRID))
    prior[[round(v * (len(GRID) - 1)) for v in values]] = weights
    return prior


def drawn(rng, means, pulls):
    return rng.binomial(pulls, means) / pulls


# ---- evidence


@pytest.mark.parametrize(("rewards", "mean"), [(1, 0.0), (7, 3 / 7), (250, 0.5), (40, 1.0)])
def test_binary_evidence_is_binomial(rewards, mean):
    want = binom.logpmf(round(rewards * mean), rewards, GRID)
    assert np.allclose(np.exp(evidence([mean], rewards)), np.exp(want - want.max()))


@pytest.mark.parametrize("mean", [0.50025, 0.00037, 0.99991, 1e-5])
def test_no_number_of_rewards_outruns_the_grid(mean):
    """Two arms of one mean between the grid's points, pulled a hundred million times, still look like copies."""
    far = 20 * GRID[1] if mean < 0.5 else -20 * GRID[1]
    seen, other = np.exp(evidence([mean, mean + far], 10**8))
    assert bayes_factor(seen, seen, EVEN) > 100
    assert bayes_factor(seen, other, EVEN) < 1e-3


# ---- fit


def test_em_climbs_to_the_maximum():
    """At the maximum of the concave objective the gradient is the same wherever there is weight, and less elsewhere."""
    rng = np.random.default_rng(1)
    table = np.exp(evidence(drawn(rng, [0.3] * 8, 60), 60))
    pseudo = np.full(len(GRID), 1 / len(GRID))
    prior = em_fit(table, np.ones(len(table)), steps=300, small=1e-5)

    def objective(weights):
        return np.log(table @ weights).sum() + pseudo @ np.log(weights)

    best = objective(prior)
    for _ in range(20):
        other = rng.dirichlet(np.full(len(GRID), 0.5)) + 1e-12
        for part in (0.01, 0.3):
            assert objective((1 - part) * prior + part * other / other.sum()) < best


def test_the_fit_finds_a_planted_prior():
    """Deconvolution: 60 noisy rewards an arm spread two atoms over +-0.12, and the fit gathers them again."""
    rng = np.random.default_rng(2)
    means = rng.choice([0.3, 0.7], p=[0.25, 0.75], size=120)
    table = np.exp(evidence(drawn(rng, means, 60), 60))
    prior = em_fit(table, np.ones(len(table)), steps=300, small=1e-5)
    share = np.mean(means == 0.3)
    assert prior[GRID < 0.5].sum() == pytest.approx(share, abs=0.03)
    for low, high, at in ((0.0, 0.5, 0.3), (0.5, 1.0, 0.7)):
        inside = (low <= GRID) & (high > GRID)
        spread = np.sqrt(prior[inside] @ (GRID[inside] - at) ** 2 / prior[inside].sum())
        assert spread < 0.055, "the noise of the rewards, 0.06, was not taken out"


# ---- pairs


def simulated(rng, prior, odds, pairs, pulls):
    """Pairs that are copies with the probability of the odds, and the posterior of each under the true prior."""
    copies = rng.random(pairs) < odds / (1 + odds)
    first, apart = rng.choice(GRID, p=prior, size=(2, pairs))
    second = np.where(copies, first, apart)
    counts = rng.binomial(pulls, np.stack([first, second]))
    return copies, posteriors(counts, pulls, prior, odds)


def posteriors(counts, pulls, prior, odds):
    """By the formula for two arms; `test_two_arms_have_the_posterior_of_the_formula` says that it is judge_arms'."""
    table = np.exp(evidence(np.arange(pulls + 1) / pulls, pulls))
    factors = {(a, b): bayes_factor(table[a], table[b], prior) for a, b in {*map(tuple, counts.T)}}
    return np.array([odds * factors[a, b] / (1 + odds * factors[a, b]) for a, b in counts.T])


def bayes_factor(first, second, prior):
    return (prior @ (first * second)) / ((prior @ first) * (prior @ second))


def test_two_arms_have_the_posterior_of_the_formula():
    dice = np.random.default_rng(1)
    counts = dice.binomial(40, dice.random((2, 30)))
    for pair, said in zip(counts.T, posteriors(counts, 40, EVEN, 0.2), strict=True):
        found = judge_arms(evidence(pair / 40, 40), EVEN[None], 0.2).pairs[0, 1]
        assert found == pytest.approx(said, abs=3e-6)  # habits of a millionth of the weight are left out


def worst_z(copies, posterior, bins=8):
    """The largest standardised difference between what was said and what was so: in bins, and overall."""
    found = []
    for low in [*np.linspace(0, 1, bins + 1)[:-1], None]:
        chosen = np.full(len(copies), True) if low is None else (low <= posterior) & (posterior < low + 1 / bins)
        said = posterior[chosen]
        if chosen.sum() >= 30:
            found.append(abs((copies[chosen] - said).sum()) / max(np.sqrt((said * (1 - said)).sum()), 1e-9))
    return max(found)


@pytest.mark.parametrize(("odds", "kind"), [(1.0, "three values"), (0.1, "spread out")])
def test_posteriors_are_calibrated(odds, kind):
    """Of the pairs that are said to be copies with probability p, a share p are: honest equal means included."""
    rng = np.random.default_rng(4)
    prior = on_grid([0.2, 0.5, 0.8], [0.5, 0.3, 0.2]) if kind == "three values" else EVEN
    copies, posterior = simulated(rng, prior, odds, 3000, 40)
    assert worst_z(copies, posterior) < Z
    assert np.ptp(posterior) > 0.3


def test_calibration_catches_equal_means_taken_for_proof():
    """Planted fault: judge by a prior that gives equal honest means no chance."""
    rng = np.random.default_rng(5)
    truth = on_grid([0.2, 0.8], [0.5, 0.5])
    copies, posterior = simulated(rng, truth, 1.0, 3000, 40)
    assert worst_z(copies, posterior) < Z
    rng = np.random.default_rng(5)
    copies = rng.random(3000) < 0.5
    first, apart = rng.choice([0.2, 0.8], size=(2, 3000))
    counts = rng.binomial(40, np.stack([first, np.where(copies, first, apart)]))
    assert worst_z(copies, posteriors(counts, 40, EVEN, 1.0)) > Z
