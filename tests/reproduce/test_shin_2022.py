"""The experiments of Shin, Lee and Ok (2022): the mean of runs, and the experiments at a small size."""

import numpy as np
import pytest
from scipy import stats

import cloneproof as cp
from cloneproof.reproduce.rows.shin_2022 import CONFIDENCE, RunsMean, experiments


def test_the_interval_is_student_s():
    values = np.random.default_rng(2).normal(3, 2, 50)
    found = RunsMean.of(values).estimate()
    assert (found.low, found.high) == pytest.approx(stats.t.interval(CONFIDENCE, 49, values.mean(), stats.sem(values)))


@pytest.mark.parametrize(("published", "agrees"), [(1_030, True), (1_130, True), (1_210, False), (1_000, False)])
def test_the_published_number_has_its_own_sampling_error(published, agrees):
    """5 % to read it, and 2.6 standard errors of 40 sqrt(1/100 + 1/10,000), so about 10."""
    assert RunsMean(1_080.0, 40.0, 10_000).agrees(published) == agrees


def test_the_experiments_at_a_small_size():
    """UCB1 is flooded by copies and H-UCB is not, which a hundredth of the rounds shows as well."""
    payoff, regret = ([each for each in experiments(1000) if each.figure == figure][-1] for figure in "ac")
    for experiment, times in ((payoff, 10), (regret, 2)):
        flooded, hierarchical = (experiment.runs(name, 4, 0, cp.mechanism).mean() for name in ("ucb1", "h-ucb"))
        assert flooded > times * hierarchical
