"""Many arms: greedy merging in place of the sum over all partitions.

It begins with an item for each arm and merges the two groups whose merger raises the posterior most (Ewens' prior, see
`partitions`), as long as one does. Two things are made of it:

the mixture's part   sum of w(P) m(P) / m(all different) over the partitions on the way. It is at most the sum over all
                     partitions, so it is an e-value wherever that is one, whatever the way
pairs                the probability of each pair *given how the others were grouped*: each of the two arms may stand
                     alone, with the other, in its own group or in the other's
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import gammaln

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.partitions import log_rising, log_sum

MOST_AT_ONCE: Final = 1500  # arms; more are merged in slices, neighbours together


@dataclass(frozen=True)
class GreedyWay:
    """Where merging ended, and ln of w(P) m(P) / m(all different) at the beginning and on the way there."""

    blocks: tuple[tuple[int, ...], ...]
    beginning: float
    on_the_way: tuple[float, ...]

    @property
    def explained(self) -> float:
        """Ln of the sum of all of them: at most that over all partitions."""
        return log_sum(np.array([self.beginning, *self.on_the_way]))


def merge_greedily(log_likelihood: FloatArray, prior: FloatArray, theta: float) -> GreedyWay:
    """Merge while it raises the posterior; rows are arms, columns the grid.

    >>> sure = np.log(np.eye(50)[[7, 7, 7, 9]] + 1e-300)
    >>> merge_greedily(sure, np.full(50, 0.02), theta=10.0).blocks
    ((0, 1, 2), (3,))
    """
    order = np.argsort(np.argmax(log_likelihood, axis=1), kind="stable")
    cuts = range(MOST_AT_ONCE, len(order), MOST_AT_ONCE)
    blocks: list[tuple[int, ...]] = []
    beginning = reached = len(order) * np.log(theta) - log_rising(theta, len(order))
    on_the_way: list[float] = []
    for part in np.split(order, list(cuts)):
        found, gains = _merge(log_likelihood[part], prior, theta)
        blocks += [tuple(sorted(int(part[arm]) for arm in block)) for block in found]
        for gain in gains:
            reached += gain
            on_the_way.append(float(reached))
    return GreedyWay(tuple(sorted(blocks)), float(beginning), tuple(on_the_way))


def _merge(log_likelihood: FloatArray, prior: FloatArray, theta: float) -> tuple[list[tuple[int, ...]], list[float]]:
    """The blocks of one slice, and what each merger gained."""
    blocks: list[tuple[int, ...]] = [(arm,) for arm in range(len(log_likelihood))]
    tables = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    alone, sizes = tables @ prior, np.ones(len(blocks))
    scores = np.full((len(blocks), len(blocks)), -np.inf)
    for row in range(len(blocks)):
        scores[row] = _merger_gains(tables, prior, alone, sizes, theta, row)
    gains: list[float] = []
    while len(blocks) > 1 and scores.max() > 0:
        kept, gone = sorted(map(int, np.unravel_index(np.argmax(scores), scores.shape)))
        gains.append(float(scores[kept, gone]))
        product = tables[kept] * tables[gone]
        tables[kept] = product / product.max()
        tables[gone], scores[gone], scores[:, gone] = 0.0, -np.inf, -np.inf
        alone[kept], alone[gone] = tables[kept] @ prior, 0.0
        sizes[kept] += sizes[gone]
        blocks[kept], blocks[gone] = (*blocks[kept], *blocks[gone]), ()
        scores[kept] = scores[:, kept] = _merger_gains(tables, prior, alone, sizes, theta, kept)
    return [block for block in blocks if block], gains


def _merger_gains(
    tables: FloatArray, prior: FloatArray, alone: FloatArray, sizes: FloatArray, theta: float, row: int
) -> FloatArray:
    """By how much each merger with a block raises ln of the posterior; -inf with itself and with what is gone."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = np.log(tables @ (prior * tables[row])) - np.log(alone) - np.log(alone[row])
    gained += gammaln(sizes + sizes[row]) - gammaln(sizes) - gammaln(sizes[row]) - np.log(theta)
    gained[row] = -np.inf
    return np.where(alone > 0, gained, -np.inf)


def pair_given_others(
    log_likelihood: FloatArray,
    prior: FloatArray,
    blocks: tuple[tuple[int, ...], ...],
    pair: tuple[int, int],
    theta: float,
) -> float:
    """The probability that two arms are one item, given the grouping of all others."""
    group = {arm: block for block in blocks for arm in block}
    first, second = pair
    rests = dict.fromkeys(tuple(arm for arm in group[one] if arm not in pair) for one in pair)
    likelihood = {
        rest: log_likelihood[list(rest)].sum(axis=0) if rest else np.zeros(len(prior)) for rest in [*rests, ()]
    }

    def evidence(rest: tuple[int, ...], *joined: int) -> float:
        """Ln of the weight of these arms in a block with the rest, against the rest alone."""
        size, added = len(rest), len(joined)
        summed = likelihood[rest] + log_likelihood[list(joined)].sum(axis=0)
        value = log_mean(summed, prior) - log_mean(likelihood[rest], prior)
        return float(value + (gammaln(size + added) - gammaln(size) if size else np.log(theta) + gammaln(added)))

    places = [rest for rest in rests if rest] + [()]
    together = log_sum(np.array([evidence(place, first, second) for place in places]))
    apart = log_sum(
        np.array(
            [
                evidence(one, first) + evidence(other, second)
                for one in places
                for other in places
                if one != other or not one
            ]
        )
    )
    return float(np.exp(together - np.logaddexp(together, apart)))


def log_mean(log_values: FloatArray, prior: FloatArray) -> float:
    """Ln of the mean of exponentials under a prior."""
    top = log_values.max()
    with np.errstate(divide="ignore"):
        return float(np.log(np.exp(log_values - top) @ prior) + top)
