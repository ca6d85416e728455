"""P-values of agents whose arms are alike, and e-values made of them: what Markov's inequality leaves unused.

An e-value e is 1/p or more with a probability of at most p under the null, and for Bayes factors far less often. The
null is known here (each arm's mean is drawn from the prior on its own), so the p-value can be computed. For the groups
of arms that likeness matched, T = prod(1 - TRUST + TRUST r) is the likelihood ratio of Q, under which each group is one
item with probability TRUST, to the null. With draws T_1, .., T_B of it under Q,

    p = (1/T + sum of 1/T_b over the T_b >= T) / (B + 1)

is a p-value, exactly and for every B (importance sampling with the observation counted in: Harrison 2012), and it is
never above 1/T.

As an e-value for weighted e-BH over K hypotheses (`discoveries`), with R chosen without these agents' rewards:

    boosted = (1 - s) e + K / (level w R) where p <= s level w R / K

has the mean 1 or less under the null, and is large enough with R findings. R is 1 + the findings that weighted e-BH
makes by T among the other questions whose arms are alike and that none of these agents is in, with T under the prior
that was fitted without these agents' folds (conditional calibration: Fithian and Lei 2022, Lee and Ren 2024). Whether
that prior suits the others does not matter: R only has to be a function of other agents' rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.evidence import ArmEvidence
from cloneproof.analysis.copying.one_agent import TRUST

DRAWS: Final = 299
_SEED: Final = 20


def matched_p_value(evidence: ArmEvidence, groups: Sequence[Sequence[int]], priors: FloatArray) -> float:
    """The p-value of agents whose arms are matched in groups (numbers of arms); the larger one of the priors.

    So it is valid if either prior is right. Draws are fixed by the arms' numbers.
    """
    return max(_p_value(evidence, groups, prior) for prior in priors)


def _p_value(evidence: ArmEvidence, groups: Sequence[Sequence[int]], prior: FloatArray) -> float:
    rows = [[np.exp(evidence.log_likelihood[[arm]]) for arm in group] for group in groups]
    seen = sum(float(_log_ratio(tables, prior)[0]) for tables in rows)
    if seen <= 0:
        return 1.0  # more than it is: what is no evidence need not be computed
    drawn, law = np.zeros(DRAWS), np.cumsum(prior)
    dice = np.random.default_rng([_SEED, *(arm for group in groups for arm in group)])
    for group in groups:
        places = np.minimum(np.searchsorted(law, dice.random((len(group), DRAWS)) * law[-1]), len(law) - 1)
        places = np.where(dice.random(DRAWS) < TRUST, places[0], places)
        drawn += _log_ratio([evidence.drawn(arm, row, dice) for arm, row in zip(group, places, strict=True)], prior)
    return float((np.exp(-seen) + np.exp(-drawn[drawn >= seen]).sum()) / (DRAWS + 1))


def _log_ratio(tables: Sequence[FloatArray], prior: FloatArray) -> FloatArray:
    """Ln(1 - TRUST + TRUST r) of each row of the likelihoods of a group's arms."""
    together, apart = np.ones_like(tables[0]), np.zeros(len(tables[0]))
    for table in tables:
        together, apart = together * table, apart + np.log(table @ prior)
    with np.errstate(divide="ignore"):
        factor = np.log(together @ prior) - apart
    return np.asarray(np.logaddexp(np.log(1 - TRUST), np.log(TRUST) + factor))


def matched_ratios(
    evidence: ArmEvidence, questions: Sequence[Sequence[Sequence[int]]], priors: FloatArray
) -> FloatArray:
    """Ln T of each question (rows; its groups of matched arms) under each prior (columns).

    >>> table = np.log(np.eye(4)[[1, 1, 2]] + 1e-300)
    >>> seen = ArmEvidence(table, np.zeros(3), 0.1, 1.0, np.zeros(4), np.ones(3))
    >>> np.exp(matched_ratios(seen, [[(0, 1)], [(0, 2)]], np.full((1, 4), 0.25))).round(3).tolist()
    [[3.7], [0.1]]
    """
    ratios = np.zeros((len(questions), len(priors)))
    for number, groups in enumerate(questions):
        for group in groups:
            tables = np.exp(evidence.log_likelihood[list(group)])
            with np.errstate(divide="ignore"):
                factor = np.log(priors @ tables.prod(axis=0)) - np.log(tables @ priors.T).sum(axis=0)
            ratios[number] += np.logaddexp(np.log(1 - TRUST), np.log(TRUST) + factor)
    return ratios


def boosted(log_e: float, p_value: float, target: float, share: float) -> float:
    """Ln of the boosted e-value, which reaches the target K / (level w R) where p <= share / target.

    >>> [round(float(np.exp(boosted(np.log(30.0), p, target=100.0, share=0.9))), 9) for p in (0.008, 0.02)]
    [103.0, 3.0]
    """
    reached = np.log(target) if p_value <= share / target else -np.inf
    return float(np.logaddexp(np.log1p(-share) + log_e, reached))
