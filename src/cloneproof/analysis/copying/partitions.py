"""Which of an agent's arms are one item: exact sums over all partitions of them.

A partition groups k arms into items. Given it, each group has one mean, drawn from the prior F, and its evidence is
m(B) = sum_g F(g) prod_{i in B} L_i(g). The prior over partitions is Ewens' (the Chinese restaurant process),

    w(P) = theta^blocks  prod_B (|B| - 1)!  /  (theta (theta + 1) .. (theta + k - 1)),

the one in which any two arms are one item with odds 1/theta however many further arms there are.

The sums run over subsets instead of partitions, by  Z(S) = sum over blocks B of S that hold its first arm of
theta (|B| - 1)! r(B) Z(S - B),  where r(B) = m(B) / prod_{i in B} m({i}) is the Bayes factor of one item: some 3^k
steps in place of Bell's number.

For many arms *greedy merging* stands in: from an item for each arm it merges the two groups whose merger raises the
posterior most, as long as one does. The sum of w(P) m(P) / m(all different) over the partitions on the way is at most
the sum over all, so it is an e-value wherever that is one. A pair has its probability *given how the others were
grouped*: each of the two arms may stand alone, with the other, in its own group or in the other's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import gammaln

from cloneproof._arrays import FloatArray, IntArray

MOST_EXACT: Final = 10  # arms whose partitions are all summed: 29,524 pairs of a subset and a block
MOST_AT_ONCE: Final = 200  # arms; more are merged greedily in slices of neighbouring means


def block_factors(log_likelihood: FloatArray, priors: FloatArray) -> FloatArray:
    """Return the logarithm of r(B) for every subset of the arms, by its bits (rows), under each prior (columns)."""
    count = len(log_likelihood)
    summed = np.zeros((1 << count, log_likelihood.shape[1]))
    for arm in range(count):
        summed[1 << arm : 2 << arm] = summed[: 1 << arm] + log_likelihood[arm]
    top = summed.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        evidence = np.log(np.exp(summed - top) @ priors.T) + top
    alone = np.zeros(evidence.shape)
    for arm in range(count):
        alone[1 << arm : 2 << arm] = alone[: 1 << arm] + evidence[1 << arm]
    evidence[0] = 0.0
    return np.asarray(evidence - alone)


@dataclass(frozen=True)
class PartitionSums:
    """All partitions of k arms at one theta: sums over them, as logarithms, by the bits of subsets (rows).

    weight   ln(theta (|B| - 1)! r(B)) of each block
    total    ln Z(S)
    """

    count: int
    theta: float
    weight: FloatArray
    total: FloatArray

    @property
    def log_factor(self) -> FloatArray:
        """Ln of the Bayes factor of the mixture over all partitions against an item for each arm."""
        return np.asarray(self.total[-1] - log_rising(self.theta, self.count))

    def probability_together(self, arms: int) -> float:
        """Return the posterior probability that the arms of a subset are all in one block."""
        whole = len(self.weight) - 1
        blocks = np.arange(whole + 1)
        blocks = blocks[(blocks & arms) == arms]
        return float(np.exp(np.logaddexp.reduce(self.weight[blocks] + self.total[whole ^ blocks]) - self.total[whole]))


def partition_sums(factors: FloatArray, theta: float) -> PartitionSums:
    """Sum over all partitions; `factors` are those of `block_factors`."""
    count = int(len(factors) - 1).bit_length()
    sizes = np.array([subset.bit_count() for subset in range(len(factors))], dtype=float)
    weight = (np.log(theta) + gammaln(np.maximum(sizes, 1.0)) + factors.T).T
    total = np.zeros(factors.shape)
    for subset, blocks in enumerate(_blocks_of(count)):
        if subset:
            total[subset] = np.logaddexp.reduce(weight[blocks] + total[subset ^ blocks], axis=0)
    return PartitionSums(count, theta, weight, total)


def log_rising(theta: float, count: int) -> float:
    """Return ln of theta (theta + 1) .. (theta + count - 1)."""
    return float(np.log(theta + np.arange(count)).sum())


@lru_cache(maxsize=MOST_EXACT)
def _blocks_of(count: int) -> list[IntArray]:
    """Return, for each subset, its subsets that hold its lowest bit."""
    everything = np.arange(1 << count)
    return [
        everything[((everything & subset) == everything) & ((everything & (subset & -subset)) != 0)]
        for subset in range(1 << count)
    ]


@dataclass(frozen=True)
class GreedyWay:
    """Result of greedy merging: its blocks, and ln of w(P) m(P) / m(all different) at first and after each merger."""

    blocks: tuple[tuple[int, ...], ...]
    beginning: float
    on_the_way: tuple[float, ...]

    @property
    def explained(self) -> float:
        """Ln of the sum of all of them: at most that over all partitions."""
        return float(np.logaddexp.reduce([self.beginning, *self.on_the_way]))


def merge_greedily(log_likelihood: FloatArray, prior: FloatArray, theta: float) -> GreedyWay:
    """Merge while it raises the posterior; rows are arms, columns the grid."""
    order = np.argsort(np.argmax(log_likelihood, axis=1), kind="stable")
    cuts = range(MOST_AT_ONCE, len(order), MOST_AT_ONCE)
    blocks: list[tuple[int, ...]] = []
    beginning = reached = len(order) * np.log(theta) - log_rising(theta, len(order))
    on_the_way: list[float] = []
    for arms in np.split(order, list(cuts)):
        merged, gains = _merge(log_likelihood[arms], prior, theta)
        blocks += [tuple(sorted(int(arms[arm]) for arm in block)) for block in merged]
        for gain in gains:
            reached += gain
            on_the_way.append(float(reached))
    return GreedyWay(tuple(sorted(blocks)), float(beginning), tuple(on_the_way))


def _merge(log_likelihood: FloatArray, prior: FloatArray, theta: float) -> tuple[list[tuple[int, ...]], list[float]]:
    """Return the blocks of one slice, and what each merger gained."""
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
    """Return how much each merger with a block raises ln of the posterior; -inf for itself and merged blocks."""
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
    """Return the probability that two arms are one item, given the grouping of all others."""
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
    together = np.logaddexp.reduce([evidence(place, first, second) for place in places])
    apart = np.logaddexp.reduce(
        [
            evidence(one, first) + evidence(other, second)
            for one in places
            for other in places
            if one != other or not one
        ]
    )
    return float(np.exp(together - np.logaddexp(together, apart)))


def log_mean(log_values: FloatArray, prior: FloatArray) -> FloatArray:
    """Return ln of the mean of exponentials (the last axis) under a prior."""
    top = log_values.max(axis=-1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(log_values - top[..., None]) @ prior) + top)
