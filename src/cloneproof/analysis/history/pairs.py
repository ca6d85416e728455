"""Which arms of one agent are copies: judged jointly, over all ways to group them, and pairs as marginals.

Under a grouping every group has one mean, drawn from the prior F, and the evidence of a group with likelihoods L_i on
the grid is  sum_g F(g) prod_i L_i(g).  The prior over groupings gives any two arms the stated odds of being copies
however many there are, and the posterior of a pair is the sum over all groupings that put it together
(`analysis.copying.one_agent`: every grouping up to ten arms, greedy merging beyond). For two arms alone this is the
Bayes factor of one mean against two. Equal means alone prove nothing: where the prior has much weight at one value,
two honest arms are often equal, and the factor is near 1/F(g). The prior odds of a copy are a judgement that no
season's data can replace, so they are a stated parameter.

An agent is judged by a prior that it did not shape: one fitted to the arms of others (`fit`). By a prior with its own
arms in it, copies would count as evidence that their mean is common, and the more copies the more so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._checks import real
from cloneproof.analysis.copying.one_agent import judge_arms
from cloneproof.analysis.history.evidence import ArmRewards
from cloneproof.analysis.history.fit import FittedPriors
from cloneproof.errors import EngineError, brief


@dataclass(frozen=True)
class Pair:
    """Two arms of an agent: the probability of copies at the stated prior odds, and what turns those into it.

    The factor is the posterior odds over the prior odds, with the agent's other arms taken into account.
    """

    agent: str
    arms: tuple[str, str]
    bayes_factor: float
    probability: float


@dataclass(frozen=True)
class OneItem:
    """Two or more arms of an agent that are rather one item than not, and the probability that all of them are."""

    agent: str
    arms: tuple[str, ...]
    probability: float


def bayes_factor(first: FloatArray, second: FloatArray, prior: FloatArray) -> float:
    """How many times likelier the rewards of two arms are if they share one mean.

    >>> even, sure = np.full(2001, 1 / 2001), np.eye(2001)[1000]
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


def judge_agents(arms: Sequence[ArmRewards], fitted: FittedPriors, odds: float) -> tuple[list[Pair], list[OneItem]]:
    """Every pair of arms of one agent, and every group that is rather one item than not; the likeliest first.

    Arms without rewards say nothing: their pairs have the factor 1.
    """
    checked_odds(odds)
    pairs, items = [], []
    for agent in fitted.agents:
        own = [arm for arm in arms if arm.agent == agent]
        seen = [number for number, arm in enumerate(own) if arm.rewards]
        known: dict[tuple[int, int], float] = {}
        if len(seen) > 1:
            table = np.stack([fitted.log_likelihood[agent, own[number].arm] for number in seen])
            fold = fitted.fold[agent]
            judged = judge_arms(table, fitted.judging.pair(fold, fold), odds)
            known = {(seen[first], seen[second]): value for (first, second), value in judged.pairs.items()}
            for group, probability in zip(judged.groups, judged.sure, strict=True):
                items.append(OneItem(agent, tuple(own[seen[number]].arm for number in group), probability))
        for first, second in combinations(range(len(own)), 2):
            names = own[first].arm, own[second].arm
            if (first, second) in known:
                probability = known[first, second]
                pairs.append(Pair(agent, names, probability / (1 - probability) / odds, probability))
            else:  # exactly: at even odds roundings tell
                pairs.append(Pair(agent, names, 1.0, copy_probability(1.0, odds)))
    return sorted(pairs, key=lambda pair: -pair.probability), sorted(items, key=lambda item: -item.probability)


def judge_pairs(arms: Sequence[ArmRewards], fitted: FittedPriors, odds: float) -> list[Pair]:
    """The pairs of `judge_agents` alone."""
    return judge_agents(arms, fitted, odds)[0]


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
