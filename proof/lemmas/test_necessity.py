"""Every step of docs/textbook/necessity.md in fractions: rules A, B and C, and what they show of Proposition 1."""

import random
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product

import pytest

from cloneproof.paper.trp import (
    HALF,
    VIOLATING,
    advantage,
    ex_ante_payoff,
    necessity,
    permuted_regret,
    registered_means,
    rule_a,
    rule_b,
    rule_c,
    squares,
    vandermonde,
)
from support.sizes import AT_LENGTH, LONG

ONE, ZERO = Fraction(1), Fraction(0)


def played(arms, horizon, best):
    """Rules A and C round by round, for each set of arms pulled so far: what `best_or_uniform` sums up."""
    states, total = {frozenset(): ONE}, ZERO
    top = [k for k, arm in enumerate(arms) if arm == max(arms)]
    for _ in range(horizon):
        following = {}
        for pulled, chance in states.items():
            left = [k for k in range(len(arms)) if k not in pulled]
            for k, arm in enumerate(arms):
                share = (
                    Fraction(k in left, len(left)) if left else (1 - best) / len(arms) + best * (k in top) / len(top)
                )
                total += chance * share * arm
                if share:
                    following[pulled | {k}] = following.get(pulled | {k}, ZERO) + chance * share
        states = following
    return total


def test_rules_a_and_c_are_what_their_formula_says():
    for count in range(1, 5):
        for arms in combinations_with_replacement((ZERO, Fraction(1, 3), HALF, ONE), count):
            for horizon in (1, 3, 4, 6):
                exception = sorted(arms) == sorted(VIOLATING)
                a = HALF if count > 3 else ZERO if exception else ONE
                c = HALF if count > 3 else Fraction(count < 3 or len(set(arms)) == 3)
                assert rule_a(arms, horizon) == played(arms, horizon, a)
                assert rule_c(arms, horizon) == played(arms, horizon, c)


def test_two_originals_the_violating_means_are_a_paying_prior():
    """Gain = (1/4) * 2 * (RPReg(honest) - RPReg(copies)) under equal odds of the two means, whatever the rule."""

    def hasty(arms, horizon):  # of two arms it always takes the worse, of more the best
        return horizon * (min(arms) if len(arms) == 2 else max(arms))

    for rule in (rule_a, rule_b, rule_c, hasty):
        for low, high in ((ZERO, ONE), (Fraction(1, 5), Fraction(1, 3))):
            for copies in ((2, 1), (3, 1), (2, 2)):
                honest, copied = (permuted_regret(rule, (high, low), own, 40) for own in ((1, 1), copies))
                prior = {low: HALF, high: HALF}
                gain = ex_ante_payoff(rule, prior, copies, 40) - ex_ante_payoff(rule, prior, (1, 1), 40)
                assert gain == (honest - copied) / 2
                assert (gain > 0) == (rule is hasty)


@pytest.mark.parametrize("rule", [rule_a, rule_b])
def test_the_gain_is_minus_a_form_in_the_weights(rule):
    """gain(p) = - sum over multisets of orders * margin * weights: one margin is negative, the form is not."""
    copies, horizon = (2, 1, 1), 100
    weights = {ONE: Fraction(1, 2), HALF: Fraction(1, 3), ZERO: Fraction(1, 6)}
    form, negative = ZERO, []
    for means in combinations_with_replacement(weights, 3):
        margin = permuted_regret(rule, means, copies, horizon) - permuted_regret(rule, means, (1, 1, 1), horizon)
        negative += [means] if margin < 0 else []
        orders = len(set(permutations(means)))
        form += orders * margin * weights[means[0]] * weights[means[1]] * weights[means[2]]
    gain = ex_ante_payoff(rule, weights, copies, horizon) - ex_ante_payoff(rule, weights, (1, 1, 1), horizon)
    assert gain == -form < 0
    assert negative == [VIOLATING]


