"""Which arms are one item: sums over partitions against enumeration in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import factorial

import numpy as np
import pytest

from cloneproof.analysis.copying.judging import (
    TRUST,
    copying_habits,
    e_value_thetas,
    judge_arms,
    log_e_value,
    log_shared,
)
from cloneproof.analysis.copying.partitions import block_factors, merge_greedily, pair_given_others, partition_sums
from cloneproof.analysis.copying.priors import RateLaw


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


def plain(prior):
    """The law of arms that have nothing in common."""
    return RateLaw(np.atleast_2d(prior), np.zeros(1))


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
    sums = partition_sums(block_factors(table, floats[None])[:, 0], float(theta))
    for size in (2, arms):
        for group in combinations(range(arms), size):
            together = sum(w for p, w in zip(every, weight, strict=True) if any(set(group) <= set(b) for b in p))
            got = sums.probability_together(sum(1 << arm for arm in group))
            assert got == pytest.approx(float(together / sum(weight)), rel=1e-12)


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
    assert np.exp(log_e_value(table, [plain(floats)])) == pytest.approx(float(want), rel=1e-10)


MEANS = np.array([0.1, 0.4, 0.8])
LAWS = np.stack([(1 - MEANS) ** 2, 2 * MEANS * (1 - MEANS), MEANS**2])  # of 0, 1, 2 successes at each mean
SHOPS = RateLaw(np.array([[0.5, 0.3, 0.2], [0.95, 0.05, 0.0], [0.1, 0.3, 0.6]]), np.log([0.5, 0.3, 0.2]))


def chance_of(outcome, blocks):
    """The probability of counts where each block of arms is an item, and all of them have one level of SHOPS."""
    given = np.exp(SHOPS.log_weights)
    for block in blocks:
        given = given * (SHOPS.priors @ LAWS[[outcome[arm] for arm in block]].prod(axis=0))
    return given.sum()


def shared_chance(outcome):
    """The same where arms 0 and 2, and arms 1 and 3, are one item each with probability TRUST, and have one level."""
    given = np.exp(SHOPS.log_weights)
    for pair in ((0, 2), (1, 3)):
        tables = LAWS[[outcome[arm] for arm in pair]]
        apart = (SHOPS.priors @ tables.T).prod(axis=1)
        given = given * ((1 - TRUST) * apart + TRUST * (SHOPS.priors @ tables.prod(axis=0)))
    return given.sum()


@pytest.mark.parametrize("alike", [[], [(0, 1, 2)]])
def test_the_expected_e_value_is_one_for_items_with_a_common_level(alike):
    """Over all outcomes of three arms with two rewards each; by a prior without a common level it is more."""
    total, market = 0.0, 0.0
    for outcome in np.ndindex(3, 3, 3):
        table, chance = np.log(LAWS[list(outcome)] + 1e-300), chance_of(outcome, [(0,), (1,), (2,)])
        total += chance * np.exp(log_e_value(table, [SHOPS], alike, [[SHOPS] * len(alike)]))
        by_market = [plain(np.exp(SHOPS.log_weights) @ SHOPS.priors)]
        market += chance * np.exp(log_e_value(table, by_market, alike, [by_market * len(alike)]))
    assert total == pytest.approx(1.0, abs=1e-9)
    assert market > 1.05


@pytest.mark.parametrize("first", [[(0,), (1,)], [(0, 1)]])
@pytest.mark.parametrize("second", [[(2,), (3,)], [(2, 3)]])
def test_the_e_value_of_two_agents_holds_whatever_each_copies_inside(first, second):
    """Over all outcomes of two agents with two arms each; dividing by single arms fails where both copy inside."""
    total, single = 0.0, 0.0
    for outcome in np.ndindex(3, 3, 3, 3):
        tables = LAWS[list(outcome)]
        chance = chance_of(outcome[:2], [tuple(block) for block in first])
        chance *= chance_of(outcome[2:], [tuple(arm - 2 for arm in block) for block in second])
        value = np.exp(log_shared(tables[:2], tables[2:], SHOPS, SHOPS))
        total += chance * float(np.squeeze(value))
        alone = [chance_of(pair, [(0,), (1,)]) for pair in (outcome[:2], outcome[2:])]
        single += chance * shared_chance(outcome) / np.prod(alone)
    assert 0.3 < total <= 1 + 1e-9
    assert single > 1.01 or len(first) + len(second) > 2


def test_the_e_value_of_two_agents_holds_for_resellers_of_the_same_products():
    """Arms 0 and 2, and 1 and 3, are one product at two shops each; by agents' levels alone the mean is above 1."""
    close = RateLaw(np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]), np.log([0.5, 0.3, 0.2]))
    market, totals = np.exp(close.log_weights) @ close.priors, np.zeros(2)
    shops = RateLaw(np.stack([market, *close.priors]), np.log([0.5, 0.25, 0.15, 0.1]))
    apart = RateLaw(np.stack([market] * 2), np.log([0.5, 0.5]))
    for outcome in np.ndindex(3, 3, 3, 3):
        tables = LAWS[list(outcome)]
        seen = tables @ close.priors.T
        chance = np.prod([np.exp(close.log_weights) @ (seen[a] * seen[b]) for a, b in ((0, 2), (1, 3))])
        values = [np.squeeze(log_shared(tables[:2], tables[2:], plain(market), law)) for law in (shops, apart)]
        totals += chance * np.exp(values)
    assert 0.3 < totals[0] <= 1 + 1e-9
    assert totals[1] > 1.01


