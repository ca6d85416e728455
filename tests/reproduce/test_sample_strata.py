"""S-UCB by strata of the arms it draws: the law, the mean and its error, against exact and plain computations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import cloneproof as cp
from cloneproof.reproduce.rows import shin_2022
from cloneproof.reproduce.rows.shin_2022 import ArmSample, RunsMean, experiments, play_runs, play_strata

FAR = stats.norm.isf(5e-7)  # one in a million, two-sided
FIGURE_E = (10, 100, 100) * 2 + (1000,) * 9
SMALL = cp.Market([cp.Agent(str(mean), prior=cp.Point(mean)) for mean in (0.9, 0.6, 0.2)], horizon=12)
COPIES = {"0.9": (1,), "0.6": (2,), "0.2": (4,)}
S_UCB = cp.mechanism("s-ucb", sample_factor=1.3)  # 3 of the 7 arms


def the_experiment(figure):
    (found,) = (one for one in experiments(2_000) if one.figure == figure)
    return found


def distance(one, other):
    return (one.mean - other.mean) / math.hypot(one.standard_error, other.standard_error)


@pytest.mark.parametrize(("copies", "size"), [((1, 1, 1, 1, 500), 57), (FIGURE_E, 172), ((1, 2, 4), 3), ((2, 3), 9)])
def test_the_law_is_the_hypergeometric_one(copies, size):
    sample = ArmSample.of(copies, size)
    law = sample.law()
    assert math.isclose(math.fsum(law.values()), 1, rel_tol=1e-12)
    others = sum(copies[k] for k in sample.common)
    for drawn, chance in list(law.items())[:20]:
        numbers = [*drawn, sample.size - sum(drawn)]
        expected = stats.multivariate_hypergeom.pmf(numbers, [*(copies[k] for k in sample.rare), others], sample.size)
        assert math.isclose(chance, expected, rel_tol=1e-8)


def test_strata_are_a_partition_with_runs_for_each():
    sample = ArmSample.of((1, 1, 1, 1, 1000), 57)
    strata = sample.strata(100)
    kinds = [kind for stratum in strata for kind in stratum.rare]
    assert len(kinds) == len(set(kinds)) == 16
    assert math.isclose(math.fsum(stratum.probability for stratum in strata), 1)
    assert min(stratum.runs for stratum in strata) >= 4
    assert 100 <= sum(stratum.runs for stratum in strata) < 130
    randomness = np.random.default_rng(0)
    for stratum in strata:
        drawn = sample.draw(stratum, randomness)
        assert sum(drawn) == 57
        assert drawn[:4] in stratum.rare


def test_compositions_of_all_strata_together_have_the_means_of_the_sample():
    sample, randomness, looks = ArmSample.of(FIGURE_E, 172), np.random.default_rng(1), 200
    total = np.zeros(len(FIGURE_E))
    for stratum in sample.strata(100):
        total += stratum.probability * np.mean([sample.draw(stratum, randomness) for _ in range(looks)], axis=0)
    expected = np.array(FIGURE_E) * 172 / sum(FIGURE_E)
    assert np.all(abs(total - expected) < 6 * np.sqrt(expected / looks))  # 15 numbers, each at one in a million


def test_given_its_sample_s_ucb_is_ucb1_exactly():
    """The exact tree for S-UCB, whose law of samples is its own, and for UCB1 on every composition."""
    market = cp.Market(
        [cp.Agent("ana", 2, [cp.Point(0.9), cp.Point(0.4)]), cp.Agent("bo", 1, cp.Point(0.6))], horizon=9
    )
    copies, size = (1, 2, 4), 3
    mechanism = cp.mechanism("s-ucb", sample_factor=1.4)
    assert mechanism.sample.size(9) == size
    expected = cp.evaluate(market, mechanism, copies={"ana": copies[:2], "bo": copies[2:]}, engine="tree")
    total = 0.0
    for first in range(2):
        for second in range(3):
            third = size - first - second
            weight = stats.multivariate_hypergeom.pmf([first, second, third], copies, size)
            if first + second:
                alone = cp.evaluate(
                    market, replace(mechanism, sample=None), copies={"ana": (first, second), "bo": (third,)},
                    engine="tree",
                ) if third else None  # fmt: skip
                total += weight * (alone.payoff["bo"].value if alone else 0.0)
            else:
                total += weight * 9 * 0.6  # bo alone
    assert abs(total - expected.payoff["bo"].value) < 1e-9


@pytest.mark.parametrize("agent", ["0.6", None])
def test_strata_come_to_the_exact_value(agent):
    exact = cp.evaluate(SMALL, S_UCB, copies=COPIES, engine="tree")
    expected = exact.regret.value if agent is None else exact.payoff[agent].value
    found = RunsMean.of(play_strata(SMALL, S_UCB, COPIES, agent, 2000, seed=3))
    assert abs(found.mean - expected) < FAR * found.standard_error
    plain = RunsMean.of([(1.0, play_runs(SMALL, S_UCB, COPIES, agent, 2000, seed=4))])
    assert found.standard_error < plain.standard_error
    assert 0.8 < found.run_variance / plain.run_variance < 1.25


def test_strata_agree_with_plain_runs_of_figure_c_and_are_surer():
    experiment = the_experiment("c")
    strata = play_strata(experiment.market, cp.mechanism("s-ucb"), experiment.copies, None, 200, seed=5)
    found = RunsMean.of(strata)
    plain = RunsMean.of([(1.0, experiment.runs("s-ucb", 1000, 6, cp.mechanism))])
    assert abs(distance(found, plain)) < FAR
    assert found.standard_error < plain.standard_error / 2  # of a fifth of the runs
    assert 0.7 < found.run_variance / plain.run_variance < 1.4

    wrong = RunsMean.of([(1 / len(strata), runs) for _, runs in strata])  # planted: all strata equally likely
    assert abs(distance(wrong, plain)) > FAR


def test_strata_agree_with_plain_runs_of_figure_e():
    experiment = the_experiment("e")  # its own factor of the sample, and samples that differ in common items too
    found = experiment.mean("s-ucb", 100, 5, cp.mechanism)
    plain = RunsMean.of([(1.0, experiment.runs("s-ucb", 300, 6, cp.mechanism))])
    assert abs(distance(found, plain)) < FAR
    assert 0.5 < found.run_variance / plain.run_variance < 2


def test_one_stratum_is_the_plain_mean():
    values = np.random.default_rng(2).normal(3, 2, 50)
    found = RunsMean.of([(1.0, values)])
    assert math.isclose(found.mean, values.mean())
    assert math.isclose(found.standard_error, values.std(ddof=1) / math.sqrt(50))
    assert math.isclose(found.run_variance, values.var(ddof=1))
    assert math.isclose(found.degrees, 49)
    interval = stats.t.interval(0.99, 49, values.mean(), stats.sem(values))
    assert np.allclose((found.estimate(0.99).low, found.estimate(0.99).high), interval)


def test_the_published_numbers_own_error_counts():
    ours = RunsMean(100.0, 3.0, 1e6, 40.0**2)  # theirs: 40 / sqrt(100) = 4
    assert math.isclose(ours.error_of_difference(100), 5)
    assert math.isclose(shin_2022._distance(ours, 110.0), 2)
    assert "unexplained" not in shin_2022._in_words(2.0)
    assert "unexplained" in shin_2022._in_words(-2.9)


def test_the_experiments_of_2022_at_a_small_size():
    """UCB1 is flooded by copies and H-UCB is not, which a hundredth of the rounds shows as well."""
    payoff, regret = ([each for each in experiments(1000) if each.figure == figure][-1] for figure in "ac")
    for experiment, times in ((payoff, 10), (regret, 2)):
        flooded, hierarchical = (experiment.mean(name, 4, 0, cp.mechanism).mean for name in ("ucb1", "h-ucb"))
        assert flooded > times * hierarchical
