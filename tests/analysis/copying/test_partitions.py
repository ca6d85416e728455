"""Which arms are one item: sums over partitions against enumeration in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import factorial

import numpy as np
import pytest

from cloneproof.analysis.copying.merging import merge_greedily, pair_given_others
from cloneproof.analysis.copying.one_agent import (
    copying_habits,
    e_value_thetas,
    joined,
    judge_arms,
    log_e_value,
)
from cloneproof.analysis.copying.partitions import block_factors, partition_sums


def partitions(arms):
    """Every partition of a list, by where the first element goes."""
    if not arms:
        yield []
        return
    first, rest = arms[0], arms[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for number, block in enumerate(smaller):
            yield [*smaller[:number], [first, *block], *smaller[number + 1 :]]


def evidence(block, likelihood, prior):
    """The probability of a block's rewards if it has one mean."""
    total = Fraction(0)
    for point, weight in enumerate(prior):
        product = weight
        for arm in block:
            product *= likelihood[arm][point]
        total += product
    return total


def ewens(partition, theta):
    weight, count = Fraction(1), sum(map(len, partition))
    for block in partition:
        weight *= theta * factorial(len(block) - 1)
    for number in range(count):
        weight /= theta + number
    return weight


def drawn_case(seed, arms, points=5):
    rng = np.random.default_rng(seed)
    likelihood = [[Fraction(int(v), 100) for v in rng.integers(1, 100, points)] for _ in range(arms)]
    weights = [Fraction(int(v)) for v in rng.integers(1, 9, points)]
    prior = [weight / sum(weights) for weight in weights]
    return likelihood, prior


def as_floats(likelihood, prior):
    return np.log(np.array(likelihood, dtype=float)), np.array(prior, dtype=float)


@pytest.mark.parametrize(("arms", "theta"), [(2, 10), (4, 1), (6, 3)])
def test_the_posterior_is_the_sum_over_all_partitions(arms, theta):
    likelihood, prior = drawn_case(arms, arms)
    every = list(partitions(list(range(arms))))
    assert len(every) == {2: 2, 4: 15, 6: 203}[arms]
    weight = []
    for partition in every:
        value = ewens(partition, Fraction(theta))
        for block in partition:
            value *= evidence(block, likelihood, prior)
        weight.append(value)
    assert sum(ewens(partition, Fraction(theta)) for partition in every) == 1
    table, floats = as_floats(likelihood, prior)
    sums = partition_sums(block_factors(table, floats), float(theta))
    for size in (2, arms):
        for group in combinations(range(arms), size):
            together = sum(w for p, w in zip(every, weight, strict=True) if any(set(group) <= set(b) for b in p))
            got = sums.probability_together(sum(1 << arm for arm in group))
            assert got == pytest.approx(float(together / sum(weight)), rel=1e-12)
    best = max(zip(weight, every, strict=True))[1]
    assert sorted(sums.likeliest()) == sorted(sum(1 << arm for arm in block) for block in best)


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_the_e_value_is_the_mixture_over_partitions_and_has_the_mean_one(arms):
    """In fractions, and its mean under the null by summing over all rewards: three arms, each 0 or 1 of two rewards."""
    likelihood, prior = drawn_case(20 + arms, arms)
    want = Fraction(0)
    thetas = [Fraction(theta) for theta in e_value_thetas(arms)]
    alone = [evidence([arm], likelihood, prior) for arm in range(arms)]
    for theta in thetas:
        different = ewens([[arm] for arm in range(arms)], theta)
        for partition in partitions(list(range(arms))):
            if len(partition) < arms:
                factor = ewens(partition, theta) / (1 - different) / len(thetas)
                for block in partition:
                    factor *= evidence(block, likelihood, prior)
                for one in alone:
                    factor /= one
                want += factor
    table, floats = as_floats(likelihood, prior)
    assert np.exp(log_e_value(table, floats[None])) == pytest.approx(float(want), rel=1e-10)