def test_agents_of_one_level_share_no_item_by_that():
    """The e-value holds where one level is that of both, and items that differ speak against it at a rare level too."""
    total = 0.0
    for outcome in np.ndindex(3, 3, 3, 3):
        tables = LAWS[list(outcome)]
        value = float(np.squeeze(np.exp(log_shared(tables[:2], tables[2:], SHOPS, SHOPS))))
        total += chance_of(outcome, [(0,), (1,), (2,), (3,)]) * value
    assert total <= 1 + 1e-9
    grid = np.linspace(0, 1, 101)
    common, level = (np.exp(-0.5 * ((grid - mean) / 0.05) ** 2) for mean in (0.2, 0.9))
    market = 0.999 * common / common.sum() + 0.001 / 101
    rare = RateLaw(np.stack([market, level / level.sum()]), np.log([1 - 3e-4, 3e-4]))
    one, other = (np.exp(-0.5 * ((grid - mean) / 0.01) ** 2)[None, None] for mean in (0.86, 0.94))
    assert float(np.squeeze(log_shared(one, other, rare, rare))) < 0
    assert float(np.squeeze(log_shared(one, one, rare, RateLaw(rare.priors[[0, 0]], rare.log_weights)))) > 0


def test_two_priors_give_the_smaller_e_value_and_a_mixed_probability():
    likelihood, prior = drawn_case(5, 4)
    table, floats = as_floats(likelihood, prior)
    other = floats[::-1].copy()
    apart = [log_e_value(table, [plain(one)]) for one in (floats, other)]
    assert log_e_value(table, [plain(floats), plain(other)]) == min(apart)
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
    for _ in range(12):
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
            whole = partition_sums(block_factors(table, prior[None])[:, 0], theta).log_factor
            way = merge_greedily(table, prior, theta)
            assert way.explained <= whole + 1e-9
            assert whole - way.explained < 2.5
            assert theta > 1 or (0, 1, 2, 3) in way.blocks


def test_a_pair_given_the_others_is_exact_for_two_arms():
    likelihood, prior = drawn_case(8, 2)
    table, floats = as_floats(likelihood, prior)
    exact = partition_sums(block_factors(table, floats[None])[:, 0], 10.0).probability_together(0b11)
    for blocks in (((0,), (1,)), ((0, 1),)):
        assert pair_given_others(table, floats, blocks, (0, 1), 10.0) == pytest.approx(exact, rel=1e-12)
