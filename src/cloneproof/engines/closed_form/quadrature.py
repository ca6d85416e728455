"""Continuous priors as finitely many values, with a proven error.

*Coins.* Let what is paid in a round depend on an original through at most d coins that show heads with its mean: the
rewards themselves if they are 0 or 1, or coins that a mechanism flips for them. Given everything else it is a function
with values in [0, 1] of how many of the d coins show heads. If another prior takes the original's place, the expected
pay of a round therefore changes by at most the total variation distance of the two laws of this number. Originals are
replaced one at a time, so distances add up.

*Gauss rules.* The probability of each number of heads is a polynomial of degree d in the mean, which a Gauss rule with
more than d / 2 points integrates exactly. A small multiple of sqrt(d) points nearly does, as such a polynomial is
nearly one of that degree. Points are rounded, so the distance is computed in balls for the rule as it is used: it is a
bound for any rule.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy
from flint import arb, ctx

from cloneproof._clock import check_time, remembered
from cloneproof.bounds.reservoir import quadrature
from cloneproof.engines.closed_form.commitment import ExactAtoms
from cloneproof.engines.closed_form.laws import LOST, PRECISION, Number, ball, binomial_below, binomial_window
from cloneproof.errors import EngineError
from cloneproof.market.priors import Beta, Prior, Uniform

ELSEWHERE = "use engine='monte-carlo'"
ROOTS = 3.6  # points for each square root of the coins, which leave a distance of about 1e-11
IDLE = 1e-18  # a weight of a point that may be left out
MOST_TERMS = 1.5e6  # of binomial laws, for one distance: some seconds
REACH = 14.4  # standard deviations of a binomial law's window, on either side


def points_for(coins: int) -> int:
    """Return enough points of a Gauss rule for that many coins of one mean.

    >>> points_for(7), points_for(10_000)
    (4, 360)
    """
    return min(coins // 2 + 1, math.ceil(ROOTS * math.sqrt(coins)))


def discretise(prior: Prior, points: int, quantiles: bool = False) -> ExactAtoms:
    """Return the prior's atoms with weights that sum to exactly 1, or the atoms of its Gauss rule, or some quantiles.

    >>> discretise(Uniform(), 1)
    ((0.5, Fraction(1, 1)),)
    """
    pairs: Iterable[tuple[float, float]] | None = prior.atoms
    if pairs is None:
        pairs = quadrature(prior.quantile, points) if quantiles else _gauss_rule(_known(prior), points)
    exact = [(value, Fraction(weight)) for value, weight in pairs if weight > 0]
    total = sum((weight for _, weight in exact), Fraction(0))
    return tuple((value, weight / total) for value, weight in exact)


def _known(prior: Prior) -> Beta | Uniform:
    if isinstance(prior, Beta | Uniform):
        return prior
    raise EngineError(f"the closed form expects discrete, uniform or beta priors, got {prior!r}", ELSEWHERE)


@lru_cache(maxsize=64)
def _gauss_rule(prior: Beta | Uniform, points: int) -> tuple[tuple[float, float], ...]:
    """Return the Jacobi matrix's eigenvalues and squared first entries of eigenvectors (Golub and Welsch 1969)."""
    if isinstance(prior, Uniform):
        low, width, a, b = prior.low, prior.high - prior.low, 1.0, 1.0
    else:
        low, width, a, b = 0.0, 1.0, prior.a, prior.b
    k, both = np.arange(1.0, points), a + b
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


def coin_distance(prior: Prior, points: int, coins: int) -> float:
    """Return the total variation distance of the heads among `coins` coins, under the prior and under its rule.

    A bound from above; 1 if it would take too long.

    >>> coin_distance(Beta(2, 3), 4, 7) < 1e-15 < 1e-4 < coin_distance(Beta(2, 3), 3, 7)
    True
    """
    return _coin_distance(_known(prior), points, coins)


