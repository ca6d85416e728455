"""A prior as points: its atoms, a Gauss rule with a proven error, quantiles at Legendre's nodes, or even ones.

*Coins.* Let what is paid in a round depend on an original through at most d coins that show heads with its mean: the
rewards themselves if they are 0 or 1, or coins that a mechanism flips for them. Given everything else it is a function
with values in [0, 1] of how many of the d coins show heads. If another prior takes the original's place, the expected
pay of a round therefore changes by at most the total variation distance of the two laws of this number. Originals are
replaced one at a time, so distances add up.

*Gauss rules.* The probability of each number of heads is a polynomial of degree d in the mean, which a Gauss rule with
more than d / 2 points integrates exactly. A small multiple of sqrt(d) points nearly does, as such a polynomial is
nearly one of that degree. Points are rounded, so the distance is computed for the rule as it is used.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import scipy

from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import legendre_nodes
from cloneproof.laws.counts import binomial_window
from cloneproof.laws.means import ExactAtoms, exact_atoms
from cloneproof.market.priors import Atoms, Beta, Prior, Uniform

ELSEWHERE = "use engine='runs'"
ROOTS = 3.6  # points for each square root of the coins, which leave a distance of about 1e-11
IDLE = 1e-18  # a weight of a point that may be left out
PointRule = Literal["gauss", "legendre", "even"]
MOST_TERMS = 1.5e6  # of binomial laws, for one distance: some seconds
REACH = 14.4  # standard deviations of a binomial law's window, on either side


def points_for(coins: int) -> int:
    """Return enough points of a Gauss rule for that many coins of one mean.

    >>> points_for(7), points_for(10_000)
    (4, 360)
    """
    return min(coins // 2 + 1, math.ceil(ROOTS * math.sqrt(coins)))


def points(prior: Prior, count: int, rule: PointRule = "legendre") -> Atoms:
    """Return the values of a prior with their weights; of a continuous one, as many points as `count`.

    gauss     of its Gauss rule: moments are exact; uniform and beta priors only
    legendre  its quantiles at t^2 (3 - 2t), t the nodes of Legendre: dense at both ends of (0, 1), where quantiles may
              be steep
    even      its quantiles in the middle of intervals of equal probability

    >>> half = points(Uniform(0.0, 0.5), 160)
    >>> abs(sum(value**3 * weight for value, weight in half) - 1 / 32) < 1e-12
    True
    >>> points(Uniform(), 1, "gauss"), points(Uniform(), 2, "even")
    (((0.5, 1.0),), ((0.25, 0.5), (0.75, 0.5)))
    """
    if prior.atoms is not None:
        return prior.atoms
    if rule == "gauss":
        return _gauss_rule(_known(prior), count)
    if rule == "even":
        return tuple((prior.quantile((k + 0.5) / count), 1 / count) for k in range(count))
    t, weights = legendre_nodes(count)
    return tuple(
        (min(1.0, max(0.0, prior.quantile(float(u)))), float(weight))
        for u, weight in zip(t * t * (3 - 2 * t), 6 * t * (1 - t) * weights, strict=True)
    )


def exact_points(prior: Prior, count: int, rule: PointRule = "gauss") -> ExactAtoms:
    """Return the same with weights that sum to exactly 1.

    >>> exact_points(Uniform(), 1)
    ((0.5, Fraction(1, 1)),)
    """
    return exact_atoms(points(prior, count, rule))


def _known(prior: Prior) -> Beta | Uniform:
    if isinstance(prior, Beta | Uniform):
        return prior
    raise EngineError(f"the closed form expects discrete, uniform or beta priors, got {prior!r}", ELSEWHERE)


@lru_cache(maxsize=64)
def _gauss_rule(prior: Beta | Uniform, count: int) -> Atoms:
    """Return the Jacobi matrix's eigenvalues and squared first entries of eigenvectors (Golub and Welsch 1969)."""
    if isinstance(prior, Uniform):
        low, width, a, b = prior.low, prior.high - prior.low, 1.0, 1.0
    else:
        low, width, a, b = 0.0, 1.0, prior.a, prior.b
    k, both = np.arange(1.0, count), a + b
    total = 2 * k + both - 2
    diagonal = np.concatenate([[a / both], (1 + (a - b) * (both - 2) / (total * (total + 2))) / 2])
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = k * (k + b - 1) * (k + a - 1) * (k + both - 2) / (total**2 * (total + 1) * (total - 1))
    squares[:1] = a * b / (both**2 * (both + 1))
    nodes, vectors = scipy.linalg.eigh_tridiagonal(diagonal, np.sqrt(squares))
    values = low + width * np.clip(nodes, 0.0, 1.0)
    weights: dict[float, float] = {}
    for value, weight in zip(np.clip(values, low, low + width).tolist(), (vectors[0] ** 2).tolist(), strict=True):
        weights[value] = weights.get(value, 0.0) + weight
    return tuple((value, weight) for value, weight in weights.items() if weight > IDLE)


@lru_cache(maxsize=256)
def coin_distance(prior: Prior, count: int, coins: int) -> float:
    """Return the total variation distance of the heads among `coins` coins, under the prior and under its rule.

    1 if it would take too long.

    >>> coin_distance(Beta(2, 3), 4, 7) < 1e-15 < 1e-4 < coin_distance(Beta(2, 3), 3, 7)
    True
    """
    smooth, rule = _known(prior), exact_points(prior, count)
    wide = sum(2 * REACH * math.sqrt(coins * value * (1 - value)) + 20 for value, _ in rule)
    if wide + coins > MOST_TERMS:
        return 1.0
    heads = _heads_of_beta(smooth, coins) if isinstance(smooth, Beta) else _heads_of_uniform(smooth, coins)
    for value, weight in rule:
        low, window, _ = binomial_window.__wrapped__(coins, value)  # not kept: too many
        heads[low : low + len(window)] -= np.longdouble(float(weight)) * window
    return min(1.0, float(np.abs(heads).sum() / 2))


def _heads_of_beta(prior: Beta, coins: int) -> Any:  # noqa: ANN401 (long doubles)
    """Return the law of the heads: P(k + 1) / P(k) = (d - k) (a + k) / ((k + 1) (b + d - k - 1)), from the mode on."""
    a, b = np.longdouble(prior.a), np.longdouble(prior.b)
    k = np.arange(coins, dtype=np.longdouble)
    logs = np.append(np.longdouble(0), np.cumsum(np.log((coins - k) * (a + k) / ((k + 1) * (b + coins - k - 1)))))
    law = np.exp(logs - logs.max())
    return law / law.sum()


def _heads_of_uniform(prior: Uniform, coins: int) -> Any:  # noqa: ANN401 (long doubles)
    """Return P(k heads) = (P(Bin(d + 1, low) <= k) - P(Bin(d + 1, high) <= k)) / ((d + 1) (high - low))."""
    law, width = np.zeros(coins + 1, np.longdouble), (np.longdouble(prior.high) - prior.low) * (coins + 1)
    for mean, sign in ((prior.low, 1), (prior.high, -1)):
        first, _, up_to = binomial_window(coins + 1, mean)
        counts = np.arange(first, coins + 1)
        law[counts] += sign * up_to[np.minimum(counts - first, len(up_to) - 1)] / width
    return law