def test_rule_a_violates_trp():
    honest = permuted_regret(rule_a, VIOLATING, (1, 1, 1), 100)
    assert (honest, permuted_regret(rule_a, VIOLATING, (2, 1, 1), 100)) == (50, 26)
    assert all(permuted_regret(rule_a, VIOLATING, (k, 1, 1), 100) < honest for k in (2, 50, 97))
    assert permuted_regret(rule_a, VIOLATING, (98, 1, 1), 100) == honest  # explores all along


def test_rule_a_the_form_is_nonnegative():
    """The lower bound of the form, and the arithmetic-geometric mean that makes it so; equal to it at k = 3 exactly."""
    for i in range(1, 30):
        for j in range(1, 30 - i):
            p, q, r = Fraction(i, 30), Fraction(j, 30), Fraction(30 - i - j, 30)
            assert p * q**2 + p**2 * r + q * r**2 >= 3 * p * q * r
            assert p**2 * q / 2 + p * q**2 + q**2 * r / 2 + q * r**2 + p**2 * r + 2 * p * r**2 - 3 * p * q * r > 0
    distances = {
        (1, 1, HALF): Fraction(1, 6),
        (HALF, HALF, 0): Fraction(1, 6),
        (1, HALF, HALF): Fraction(1, 3),
        (HALF, 0, 0): Fraction(1, 3),
        (1, 1, 0): Fraction(1, 3),
        (1, 0, 0): Fraction(2, 3),
    }
    for means, distance in distances.items():
        assert max(means) - sum(means) / Fraction(3) == distance
        for copies, horizon in (((2, 1, 1), 100), ((3, 2, 1), 50)):
            honest, copied = (permuted_regret(rule_a, means, own, horizon) for own in ((1, 1, 1), copies))
            assert copied - honest == distance * (horizon + sum(copies) - 6) / 2
    margin = permuted_regret(rule_a, VIOLATING, (3, 2, 1), 50) - permuted_regret(rule_a, VIOLATING, (1, 1, 1), 50)
    assert margin == -Fraction(50 - 6, 4)


@pytest.mark.parametrize("rule", [rule_a, rule_b])
def test_no_copies_pay_under_either_rule(rule):
    tried = 150 if LONG else 50
    found = necessity(rule, tried, seed=7)
    assert (found.tried, found.paying) == (tried, 0)
    assert found.neutral < tried
    assert found.refutes


def test_rule_a_with_noise_can_be_gamed():
    """Two originals 0 or 1/10, Bernoulli, T = 100, best = highest first reward: (10, 10) gains 0.406 on 5.245."""

    def noisy(good, bad):  # b = 1 for two arms, 1/2 for twenty: expected reward with so many arms of mean 1/10 and 0
        arms, mean = good + bad, Fraction(1, 10)
        average = good * mean / arms
        chosen = mean - (mean - average) * (1 - mean) ** good  # a success is of a good arm; without one, uniform
        best = ONE if arms < 4 else HALF
        return arms * average + (100 - arms) * (best * chosen + (1 - best) * average)

    def payoff(copies):
        return sum(noisy(a * copies[0] + b * copies[1], sum(copies) - a * copies[0] - b * copies[1])
                   for a, b in product((0, 1), repeat=2)) / 4  # fmt: skip

    assert float(payoff((1, 1))) == pytest.approx(5.245, abs=5e-4)
    assert float(payoff((10, 10)) - payoff((1, 1))) == pytest.approx(0.4063, abs=5e-5)


def determinant(first, second):
    rows = [(1, x, x * y) for x, y in zip(first, second, strict=True)]
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def listed(laws):
    """Every outcome of one reward of each arm, with its chance."""
    for outcome in product(*laws):
        chance = ONE
        for _, p in outcome:
            chance *= p
        yield tuple(x for x, _ in outcome), chance


