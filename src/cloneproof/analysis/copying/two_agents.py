"""Two agents: whether they share items, as a second account of one provider would. An e-value for each two agents.

The null: every arm of the two is an item of its own, its mean drawn from the prior, which was fitted without both. For
arms i of one and j of the other, r_ij is the Bayes factor of one item; under the null E[r_ij] = 1, and products over
pairs that have no arm in common have the mean 1 too. So these have at most the mean 1, and so has their average:

by rates      for each size s = 1, 2, .., S of a matching between the two, the average of the products of r over all
              matchings of s pairs, averaged over s. For s = 1 it is computed; for larger s it is bounded from below by
              the best matching found greedily over the number of matchings
by likeness   where arms are alike (`likeness`), over the pairs of one matching that likeness alone chooses: the product
              of (1 - TRUST + TRUST r_ij)

Both priors are tried, as for one agent, and the smaller e-value is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import gammaln

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.one_agent import TRUST
from cloneproof.analysis.copying.partitions import log_sum

MOST_MATCHED: Final = 8


@dataclass(frozen=True)
class TwoAgents:
    """Ln of the e-value of two agents, and the pairs of arms (by their numbers) that speak most for it."""

    log_e: float
    pairs: tuple[tuple[int, int], ...]


def pair_factors(first: FloatArray, second: FloatArray, prior: FloatArray) -> FloatArray:
    """Ln r_ij for all arms of the one and the other; rows of both are log-likelihoods on the grid.

    >>> sure = np.log(np.eye(4)[[1, 2]] + 1e-300)
    >>> np.exp(pair_factors(sure, sure, np.full(4, 0.25))).round(6).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    one, other = np.exp(first), np.exp(second)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.log((one * prior) @ other.T) - np.log(one @ prior)[:, None] - np.log(other @ prior)[None, :]
        )


def judge_two(
    first: FloatArray, second: FloatArray, priors: FloatArray, matched: tuple[tuple[int, int], ...] = ()
) -> TwoAgents:
    """The e-value of two agents; `matched` are pairs of rows, without a common one, that are alike."""
    judged = []
    for prior in priors:
        factors = pair_factors(first, second, prior)
        value, pairs = _by_rates(factors)
        if matched:
            of_matched = np.array([factors[pair] for pair in matched])
            alike = np.log(TRUST) + float(np.logaddexp(np.log(1 - TRUST), np.log(TRUST) + of_matched).sum())
            rates = np.log(1 - TRUST) + value
            value = float(np.logaddexp(rates, alike))
            if alike >= rates:
                pairs = tuple(pair for pair, factor in zip(matched, of_matched, strict=True) if factor > 0) or matched
        judged.append(TwoAgents(value, pairs))
    return min(judged, key=lambda one: one.log_e)


def _by_rates(factors: FloatArray) -> tuple[float, tuple[tuple[int, int], ...]]:
    """Ln of the average over sizes of matchings, and the best matching."""
    rows, columns = factors.shape
    sizes = min(rows, columns, MOST_MATCHED)
    parts, best, pairs = [log_sum(factors.ravel()) - np.log(factors.size)], 0.0, []
    left = factors.copy()
    for size in range(1, sizes + 1):
        row, column = np.unravel_index(np.argmax(left), left.shape)
        best += float(left[row, column])
        if left[row, column] <= 0:
            break
        pairs.append((int(row), int(column)))
        left[row], left[:, column] = -np.inf, -np.inf
        if size > 1:
            matchings = (
                gammaln(rows + 1) - gammaln(rows - size + 1) + gammaln(columns + 1) - gammaln(columns - size + 1)
            )
            parts.append(best - float(matchings - gammaln(size + 1)))
    return log_sum(np.array(parts)) - np.log(sizes), tuple(pairs)
