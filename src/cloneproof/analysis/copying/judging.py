"""Arms judged together: which are one item, with which probability, and the e-values of copies.

The e-values of one agent and of two are those of docs/textbook/copies.md, section 3: mixtures over all groupings of
arms, beyond MOST_EXACT of them over those that greedy merging passes (`partitions`). The null of two agents allows
either of them copies of its own, and both of them the same products, each at a rate of its own. So their evidence is
divided by the largest over groupings of each agent's arms by themselves, with one level for both or one for each, and
over pairs of matched arms with and without a level of their own.

There are two fitted priors (`priors`), of which either may be right: probabilities average over both, each weighted by
how well it explains the arms, and e-values are the smaller one, so they are valid if either prior is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise
from typing import Final, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._groups import joined
from cloneproof.analysis.copying.partitions import (
    MOST_EXACT,
    block_factors,
    log_mean,
    log_rising,
    merge_greedily,
    pair_given_others,
    partition_sums,
)
from cloneproof.analysis.copying.priors import RateLaw

MOST_LIKELY: Final = 3  # priors of a law besides the market's that an e-value averages over
MOST_QUICK: Final = 6  # arms up to which the exact sum is not preceded by greedy merging
LOG_SMALL: Final = 1.0  # ln of an e-value by greedy merging that is not computed more exactly
THETAS: Final = (0.0, 1.0, 10.0, 100.0)  # of Ewens' prior over partitions
ONE_ITEM: Final = 0.25  # weight of theta = 0, relative to each other theta
TRUST: Final = 0.9  # probability that arms that are alike are one item
SUREST: Final = 1 - 1e-12  # largest probability that is stated
Arm = TypeVar("Arm")


class ArmsJudged(NamedTuple):
    """Probability that two arms are one item, groups of arms that probably are, and the probability of each group."""

    pairs: dict[tuple[int, int], float]
    groups: tuple[tuple[int, ...], ...]
    sure: tuple[float, ...]


def judge_arms(log_likelihood: FloatArray, priors: FloatArray, odds: float) -> ArmsJudged:
    """Judge up to MOST_EXACT arms of an agent jointly, at prior odds that two of them are one item.

    Rows are arms, columns the grid of the priors. The posterior over all partitions is averaged over priors and habits
    of copying, each weighted by its evidence; groups are joined by pairs that are probably one item.
    """
    count = len(log_likelihood)
    habits, honest = copying_habits(odds)
    log_weights: list[float] = []
    together: list[Callable[[int], float]] = []  # from arms, by their bits, to the probability that they are one item
    for prior in priors:
        alone = float(log_mean(log_likelihood, prior).sum())
        factors = block_factors(log_likelihood, prior[None])[:, 0]
        log_weights += [np.log(honest) + alone] if honest > 0 else []
        together += [lambda _arms: 0.0] if honest > 0 else []
        for theta, weight in habits:
            sums = partition_sums(factors, theta) if theta else None
            log_weights.append(np.log(weight) + alone + float(sums.log_factor if sums else factors[-1]))
            together.append(sums.probability_together if sums else lambda _arms: 1.0)
    weights = softmax(log_weights)

    def probability(arms: tuple[int, ...]) -> float:
        bits = sum(1 << arm for arm in arms)
        parts = zip(weights, together, strict=True)
        return min(sum(float(weight) * of_arms(bits) for weight, of_arms in parts if weight > 1e-6), SUREST)

    pairs = {pair: probability(pair) for pair in combinations(range(count), 2)}
    groups = [group for group in joined(count, [pair for pair in pairs if pairs[pair] > 0.5]) if len(group) > 1]
    return ArmsJudged(pairs, tuple(groups), tuple(map(probability, groups)))


def copying_habits(odds: float) -> tuple[tuple[tuple[float, float], ...], float]:
    """Return how much agents copy a priori: thetas of Ewens' prior with weights, and the weight of honesty.

    An agent copies nothing (theta infinite), or to one of three degrees: at theta = 1, 10, 100 two of its arms are one
    item with probability 1/2, 1/11, 1/101; or all of its arms are one item (theta = 0), with ONE_ITEM of the weight of
    a degree. The weights give any two arms the stated odds, however many arms there are. (For odds above 0.43, which
    these weights cannot reach, the thetas are smaller.)

    Without theta = 0 the weight of "all one item" vanishes as arms become many, and with it the probability of a whole
    group of copies.
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