@AT_LENGTH
def test_rule_b_is_what_its_formula_says():
    """By listing all rewards under random laws: chances add up to 1, are none negative, and earn what means say."""
    dice = random.Random(3)
    for _ in range(3 if LONG else 1):
        laws = []
        for _ in range(3):
            values = sorted({Fraction(dice.randrange(9), 8) for _ in range(2)})
            weights = [dice.randrange(1, 5) for _ in values]
            laws.append([(x, Fraction(w, sum(weights))) for x, w in zip(values, weights, strict=True)])
        means = [sum(x * p for x, p in law) for law in laws]
        law_of_det = {}
        for first, p in listed(laws):
            for second, q in listed(laws):
                value = determinant(first, second)
                law_of_det[value] = law_of_det.get(value, ZERO) + p * q
        assert sum(value * p for value, p in law_of_det.items()) == vandermonde(means)
        law_of_product = {}
        for (one, p), (two, q) in product(law_of_det.items(), repeat=2):
            law_of_product[one * two] = law_of_product.get(one * two, ZERO) + p * q
        earned = ZERO
        for r, p in listed(laws):
            for value, q in law_of_product.items():
                chances = [Fraction(1, 3) + (r[k] - sum(r) / Fraction(3)) * (1 - 17 * value) / 36 for k in range(3)]
                assert sum(chances) == 1
                assert min(chances) >= 0
                earned += p * q * sum(c * mean for c, mean in zip(chances, means, strict=True))
        assert earned == sum(means) / 3 + advantage(means)


def test_rule_b_violates_trp_and_its_inequalities_hold():
    assert advantage(VIOLATING) == -Fraction(1, 1152)
    honest, copied = (permuted_regret(rule_b, VIOLATING, own, 100) for own in ((1, 1, 1), (2, 1, 1)))
    assert (honest, copied) == (Fraction(57685, 1152), 50)
    assert advantage((ONE, Fraction(201, 400), Fraction(1, 200))) < 0  # all means positive
    dice = random.Random(4)
    for _ in range(200):
        x = sorted(Fraction(dice.randrange(1001), 1000) for _ in range(4))
        u, v, w = (b - a for a, b in pairwise(x))
        triples = list(combinations(x, 3))
        for t in triples:
            inner = (t[1] - t[0]) * (t[2] - t[1])
            assert vandermonde(t) ** 2 * squares(t) <= inner / 8
        inner, spread = 2 * (u * v + v * w + u * w), sum(squares(t) for t in triples)
        form = 24 * u**2 + 32 * v**2 + 24 * w**2 - 19 * u * v - 19 * v * w - 35 * u * w
        assert Fraction(8, 17) * spread - inner == Fraction(2, 51) * form >= 0


@AT_LENGTH
def test_rule_c_is_truthful_for_different_means_and_pays_where_they_may_be_equal():
    grid, compared = [Fraction(k, 4) for k in range(5)], 0
    for count in (2, 3, 4):
        for means in combinations(grid, count):
            for copies in combinations_with_replacement((4, 2, 1), count):
                for horizon in (1, 5, 100) if max(copies) > 1 else ():
                    honest, copied = (permuted_regret(rule_c, means, own, horizon) for own in ((1,) * count, copies))
                    assert copied >= honest
                    compared += 1
    assert compared > 300
    prior = {ZERO: HALF, ONE: HALF}
    assert [ex_ante_payoff(rule_c, prior, own, 100) for own in ((1, 1, 1), (2, 1, 1))] == [50, 68]
    assert [ex_ante_payoff(rule_c, prior, own, 5) for own in ((1, 1, 1), (2, 1, 1))] == [
        Fraction(5, 2),
        Fraction(43, 16),
    ]
    equal = (ONE, ONE, ZERO)
    regrets = [permuted_regret(rule_c, equal, own, 100) for own in ((1, 1, 1), (2, 1, 1))]
    assert regrets == [Fraction(100, 3), Fraction(52, 3)]
    assert registered_means(equal, (2, 1, 1)) == (1, 1, 1, 0)
