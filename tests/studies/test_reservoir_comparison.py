"""The study's KL-UCB, which leaves most indices out, always plays an arm of the largest index."""

import numpy as np
import pytest

import reservoir_comparison as study
from cloneproof.laws.logarithm import kl_upper_bound, ln


@pytest.mark.parametrize("constant", [1.0, 0.3])
def test_every_decision_has_the_largest_index(constant):
    """In Python, which draws the numbers that the compiled loop draws."""
    means, rounds = np.array([0.03, 0.3, 0.6, 0.6]), 500
    decisions = np.zeros(rounds, np.int64)
    pulls = study.kl_ucb_pulls.py_func(means, rounds, 5, decisions, constant)
    shown = np.random.RandomState(5).random_sample(rounds) < means[decisions]
    assert sorted(decisions[:4]) == [0, 1, 2, 3]
    seen, ones = [0] * 4, [0] * 4
    for t, chosen in enumerate(decisions, 1):
        if t > 4:
            index = [
                kl_upper_bound(one / count, count, constant * ln(t)) for one, count in zip(ones, seen, strict=True)
            ]
            assert index[chosen] >= max(index) - 1e-9
        seen[chosen] += 1
        ones[chosen] += int(shown[t - 1])
    assert list(pulls) == seen
    assert min(seen) > (3 if constant == 1.0 else 0)


@pytest.mark.parametrize(
    ("mean", "pulls", "level"), [(0.03, 10**6, 16.1), (0.01, 40, 8.0), (0.5, 7, 3.0), (0.9, 3, 9.0)]
)
def test_indices_are_those_of_the_rule(mean, pulls, level):
    exact = kl_upper_bound(mean, pulls, level)
    for guess in (mean, exact, 1.0, 0.5 * (exact + mean)):
        assert study.kl_index(mean, pulls, level, guess) == pytest.approx(exact, rel=1e-9)


def test_the_interval_of_a_short_run(monkeypatch):
    monkeypatch.setattr(study, "kl_ucb_pulls", study.kl_ucb_pulls.py_func)
    mean, half = study.kl_ucb_regret((0.2, 0.8), 4, 500, 12, seed=1)
    assert 0 < half < mean < 60