@pytest.mark.parametrize("alike", [[], [(0, 2)], [(0, 1, 2)]])
def test_the_expected_e_value_is_one_under_the_null(alike):
    """Over all outcomes of three arms with two rewards each, whose means are drawn from the prior."""
    means, prior = np.array([0.1, 0.4, 0.8]), np.array([0.5, 0.3, 0.2])
    laws = np.stack([(1 - means) ** 2, 2 * means * (1 - means), means**2])  # of 0, 1, 2 successes
    chance = laws @ prior
    total = 0.0
    for outcome in np.ndindex(3, 3, 3):
        value = np.exp(log_e_value(np.log(laws[list(outcome)]), prior[None], alike))
        total += value * np.prod(chance[list(outcome)])
    assert total == pytest.approx(1.0, abs=1e-12)


def test_two_priors_give_the_smaller_e_value_and_a_mixed_probability():
    likelihood, prior = drawn_case(5, 4)
    table, floats = as_floats(likelihood, prior)
    other = floats[::-1].copy()
    apart = [log_e_value(table, one[None]) for one in (floats, other)]
    assert log_e_value(table, np.stack([floats, other])) == min(apart)
    single = [judge_arms(table, one[None], 0.1).pairs[0, 1] for one in (floats, other)]
    assert min(single) <= judge_arms(table, np.stack([floats, other]), 0.1).pairs[0, 1] <= max(single)


@pytest.mark.parametrize("odds", [0.01, 0.1, 0.5, 1.0, 50.0])
def test_habits_keep_the_stated_odds_of_a_pair(odds):
    """With arms that say nothing, every pair has its prior odds, however many arms there are."""
    habits, honest = copying_habits(odds)
    assert sum(weight / (1 + theta) for theta, weight in habits) == pytest.approx(odds / (1 + odds))
    assert sum(weight for _, weight in habits) + honest == pytest.approx(1.0)
    assert honest > -1e-12
    for arms in (2, 5):
        judged = judge_arms(np.zeros((arms, 3)), np.full((1, 3), 1 / 3), odds)
        assert list(judged.pairs.values()) == pytest.approx([odds / (1 + odds)] * len(judged.pairs))


def test_the_whole_group_is_surer_with_every_copy():
    """Under Ewens' priors alone it is not: of nine copies one or the other looks as if it stood apart."""
    grid, dice = np.linspace(0.0005, 0.9995, 400), np.random.default_rng(4)
    even = np.full((1, 400), 1 / 400)
    sure = {copies: [] for copies in (2, 4, 9)}
    for _ in range(25):
        counts = dice.binomial(2000, dice.uniform(), 9)[:, None]
        table = counts * np.log(grid) + (2000 - counts) * np.log(1 - grid)
        for copies, found in sure.items():
            judged = judge_arms(table[:copies] - table[:copies].max(axis=1, keepdims=True), even, 0.1)
            found.append(judged.sure[0] if judged.groups and len(judged.groups[0]) == copies else 0.0)
    means = [np.mean(found) for found in sure.values()]
    assert means == sorted(means)
    assert means[-1] > 0.9


def test_merging_is_a_part_of_the_sum():
    """What greedy merging adds up is never more than the sum over all partitions, and near it with clear groups."""
    grid = np.linspace(0.001, 0.999, 999)
    prior = np.full(999, 1 / 999)
    for seed in range(5):
        counts = np.random.default_rng(seed).binomial(3000, [0.3] * 4 + [0.6, 0.8])
        table = counts[:, None] * np.log(grid) + (3000 - counts[:, None]) * np.log(1 - grid)
        table -= table.max(axis=1, keepdims=True)
        for theta in (1.0, 10.0):
            whole = partition_sums(block_factors(table, prior), theta).log_factor
            way = merge_greedily(table, prior, theta)
            assert way.explained <= whole + 1e-9
            assert whole - way.explained < 2.5
            assert theta > 1 or (0, 1, 2, 3) in way.blocks


def test_a_pair_given_the_others_is_exact_for_two_arms():
    likelihood, prior = drawn_case(8, 2)
    table, floats = as_floats(likelihood, prior)
    exact = partition_sums(block_factors(table, floats), 10.0).probability_together(0b11)
    for blocks in (((0,), (1,)), ((0, 1),)):
        assert pair_given_others(table, floats, blocks, (0, 1), 10.0) == pytest.approx(exact, rel=1e-12)


def test_chains_join():
    assert joined(5, [(3, 4), (0, 4)]) == [(0, 3, 4), (1,), (2,)]
