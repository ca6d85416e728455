"""P-values by importance sampling against sums over all outcomes, and the e-values made of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from cloneproof.analysis.copying.discoveries import DRAWS, CopyQuestion, boosted, matched_p_value
from cloneproof.analysis.copying.judging import TRUST
from cloneproof.analysis.copying.priors import ArmEvidence, RateLaw

MEANS, PRIOR = np.array([0.1, 0.3, 0.5, 0.7]), np.array([0.4, 0.3, 0.2, 0.1])
REWARDS = 12
LAWS = binom.pmf(np.arange(REWARDS + 1)[:, None], REWARDS, MEANS)  # of each count, at each mean


LAW = RateLaw(PRIOR[None], np.zeros(1))


def p_value(counts, groups):
    """That of one agent's arms, by the law without a common level."""
    table = LAWS[list(counts)]
    table = np.log(table / table.max(axis=1, keepdims=True))
    evidence = ArmEvidence(table, np.zeros(len(counts)), 0.1, 1.0, MEANS, np.full(len(counts), float(REWARDS)))
    question = CopyQuestion(("ana",), tuple(range(len(counts))), matched=groups)
    return matched_p_value(evidence, question, [LAW] * len(groups))


def ratio_of(counts):
    table = LAWS[list(counts)]
    return 1 - TRUST + TRUST * (table.prod(axis=0) @ PRIOR) / np.prod(table @ PRIOR)


@pytest.mark.parametrize("arms", [2, 3])
def test_p_values_are_tails_of_the_null(arms):
    """The estimate lies within its sampling error of the sum over all outcomes, and never above 1/T."""
    chance = LAWS @ PRIOR
    outcomes = list(product(range(REWARDS + 1), repeat=arms))
    ratios = np.array([ratio_of(counts) for counts in outcomes])
    null = np.array([np.prod(chance[list(counts)]) for counts in outcomes])
    assert null @ ratios == pytest.approx(1.0)  # T is a likelihood ratio
    for counts in ([0] * arms, [8] * arms, [6, *[7] * (arms - 1)], [0, *[9] * (arms - 1)]):
        seen = ratio_of(counts)
        tail = float(null[ratios >= seen * (1 - 1e-9)].sum())
        got = p_value(counts, (tuple(range(arms)),))
        if seen <= 1:
            assert got == 1.0
            continue
        assert got <= 1 / seen + 1e-12
        spread = np.sqrt(float((null / ratios)[ratios >= seen * (1 - 1e-9)].sum()) / DRAWS)
        assert abs(got - tail) < 5 * spread + 1 / (seen * (DRAWS + 1))


def test_p_values_are_valid_under_the_null():
    """Of 150 p-values under the null no more are small than may be, with an error of one in a million."""
    dice = np.random.default_rng(6)
    counts = dice.binomial(REWARDS, dice.choice(MEANS, (150, 4), p=PRIOR))
    found = np.array([p_value(row, ((0, 1), (2, 3))) for row in counts])
    for level in (0.01, 0.05, 0.2):
        assert (found <= level).sum() <= binom.isf(1e-6, len(found), level)
    assert (found <= 0.2).sum() > 0


def test_boosted_values_have_the_mean_one_or_less():
    """With p uniform and e of mean 1, for every target; and the boosted value reaches the target."""
    values = (np.arange(10_000) + 0.5) / 10_000
    for target in (2.0, 40.0, 500.0):
        mean = np.mean([np.exp(boosted(0.0, p, target, 0.9)) for p in values])
        assert mean <= 1 + 0.5 * target / 10_000
        assert boosted(-np.inf, 0.9 / target, target, 0.9) >= np.log(target)
