"""For two arms of one agent: the posterior probability that one is a copy of the other.

Two hypotheses about arms with likelihoods L, L' on the grid and the agent's prior F:

    copies    one mean, drawn once:    sum_g F(g) L(g) L'(g)
    distinct  two means, drawn apart:  (sum_g F(g) L(g)) (sum_g F(g) L'(g))

Their ratio is the Bayes factor; the posterior odds are the prior odds times it. Equal means alone prove nothing: where
the prior has much weight at one value, two honest arms are often equal, both sums are large and the factor is near
1/F(g). The prior odds of a copy are a judgement that no season's data can replace, so they are a stated parameter.

A pair is judged by a prior that it did not shape: its own share in the fit is taken out, both in its agent's prior and
in the market's: the last step of EM, without the pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._checks import real
from cloneproof.analysis.history.evidence import POINTS, ArmRewards
from cloneproof.analysis.history.fit import FittedPriors
from cloneproof.errors import EngineError, brief


@dataclass(frozen=True)
class Pair:
    """Two arms of an agent: the Bayes factor for copies, and their probability at the stated prior odds."""

    agent: str
    arms: tuple[str, str]
    bayes_factor: float
    probability: float


def bayes_factor(first: FloatArray, second: FloatArray, prior: FloatArray) -> float:
    """How many times likelier the rewards of two arms are if they share one mean.

    >>> even, sure = np.full(POINTS, 1 / POINTS), np.eye(POINTS)[1000]
    >>> bayes_factor(sure, sure, even), bayes_factor(sure, sure, sure)
    (2001.0, 1.0)
    """
    return float((prior @ (first * second)) / ((prior @ first) * (prior @ second)))


def copy_probability(factor: float, odds: float) -> float:
    """The posterior probability of copies.

    >>> copy_probability(9.0, 1.0)
    0.9
    """
    return odds * factor / (1.0 + odds * factor)


def judge_pairs(arms: Sequence[ArmRewards], fitted: FittedPriors, odds: float) -> list[Pair]:
    """Every pair of arms of one agent, the likeliest copies first; arms without rewards say nothing (factor 1)."""
    checked_odds(odds)
    silent = {(arm.agent, arm.arm) for arm in arms if not arm.rewards}
    everybody = sum(fitted.posterior.values(), np.zeros(POINTS))
    judged = []
    for agent in fitted.agents:
        names = [arm.arm for arm in arms if arm.agent == agent]
        summed = sum((fitted.posterior[agent, name] for name in names), np.zeros(POINTS))
        for first, second in combinations(names, 2):
            pair = fitted.posterior[agent, first] + fitted.posterior[agent, second]
            market = np.clip(everybody - pair, 0.0, None) + fitted.smoothing / POINTS
            prior = np.clip(summed - pair, 0.0, None) + fitted.pooling * market / market.sum()
            factor = bayes_factor(
                fitted.likelihood[agent, first], fitted.likelihood[agent, second], prior / prior.sum()
            )
            factor = (
                1.0 if silent & {(agent, first), (agent, second)} else factor
            )  # exactly: at even odds roundings tell
            judged.append(Pair(agent, (first, second), factor, copy_probability(factor, odds)))
    return sorted(judged, key=lambda pair: -pair.probability)


def checked_odds(odds: object) -> float:
    """Prior odds of a copy: a finite number above 0."""
    number = real(odds)
    if number is None or number <= 0:
        raise EngineError(f"expected prior odds of a copy above 0, got {brief(odds)}; 0.1 is one in eleven")
    return number


def clusters(arms: Sequence[str], pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
    """An agent's arms in groups: those joined by a chain of pairs that are rather copies than not.

    >>> clusters(["a", "b", "c"], [Pair("ana", ("a", "c"), 9.0, 0.9), Pair("ana", ("a", "b"), 0.1, 0.1)])
    [('a', 'c'), ('b',)]
    """
    group = {arm: arm for arm in arms}
    for pair in pairs:
        if pair.probability > 0.5:
            old, new = group[pair.arms[1]], group[pair.arms[0]]
            group = {arm: new if where == old else where for arm, where in group.items()}
    return [tuple(arm for arm in arms if group[arm] == name) for name in dict.fromkeys(group.values())]