def log_e_value(
    log_likelihood: FloatArray,
    laws: Sequence[RateLaw],
    alike: Sequence[tuple[int, ...]] = (),
    alike_laws: Sequence[Sequence[RateLaw]] = (),
) -> float:
    """Return ln of the e-value of one agent's arms (rows); `alike` are groups of them that have no arm in common.

    laws         of the agent's arms, one for each fitted prior
    alike_laws   for each fitted prior, that of each group
    """
    hidden = {arm for group in alike for arm in group[1:]}
    kept = log_likelihood[[arm for arm in range(len(log_likelihood)) if arm not in hidden]]
    values = [_log_by_rates(kept, law) for law in laws]
    if alike:
        tables = [np.exp(log_likelihood[list(group)]) for group in alike]
        trusted = [
            sum(float(log_one_item(table, law)) for table, law in zip(tables, of_groups, strict=True))
            for of_groups in alike_laws
        ]
        values = [
            float(np.logaddexp(np.log(1 - TRUST) + rates, np.log(TRUST) + likeness))
            for rates, likeness in zip(values, trusted, strict=True)
        ]
    return min(values)


def _log_by_rates(log_likelihood: FloatArray, law: RateLaw) -> float:
    """Return the mixture over groupings under each prior of the law, averaged by how well that explains the null.

    Keeps the market's prior and the likeliest ones; leaving out others makes the average smaller.
    """
    if len(log_likelihood) < 2:
        return 0.0
    chosen, shares = _likeliest(log_likelihood, law)
    return float(np.logaddexp.reduce(np.log(shares) + _log_mixtures(log_likelihood, law.priors[chosen])))


def _likeliest(log_likelihood: FloatArray, law: RateLaw) -> tuple[IntArray, FloatArray]:
    """Return the market's prior and the law's likeliest ones, with their probabilities if no arm is a copy."""
    tops = log_likelihood.max(axis=1, keepdims=True)
    shares = softmax(law.evidence(np.exp(log_likelihood - tops)).sum(axis=0) + law.log_weights)
    best = np.argsort(-shares[1:], kind="stable")[: MOST_LIKELY if len(log_likelihood) <= MOST_EXACT else 1] + 1
    chosen = np.concatenate([[0], best])
    return chosen, np.maximum(shares[chosen], np.finfo(float).tiny)


def log_one_item(tables: FloatArray, law: RateLaw) -> FloatArray:
    """Return ln of 1 - TRUST + TRUST r for arms (the first axis of likelihoods) that are alike and have this law."""
    apart = sum((law.evidence(table) for table in tables), np.zeros(1))
    together = law.evidence(tables.prod(axis=0))
    return law.mixed(np.logaddexp(np.log(1 - TRUST) + apart, np.log(TRUST) + together)) - law.mixed(apart)


def log_shared(first: FloatArray, second: FloatArray, law: RateLaw, shops: RateLaw) -> FloatArray:
    """Return ln of the e-value of two agents, whose matched arms stand in one order (the first axis of likelihoods).

    law     of the arms of one agent
    shops   of one product at two shops
    """
    shared, resold = np.zeros(1), np.zeros(1)
    for one, other in zip(first, second, strict=True):
        apart, together = law.evidence(one) + law.evidence(other), law.evidence(one * other)
        shared = shared + np.logaddexp(np.log(1 - TRUST) + apart, np.log(TRUST) + together)
        resold = resold + shops.larger(shops.evidence(one) + shops.evidence(other))
    own, its = _log_largest(first, law), _log_largest(second, law)
    unshared = np.maximum(law.mixed(own) + law.mixed(its), law.mixed(own + its))
    return law.mixed(shared) - np.maximum(unshared, resold)


def _log_largest(tables: FloatArray, law: RateLaw) -> FloatArray:
    """Return ln of the largest evidence of arms over all groupings, under each prior of the law (the last axis)."""
    evidence: list[FloatArray] = [np.zeros(1)]
    products: list[FloatArray] = [np.ones(1)]
    for subset in range(1, 1 << len(tables)):
        lowest = (subset & -subset).bit_length() - 1
        products.append(products[subset & (subset - 1)] * tables[lowest])
        evidence.append(law.evidence(products[-1]))
    largest: list[FloatArray] = [np.zeros(1)]
    for subset in range(1, len(evidence)):
        rest = others = subset & (subset - 1)
        best = evidence[subset]
        while others:  # the other blocks that hold the lowest arm
            others = (others - 1) & rest
            block = others | (subset ^ rest)
            best = np.maximum(best, evidence[block] + largest[subset ^ block])
        largest.append(best)
    return largest[-1]


def log_trusted(log_factors: FloatArray) -> FloatArray:
    """Return ln(1 - TRUST + TRUST r) of Bayes factors r."""
    return np.asarray(np.logaddexp(np.log(1 - TRUST), np.log(TRUST) + log_factors))


