"""Which of an agent's arms are one item: exact sums over all partitions of them.

A partition groups k arms into items. Given it, each group has one mean, drawn from the prior F, and its evidence is
m(B) = sum_g F(g) prod_{i in B} L_i(g). The prior over partitions is Ewens' (the Chinese restaurant process),

    w(P) = theta^blocks  prod_B (|B| - 1)!  /  (theta (theta + 1) .. (theta + k - 1)),

the one in which any two arms are one item with odds 1/theta however many further arms there are: what an agent
registers besides does not change what is believed of two arms beforehand. (Odds for each merger alone would: under
them a pair among ten arms has another prior than the pair alone.)

The sums run over subsets instead of partitions, by  Z(S) = sum over blocks B of S that hold its first arm of
theta (|B| - 1)! r(B) Z(S - B),  where r(B) = m(B) / prod_{i in B} m({i}) is the Bayes factor of one item: some 3^k
steps in place of Bell's number, and every partition is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import gammaln

from cloneproof._arrays import FloatArray, IntArray

MOST_EXACT: Final = 10  # arms: 29,524 pairs of a subset and a block


def block_factors(log_likelihood: FloatArray, prior: FloatArray) -> FloatArray:
    """The logarithm of r(B) for every subset of the arms, by its bits; rows are arms, columns the grid of the prior.

    >>> sure, even = np.log(np.eye(4)[[1, 1, 2]] + 1e-300), np.full(4, 0.25)
    >>> [round(float(v), 6) for v in np.exp(block_factors(sure, even))]
    [1.0, 1.0, 1.0, 4.0, 1.0, 0.0, 0.0, 0.0]
    """
    count = len(log_likelihood)
    summed = np.zeros((1 << count, log_likelihood.shape[1]))
    for arm in range(count):
        summed[1 << arm : 2 << arm] = summed[: 1 << arm] + log_likelihood[arm]
    top = summed.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        evidence = np.log(np.exp(summed - top) @ prior) + top[:, 0]
    alone = np.zeros(1 << count)
    for arm in range(count):
        alone[1 << arm : 2 << arm] = alone[: 1 << arm] + evidence[1 << arm]
    evidence[0] = 0.0
    return np.asarray(evidence - alone)


@dataclass(frozen=True)
class PartitionSums:
    """All partitions of k arms at one theta: sums over them, as logarithms, by the bits of subsets.

    weight   ln(theta (|B| - 1)! r(B)) of each block
    total    ln Z(S)
    """

    count: int
    theta: float
    weight: FloatArray
    total: FloatArray

    @property
    def log_factor(self) -> float:
        """Ln of the Bayes factor of the mixture over all partitions against an item for each arm."""
        return float(self.total[-1] - log_rising(self.theta, self.count))

    def probability_together(self, arms: int) -> float:
        """The posterior probability that the arms of a subset are all in one block."""
        whole = len(self.weight) - 1
        blocks = np.arange(whole + 1)
        blocks = blocks[(blocks & arms) == arms]
        return float(np.exp(log_sum(self.weight[blocks] + self.total[whole ^ blocks]) - self.total[whole]))

    def likeliest(self) -> list[int]:
        """The blocks of the partition of the highest posterior probability."""
        best, choice = np.zeros(len(self.weight)), np.zeros(len(self.weight), dtype=np.int64)
        for subset, blocks in enumerate(_blocks_of(self.count)):
            if subset:
                values = self.weight[blocks] + best[subset ^ blocks]
                choice[subset], best[subset] = blocks[np.argmax(values)], values.max()
        left, found = len(self.weight) - 1, []
        while left:
            found.append(int(choice[left]))
            left ^= found[-1]
        return found


def partition_sums(factors: FloatArray, theta: float) -> PartitionSums:
    """The sums over all partitions; `factors` are those of `block_factors`.

    >>> two = partition_sums(np.log([1.0, 1.0, 1.0, 90.0]), theta=10.0)
    >>> round(two.probability_together(0b11), 6)  # odds .1 times the factor 90
    0.9
    """
    count = int(len(factors) - 1).bit_length()
    sizes = np.array([subset.bit_count() for subset in range(len(factors))], dtype=float)
    weight = np.log(theta) + gammaln(np.maximum(sizes, 1.0)) + factors
    total = np.zeros(len(factors))
    for subset, blocks in enumerate(_blocks_of(count)):
        if subset:
            total[subset] = log_sum(weight[blocks] + total[subset ^ blocks])
    return PartitionSums(count, theta, weight, total)


def log_sum(values: FloatArray) -> float:
    """Ln of the sum of exponentials (scipy's, without the half millisecond of its checks).

    >>> log_sum(np.array([-np.inf, 0.0, 0.0])) == float(np.log(2)), log_sum(np.array([-np.inf]))
    (True, -inf)
    """
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum())) if np.isfinite(top) else top


def log_rising(theta: float, count: int) -> float:
    """Ln of theta (theta + 1) .. (theta + count - 1)."""
    return float(np.log(theta + np.arange(count)).sum())


@lru_cache(maxsize=MOST_EXACT)
def _blocks_of(count: int) -> list[IntArray]:
    """For each subset, its subsets that hold its lowest bit."""
    everything = np.arange(1 << count)
    return [
        everything[((everything & subset) == everything) & ((everything & (subset & -subset)) != 0)]
        for subset in range(1 << count)
    ]
