"""Ceilings on what variants gain, against every outcome of small reservoirs, in fractions."""

import math
import random
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
import scipy

import cloneproof as cp
from cloneproof.laws.scan import powers, scan_law

CASES = 60  # of each theorem


def binomial(tosses, mean):
    return [math.comb(tosses, y) * mean**y * (1 - mean) ** (tosses - y) for y in range(tosses + 1)]


def pay(means, draws, rounds, threshold, horizon, rival):
    """Rewards of an agent whose list has these means (equal shares), alone or before a rival.

    The rival's mean is for all rounds after the agent's tests if no draw passes; None: the highest count serves then.
    """
    share = Fraction(1, len(means))
    laws = [[share * chance for chance in binomial(rounds, mean)] for mean in means]
    failing = np.array([law[:threshold] for law in laws], dtype=object)
    passing = sum((mean * sum(law[threshold:]) for mean, law in zip(means, laws, strict=True)), Fraction(0))
    reached = powers(np.array([failing.sum()], dtype=object), draws)[0]
    drawn = sum(means, Fraction(0)) * share
    earned = Fraction(0)
    for place in range(draws):
        left = max(0, horizon - place * rounds)
        earned += reached[place] * (drawn * min(rounds, left) + passing * max(0, left - rounds))
    best = scan_law(draws, failing)[1].sum(axis=1) if rival is None else [Fraction(0)] * len(means)
    late = max(0, horizon - draws * rounds)
    return earned + late * sum((mean * chance for mean, chance in zip(means, best, strict=True)), Fraction(0))


def reservoir(dice):
    rounds = dice.randint(1, 3)
    return {
        "draws": dice.randint(1, 3), "rounds": rounds, "threshold": dice.randint(1, rounds),
        "horizon": dice.randint(3, 20), "rival": dice.choice([None, 1]),
    }  # fmt: skip


def some_mean(dice):
    return Fraction(dice.randint(0, 10), 10)


def honest_pay(count, atoms, made):
    return sum(
        math.prod((w for _, w in drawn), start=Fraction(1)) * pay([v for v, _ in drawn], **made)
        for drawn in product(atoms, repeat=count)
    )


def with_novelties(originals, variants, kept, atoms, new, made):
    """Average pay over everything; the variants are added to the originals if those are `kept`, or replace them."""
    total = Fraction(0)
    for flags in product((0, 1), repeat=len(variants)):
        chance = math.prod((new if flag else 1 - new for flag in flags), start=Fraction(1))
        for drawn in product(atoms, repeat=originals + sum(flags)):
            means, fresh = [v for v, _ in drawn[:originals]], iter([v for v, _ in drawn[originals:]])
            listed = [next(fresh) if flag else means[of] for of, flag in zip(variants, flags, strict=True)]
            weight = chance * math.prod((w for _, w in drawn), start=Fraction(1))
            total += weight * pay([*means, *listed] if kept else listed, **made)
    return total


def test_a_variant_earns_at_most_its_novelty():
    dice, tight = random.Random(11), 0
    for case in range(CASES):
        originals = dice.choice([1, 1, 2])
        low, part = some_mean(dice), Fraction(dice.randint(1, 4), 5)
        atoms, made = [(low, part), (some_mean(dice), 1 - part)], reservoir(dice)
        kept, new = case % 3 > 0, Fraction(dice.randint(0, 4), 4)
        variants = [dice.randrange(originals)] if kept else [k for k in range(originals) for _ in range(3 - originals)]
        payoffs = [honest_pay(originals + more, atoms, made) for more in range(len(variants) + 1)]
        gain = with_novelties(originals, variants, kept, atoms, new, made) - payoffs[0]
        ceiling = cp.bounds.novelty_gain_ceiling([float(each) for each in payoffs], float(new))
        assert gain <= ceiling + 1e-12
        if kept:
            assert ceiling == pytest.approx(float(new * (payoffs[1] - payoffs[0])), abs=1e-12)
        tight += ceiling > 1e-6 and gain > ceiling - 1e-12
    assert tight >= 5  # so that nothing smaller is a ceiling


def test_near_variants_gain_at_most_by_their_distance():
    dice, gains, ratios = random.Random(12), 0, []
    for _ in range(CASES):
        means, made, eps = [some_mean(dice), some_mean(dice)], reservoir(dice), Fraction(dice.randint(1, 10), 100)
        listed = [(of, dice.choice([-1, 0, 1]) * eps) for of in dice.choices((0, 1), k=dice.randint(2, 4))]
        honest = pay(means, **made)
        varied, ends = Fraction(0), set(means)
        for order in permutations(means):  # variants are made before anybody knows which original is better
            own = [min(max(order[of] + shift, Fraction(0)), Fraction(1)) for of, shift in listed]
            varied, ends = varied + pay(own, **made) / 2, ends | set(own)
        part = sum(shift != 0 for _, shift in listed) / len(listed)
        ceiling = cp.bounds.variant_gain_ceiling(
            float(eps), made["horizon"], made["rounds"], float(min(ends)), float(max(ends)), made["draws"], part
        )
        gain = float(varied - honest)
        gains += gain > 1e-9
        ratios.append(gain / ceiling)
    assert max(ratios) <= 1
    assert max(ratios) > 0.3
    assert gains > CASES / 8


def test_not_the_root_of_the_novelty():
    """A hit-or-dud item of a Gaussian copula: the chance to differ is above sqrt(1 - rho) times that of a new item."""
    dud, rho = scipy.stats.norm.ppf(0.99), 0.9
    both = scipy.stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([dud, dud])
    assert (0.99 - both) / (0.99 * 0.01) > math.sqrt(1 - rho) + 0.05
