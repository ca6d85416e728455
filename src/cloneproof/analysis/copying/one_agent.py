"""An agent's arms judged together: which of them are one item, with which probability, and the e-value of copies.

Up to MOST_EXACT arms every partition counts (`partitions`), beyond it greedy merging stands in (`merging`). There are
two fitted priors (`prior_fits`), of which either may be right: the probabilities average over both, each weighted by
how well it explains the arms, and the e-value is the smaller one, so it is valid if either prior is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.merging import log_mean, merge_greedily, pair_given_others
from cloneproof.analysis.copying.partitions import (
    MOST_EXACT,
    block_factors,
    log_rising,
    log_sum,
    partition_sums,
)

MOST_JUDGED: Final = 40
MOST_QUICK: Final = 6
LOG_SMALL: Final = 1.0
THETAS: Final = (0.0, 1.0, 10.0, 100.0)
ONE_ITEM: Final = 0.25  # of the weight of another theta: that of theta = 0
TRUST: Final = 0.9  # in likeness
SUREST: Final = 1 - 1e-12  # no log shows more


@dataclass(frozen=True)
class ArmsJudged:
    """What the rewards of an agent's arms say, at prior odds that two of them are one item.

    pairs    the probability that two arms are one item, by their numbers
    groups   the arms joined by pairs that are rather one item than not, two and more
    sure     for each group the probability that all of it is one item (given the others, where merging was greedy)
    """

    pairs: dict[tuple[int, int], float]
    groups: tuple[tuple[int, ...], ...]
    sure: tuple[float, ...]


def judge_arms(log_likelihood: FloatArray, priors: FloatArray, odds: float) -> ArmsJudged:
    """Judge all arms of an agent jointly; rows are arms, columns the grid of the priors.

    >>> same, other = np.log(np.eye(50)[[7, 7]] + 1e-9), np.log(np.eye(50)[[9]] + 1e-9)
    >>> judged = judge_arms(np.concatenate([same, other]), np.full((1, 50), 0.02), odds=0.1)
    >>> judged.groups, round(judged.pairs[0, 1], 2), round(judged.pairs[0, 2], 2)
    (((0, 1),), 0.61, 0.0)
    """
    count = len(log_likelihood)
    together = (
        _exactly(log_likelihood, priors, odds) if count <= MOST_EXACT else _greedily(log_likelihood, priors, odds)
    )
    pairs = {pair: min(together(pair), SUREST) for pair in combinations(range(count), 2)}
    groups = [group for group in joined(count, [pair for pair in pairs if pairs[pair] > 0.5]) if len(group) > 1]
    return ArmsJudged(pairs, tuple(groups), tuple(min(together(group), SUREST) for group in groups))


Together = Callable[[tuple[int, ...]], float]


def _exactly(log_likelihood: FloatArray, priors: FloatArray, odds: float) -> Together:
    """The probability that some arms are one item, as a function of them: over all partitions."""
    parts: list[tuple[float, Together]] = []
    for prior in priors:
        factors, alone = block_factors(log_likelihood, prior), _log_alone(log_likelihood, prior)

        def of_theta(theta: float, factors: FloatArray = factors) -> tuple[float, Together]:
            sums = partition_sums(factors, theta)
            return sums.log_factor, lambda arms: sums.probability_together(sum(1 << arm for arm in arms))

        parts += _habits_seen(odds, alone, float(factors[-1]), of_theta)
    return _averaged(parts)


def _greedily(log_likelihood: FloatArray, priors: FloatArray, odds: float) -> Together:
    """The same from greedy merging: a pair given the grouping of the others, a group by its least likely pair."""
    parts: list[tuple[float, Together]] = []
    for prior in priors:
        alone = _log_alone(log_likelihood, prior)

        def of_theta(theta: float, prior: FloatArray = prior) -> tuple[float, Together]:
            way = merge_greedily(log_likelihood, prior, theta)
            return way.explained, lambda pair: pair_given_others(
                log_likelihood, prior, way.blocks, (pair[0], pair[1]), theta
            )

        parts += _habits_seen(odds, alone, log_mean(log_likelihood.sum(axis=0), prior) - alone, of_theta)
    pair_together = cache(_averaged(parts))
    return lambda arms: min(pair_together(pair) for pair in combinations(arms, 2))


def _habits_seen(
    odds: float, alone: float, one_item: float, of_theta: Callable[[float], tuple[float, Together]]
) -> list[tuple[float, Together]]:
    """Ln of each habit's weight and evidence, and the probability that it gives some arms of being one item.

    alone, one_item   ln of the evidence of an item for each arm, and of the Bayes factor of all arms being one item
    of_theta          ln of the Bayes factor of Ewens' prior, and its probabilities
    """
    habits, honest = copying_habits(odds)
    seen: list[tuple[float, Together]] = [(np.log(honest) + alone, lambda _arms: 0.0)] if honest > 0 else []
    for theta, weight in habits:
        factor, together = of_theta(theta) if theta else (one_item, lambda _arms: 1.0)
        seen.append((np.log(weight) + alone + factor, together))
    return seen


def _averaged(parts: Sequence[tuple[float, Together]]) -> Together:
    """The average of probabilities, weighted by the evidence; what has less than a millionth of it is left out."""
    weights = softmax([log_weight for log_weight, _ in parts])
    used = [(float(weight), together) for weight, (_, together) in zip(weights, parts, strict=True) if weight > 1e-6]
    return lambda arms: sum(weight * together(arms) for weight, together in used)


def copying_habits(odds: float) -> tuple[tuple[tuple[float, float], ...], float]:
    """How much agents copy, before anything is seen: thetas of Ewens' prior, each with its weight, and that of honesty.

    An agent either copies nothing (theta without end), or to one of three degrees: at theta = 1, 10, 100 two of its
    arms are one item with probability 1/2, 1/11, 1/101; or all of its arms are one item (theta = 0), with ONE_ITEM of
    the weight of a degree. The weights are such that for any two arms the odds are the stated ones, however many arms
    there are. (For odds above 0.43, where these weights do not reach, the thetas are smaller.)

    Without the end at 0 the weight of "all one item" falls to nothing as arms become many, since at theta > 0 an agent
    registers new items for ever: of k copies each may stand apart with the same odds, so that the probability of the
    whole group falls with k. The end at 0 is what keeps it rising; it takes from agents with copies and other items.

    >>> habits, honest = copying_habits(0.1)
    >>> [(theta, round(weight, 3)) for theta, weight in habits], round(honest, 3)
    ([(0.0, 0.027), (1.0, 0.107), (10.0, 0.107), (100.0, 0.107)], 0.653)
    >>> round(sum(weight / (1 + theta) for theta, weight in habits), 4)
    0.0909
    """
    wanted, shares = odds / (1 + odds), (ONE_ITEM, *[1.0] * (len(THETAS) - 1))

    def reached(scale: float) -> float:
        return sum(share / (1 + scale * theta) for share, theta in zip(shares, THETAS, strict=True))

    scale, most = 1.0, 0.9 / sum(shares)
    weight = wanted / reached(scale)
    if weight > most:
        weight = max(most, wanted / (0.99 * sum(shares)))
        scale = brentq(lambda size: weight * reached(size) - wanted, 0.0, 1.0)
    habits = tuple((scale * theta, weight * share) for theta, share in zip(THETAS, shares, strict=True))
    return habits, max(0.0, 1 - weight * sum(shares))


def log_e_value(log_likelihood: FloatArray, priors: FloatArray, alike: Sequence[tuple[int, ...]] = ()) -> float:
    """Ln of the e-value against "every arm is an item of its own, drawn from the prior".

    The mixture over all other partitions, with equal parts of Ewens' prior at theta = 1, which favours large groups,
    and at theta = k(k - 1)/2, at which about one pair is expected. Where arms are alike in what is known of them
    besides rewards, TRUST of the mixture goes to their groups: the product of 1 - TRUST + TRUST r(B) over the groups B
    of `alike`, which have no arm in common. Under the null its expected value is 1 for the prior that is right (at
    most 1 beyond MOST_EXACT arms); of the two priors' values the smaller is taken.
    """
    values = []
    for prior in priors:
        value = _log_mixture(log_likelihood, prior)
        if alike:
            tables = [log_likelihood[list(group)] for group in alike]
            factors = [log_mean(table.sum(axis=0), prior) - _log_alone(table, prior) for table in tables]
            trusted = float(np.logaddexp(np.log(1 - TRUST), np.log(TRUST) + np.array(factors)).sum())
            value = float(np.logaddexp(np.log(1 - TRUST) + value, np.log(TRUST) + trusted))
        values.append(value)
    return min(values)


def e_value_thetas(count: int) -> tuple[float, ...]:
    """The two thetas of the mixture; for two arms they are one.

    >>> e_value_thetas(2), e_value_thetas(5)
    ((1.0,), (1.0, 10.0))
    """
    return (1.0,) if count == 2 else (1.0, count * (count - 1) / 2)


def _log_mixture(log_likelihood: FloatArray, prior: FloatArray) -> float:
    """Ln of sum over P of w(P) m(P) / m(all different), P = all different left out and w scaled accordingly.

    For more than MOST_QUICK arms greedy merging comes first, which gives a part of the sum. Where that is small it is
    the answer: a smaller e-value is one too, and most agents of a large log are of this kind.
    """
    count = len(log_likelihood)
    if count > MOST_QUICK:
        merged = _scaled(
            count, lambda theta: log_sum(np.array([-np.inf, *merge_greedily(log_likelihood, prior, theta).on_the_way]))
        )
        if count > MOST_EXACT or merged < LOG_SMALL:
            return merged
    factors = block_factors(log_likelihood, prior)

    def all_but_different(theta: float) -> float:
        whole, different = partition_sums(factors, theta).log_factor, _log_different(count, theta)
        return whole + float(np.log1p(-np.exp(different - whole))) if whole > different else -np.inf

    return _scaled(count, all_but_different)


def _scaled(count: int, of_theta: Callable[[float], float]) -> float:
    """The average over the thetas, each scaled to weights of sum 1 without the partition into different items."""
    thetas = e_value_thetas(count)
    parts = [of_theta(theta) - np.log(-np.expm1(_log_different(count, theta))) for theta in thetas]
    return log_sum(np.array(parts)) - float(np.log(len(thetas)))


def _log_different(count: int, theta: float) -> float:
    return float(count * np.log(theta) - log_rising(theta, count))


def likely_groups(
    log_likelihood: FloatArray, priors: FloatArray, odds: float
) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    """The groups that are rather one item than not, with their probabilities; the likeliest pair where there is none.

    The first one is that whose Bayes factor is largest (under the smooth prior): what speaks most for copies.

    Beyond MOST_JUDGED arms they are those of greedy merging under the prior that says less, each with the probability
    of its least likely neighbours in the order of means, given the others.
    """
    if len(log_likelihood) <= MOST_JUDGED:
        judged = judge_arms(log_likelihood, priors, odds)
        best = max(judged.pairs, key=lambda pair: judged.pairs[pair])
        groups, sure = (judged.groups, judged.sure) if judged.groups else ((best,), (judged.pairs[best],))
    else:
        groups, sure = _merged_groups(log_likelihood, priors, 1 / odds)
    tables = [log_likelihood[list(group)] for group in groups]
    factors = [log_mean(table.sum(axis=0), priors[-1]) - _log_alone(table, priors[-1]) for table in tables]
    order = sorted(range(len(groups)), key=lambda number: -factors[number])
    return tuple(groups[number] for number in order), tuple(sure[number] for number in order)


def _merged_groups(
    log_likelihood: FloatArray, priors: FloatArray, theta: float
) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    prior = min(priors, key=lambda one: merge_greedily(log_likelihood, one, theta).explained)
    blocks = merge_greedily(log_likelihood, prior, theta).blocks
    groups = tuple(block for block in blocks if len(block) > 1)
    tops = np.argmax(log_likelihood, axis=1)
    sure = []
    for group in groups:
        chain = sorted(group, key=lambda arm: int(tops[arm]))
        links = [pair_given_others(log_likelihood, prior, blocks, pair, theta) for pair in pairwise(chain)]
        sure.append(min(links))
    return groups, tuple(sure)


def joined(count: int, pairs: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Numbers in groups: those joined by a chain of pairs.

    >>> joined(4, [(0, 2), (2, 3)])
    [(0, 2, 3), (1,)]
    """
    group = list(range(count))
    for first, second in pairs:
        old, new = group[second], group[first]
        group = [new if where == old else where for where in group]
    return [tuple(one for one in range(count) if group[one] == name) for name in dict.fromkeys(group)]


def _log_alone(log_likelihood: FloatArray, prior: FloatArray) -> float:
    top = log_likelihood.max(axis=1)
    with np.errstate(divide="ignore"):
        return float((np.log(np.exp(log_likelihood - top[:, None]) @ prior) + top).sum())
