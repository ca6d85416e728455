"""Priors fitted to a season's rewards: empirical Bayes on a grid of means, by EM.

Assumed: every arm's mean was drawn from its agent's prior, independently, and rewards given a mean are independent.
Two levels, since an agent has few arms:

1. The market's prior maximises  sum over all arms of ln(sum_g F(g) L_arm(g))  +  sum_g c(g) ln F(g),  where c spreads
   `smoothing` pseudo-arms evenly over the grid. The objective is concave, so EM climbs to its one maximum.
2. An agent's prior is one step of the same from there, over its own arms, with `pooling` pseudo-arms spread like the
   market's prior. (More steps would settle on the few means that it happened to draw.)

A step of EM gives every arm its posterior over the grid under the present prior, and takes the average of these and
of the pseudo-arms as the next prior.

Whether an agent's arms are copies is judged by neither: its own arms would make their mean common in the prior that
judges them. For that there are priors fitted without the whole agent (`judging`; `analysis.copying.prior_fits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.prior_fits import FittedWithout, deal_folds, fit_without
from cloneproof.analysis.history.evidence import GRID, POINTS, ArmRewards, log_likelihood
from cloneproof.market.family import RewardFamily
from cloneproof.market.priors import Discrete, Point, Prior

SMOOTHING: Final = 1.0
POOLING: Final = 2.0
_STEPS: Final = 300
_SMALL: Final = 1e-5  # total change of a prior at which EM stops


@dataclass(frozen=True)
class FittedPriors:
    """The priors over the grid, of the market and of each agent, and each arm's likelihood on it.

    log_likelihood   of each arm; its logarithm does not underflow where several arms are put together
    fold      of each agent: `judging.pair(fold, fold)` are the priors that its arms are judged by
    """

    market: FloatArray
    agents: Mapping[str, FloatArray]
    likelihood: Mapping[tuple[str, str], FloatArray]
    log_likelihood: Mapping[tuple[str, str], FloatArray]
    judging: FittedWithout
    fold: Mapping[str, int]


def fit_priors(
    arms: Sequence[ArmRewards], family: RewardFamily, smoothing: float = SMOOTHING, pooling: float = POOLING
) -> FittedPriors:
    """Fit all priors to the arms of a season.

    >>> from cloneproof.market.family import BOUNDED
    >>> fitted = fit_priors([ArmRewards("ana", f"{k}", 500, 0.2 + 0.4 * (k % 2)) for k in range(40)], BOUNDED)
    >>> [round(float(v), 2) for v in np.interp([0.4, 0.9], GRID, np.cumsum(fitted.agents["ana"]))]
    [0.5, 1.0]
    """
    logarithm = np.stack([log_likelihood(arm, family) for arm in arms])
    table = np.exp(logarithm)
    market = maximise_likelihood(table, np.full(POINTS, smoothing / POINTS))
    rows = table * market
    rows /= rows.sum(axis=1, keepdims=True)
    agents = {}
    for name in dict.fromkeys(arm.agent for arm in arms):
        of_agent = [row for arm, row in zip(arms, rows, strict=True) if arm.agent == name]
        agents[name] = (np.sum(of_agent, axis=0) + pooling * market) / (len(of_agent) + pooling)
    likelihood = {(arm.agent, arm.arm): row for arm, row in zip(arms, table, strict=True)}
    folds = deal_folds([arm.agent for arm in arms])
    seen = np.array([arm.rewards > 0 for arm in arms])
    means = np.array([arm.mean for arm in arms])
    judging = fit_without(logarithm[seen], means[seen], folds[seen], GRID[1])
    fold = {arm.agent: int(number) for arm, number in zip(arms, folds, strict=True)}
    logarithms = {(arm.agent, arm.arm): row for arm, row in zip(arms, logarithm, strict=True)}
    return FittedPriors(market, agents, likelihood, logarithms, judging, fold)


def maximise_likelihood(likelihood: FloatArray, pseudo: FloatArray) -> FloatArray:
    """The prior that maximises the penalised likelihood; rows are arms, columns the grid."""
    prior = np.full(POINTS, 1.0 / POINTS)
    total = len(likelihood) + pseudo.sum()
    for _ in range(_STEPS):
        arms = prior * (likelihood.T @ (1.0 / (likelihood @ prior)))  # the arms' posteriors, summed
        step = (arms + pseudo) / total
        change = float(np.abs(step - prior).sum())
        prior = step
        if change < _SMALL:
            break
    return np.asarray(prior / prior.sum())


def condense(prior: FloatArray, atoms: int) -> Prior:
    """A prior of few atoms for the exact engines: slices of equal probability, each at its own mean.

    The mean stays; the spread inside a slice is lost.

    >>> condense(np.full(POINTS, 1 / POINTS), 2)
    Discrete(values=(0.2499, 0.7501), weights=(0.5, 0.5))
    """
    whole, first = np.cumsum(prior), np.cumsum(prior * GRID)
    cuts = np.linspace(0.0, whole[-1], atoms + 1)
    below = np.interp(cuts, np.concatenate([[0.0], whole]), np.concatenate([[0.0], first]))
    means = np.round(np.clip(np.diff(below) * atoms, 0.0, 1.0), 4)
    values, counts = np.unique(means, return_counts=True)
    if len(values) == 1:
        return Point(float(values[0]))
    return Discrete([float(value) for value in values], [int(count) / atoms for count in counts])