def e_value_thetas(count: int) -> tuple[float, ...]:
    """Return the two thetas of the mixture; for two arms they are one.

    >>> e_value_thetas(2), e_value_thetas(5)
    ((1.0,), (1.0, 10.0))
    """
    return (1.0,) if count == 2 else (1.0, count * (count - 1) / 2)


def _log_mixtures(log_likelihood: FloatArray, priors: FloatArray) -> FloatArray:
    """Return ln of the sum over P of w(P) m(P) / m(all different), for each prior.

    P = all different is left out and w scaled accordingly; equal parts of Ewens' weights at theta = 1, which favours
    large groups, and at theta = k(k - 1)/2, at which about one pair is expected. For more than MOST_QUICK arms greedy
    merging comes first, which gives a part of the sum. Where that is small it is the answer: a smaller e-value is one
    too, and most agents of a large log are of this kind.
    """
    count = len(log_likelihood)
    thetas = e_value_thetas(count)
    left_out = np.array([np.log(-np.expm1(_log_different(count, theta))) for theta in thetas])
    if count > MOST_QUICK:
        ways = [[merge_greedily(log_likelihood, prior, theta).on_the_way for theta in thetas] for prior in priors]
        merged = np.array([[np.logaddexp.reduce([-np.inf, *way]) for way in of_prior] for of_prior in ways]) - left_out
        if count > MOST_EXACT or merged.max() < LOG_SMALL:
            return np.asarray(np.logaddexp.reduce(merged, axis=1) - np.log(len(thetas)))
    factors = block_factors(log_likelihood, priors)
    values = np.empty((len(priors), len(thetas)))
    for column, theta in enumerate(thetas):
        whole, different = partition_sums(factors, theta).log_factor, _log_different(count, theta)
        with np.errstate(divide="ignore"):
            values[:, column] = whole + np.log1p(-np.exp(np.minimum(different - whole, 0.0)))
    return np.asarray(np.logaddexp.reduce(values - left_out, axis=1) - np.log(len(thetas)))


def _log_different(count: int, theta: float) -> float:
    return float(count * np.log(theta) - log_rising(theta, count))


def likely_groups(
    log_likelihood: FloatArray, laws: Sequence[RateLaw], odds: float
) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    """Return the groups that are probably one item, with their probabilities; or else the likeliest pair.

    Under each law's likeliest prior. The first group has the largest Bayes factor (under the last law). Above
    MOST_EXACT arms they come from greedy merging under the less favourable prior, each with the probability of its
    least likely neighbours in the order of means, given the others.
    """
    likeliest = [_likeliest(log_likelihood, law) for law in laws]
    priors = np.stack(
        [law.priors[chosen[np.argmax(shares)]] for law, (chosen, shares) in zip(laws, likeliest, strict=True)]
    )
    if len(log_likelihood) <= MOST_EXACT:
        judged = judge_arms(log_likelihood, priors, odds)
        best = max(judged.pairs, key=lambda pair: judged.pairs[pair])
        groups, sure = (judged.groups, judged.sure) if judged.groups else ((best,), (judged.pairs[best],))
    else:
        groups, sure = _merged_groups(log_likelihood, priors, 1 / odds)
    tables = [log_likelihood[list(group)] for group in groups]
    factors = [float(log_mean(table.sum(axis=0), priors[-1]) - log_mean(table, priors[-1]).sum()) for table in tables]
    order = sorted(range(len(groups)), key=lambda number: -factors[number])
    return tuple(groups[number] for number in order), tuple(sure[number] for number in order)


def _merged_groups(
    log_likelihood: FloatArray, priors: FloatArray, theta: float
) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    ways = [(merge_greedily(log_likelihood, prior, theta), prior) for prior in priors]
    way, prior = min(ways, key=lambda one: one[0].explained)
    groups = tuple(block for block in way.blocks if len(block) > 1)
    tops = np.argmax(log_likelihood, axis=1)
    sure = []
    for group in groups:
        chain = sorted(group, key=lambda arm: int(tops[arm]))
        links = [pair_given_others(log_likelihood, prior, way.blocks, pair, theta) for pair in pairwise(chain)]
        sure.append(min(links))
    return groups, tuple(sure)


def matching(pairs: Iterable[tuple[Arm, Arm]]) -> tuple[tuple[Arm, Arm], ...]:
    """Choose pairs without common members, greedily in their order.

    >>> matching([("a", "x"), ("b", "x"), ("b", "y")])
    (('a', 'x'), ('b', 'y'))
    """
    taken: set[Arm] = set()
    chosen = []
    for pair in pairs:
        if taken.isdisjoint(pair):
            taken.update(pair)
            chosen.append(pair)
    return tuple(chosen)