@remembered(256, "closed form")
def _coin_distance(prior: Beta | Uniform, points: int, coins: int) -> float:
    rule = discretise(prior, points)
    wide = sum(2 * REACH * math.sqrt(coins * value * (1 - value)) + 20 for value, _ in rule)
    if wide + coins > MOST_TERMS:
        return 1.0
    with ctx.workprec(PRECISION):
        heads = _heads_of_beta(prior, coins) if isinstance(prior, Beta) else _heads_of_uniform(prior, coins)
        for value, weight in rule:
            check_time("closed form")
            low, window = binomial_window.__wrapped__(coins, value)  # not kept: too many
            share = ball(weight)
            for count, chance in enumerate(window, low):
                heads[count] -= share * chance
        apart = sum((abs(each) for each in heads), arb(0)) / 2
        return min(1.0, math.nextafter(float(apart.upper()) + LOST, 1.0))


def _heads_of_beta(prior: Beta, coins: int) -> list[Number]:
    """Return the law of the heads: P(k + 1) / P(k) = (d - k) (a + k) / ((k + 1) (b + d - k - 1)), as balls."""
    a, b = ball(prior.a), ball(prior.b)
    chance = math.prod(((b + k) / (a + b + k) for k in range(coins)), start=arb(1))
    law = [chance]
    for k in range(coins):
        chance = chance * (coins - k) * (a + k) / ((k + 1) * (b + coins - k - 1))
        law.append(chance)
    return law


def _heads_of_uniform(prior: Uniform, coins: int) -> list[Number]:
    """Return P(k heads) = (P(Bin(d + 1, low) <= k) - P(Bin(d + 1, high) <= k)) / ((d + 1) (high - low))."""
    width = ball(Fraction(prior.high) - Fraction(prior.low)) * (coins + 1)
    law = [arb(0)] * (coins + 1)
    for mean, sign in ((prior.low, 1), (prior.high, -1)):
        first, chances = binomial_window(coins + 1, mean)[0], binomial_below(coins + 1, mean)
        for count in range(first, coins + 1):
            law[count] += sign * chances[min(count - first, len(chances) - 1)] / width
    return law


def best_mean(priors: Sequence[Prior]) -> tuple[float, float]:
    """Return E[max of independent draws] and its error.

    E[max] = 1 - integral over [0, 1] of the product of the distribution functions; a sum for discrete priors.

    >>> from cloneproof.market.priors import Discrete
    >>> best_mean([Discrete([0, 1], [0.5, 0.5])] * 2)[0]
    0.75
    """
    cuts = sorted({0.0, 1.0, *(x for prior in priors for x in _cuts(prior))})
    laws = [_distribution(prior) for prior in priors]

    def below(x: float) -> float:
        return math.prod(law(x) for law in laws)

    pieces, errors = [], [len(cuts) * (len(priors) + 4) * 2.0**-52]
    for low, high in pairwise(cuts):
        if all(prior.atoms is not None for prior in priors):
            pieces.append((high - low) * below(low))
        else:
            from scipy.integrate import quad  # half a second to import, and only continuous priors need it

            piece, error = quad(below, low, high, epsabs=1e-13, epsrel=1e-12, limit=200)
            pieces.append(piece)
            errors.append(error)
    return 1.0 - math.fsum(pieces), math.fsum(errors)


def _cuts(prior: Prior) -> tuple[float, ...]:
    if prior.atoms is not None:
        return tuple(value for value, _ in prior.atoms)
    return (prior.low, prior.high) if isinstance(prior, Uniform) else ()


def _distribution(prior: Prior) -> Callable[[float], float]:
    """Return P(mean <= x), right-continuous."""
    if prior.atoms is not None:
        values = [value for value, _ in prior.atoms]
        total = math.fsum(weight for _, weight in prior.atoms)
        cumulated = [math.fsum(w for _, w in prior.atoms[:k]) / total for k in range(len(values))] + [1.0]
        return lambda x: cumulated[bisect_right(values, x)]
    if isinstance(prior, Uniform):
        return lambda x: min(1.0, max(0.0, (x - prior.low) / (prior.high - prior.low)))
    if isinstance(prior, Beta):
        return lambda x: float(scipy.special.betainc(prior.a, prior.b, x))
    raise EngineError(f"an exact engine expects discrete, uniform or beta priors, got {prior!r}", ELSEWHERE)
