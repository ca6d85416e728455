"""Variants, which are nearly copies: what they gain under a reservoir, and add to a score that draws publish.

A variant is a new item with some chance, or its mean differs from its original's by little. For scores, an agent lists
variants of one original of mean v. Their means are v + e, with independent e of mean 0 and standard deviation t, all
between `low` and `high`. A slot is a draw from its list, and proofs do not ask how many variants there are, nor by
which weights they are drawn. Proofs: docs/textbook/variants.md for gains, docs/textbook/boards.md for scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from cloneproof.bounds._domain import checked
from cloneproof.errors import MechanismError

__all__ = ["count_steepness", "novelty_gain_ceiling", "variant_gain_ceiling", "variant_inflation_ceiling"]


@checked
def count_steepness(arm_rounds: int, low: float, high: float) -> float:
    """Return how fast the chance of a high count can rise with a mean from low to high: n max P(Bin(n - 1, v) = y).

    The derivative of P(Bin(n, v) >= y + 1) is n P(Bin(n - 1, v) = y). For each y it is largest at v = y / (n - 1), or
    at the end of the interval that is nearest to it; and these largest values fall towards the middle of 0, .., n - 1.
    So only counts next to the ends matter.

    >>> round(count_steepness(169, 0.4, 0.6), 2)
    10.6
    """
    _check_order(low, high)
    most = arm_rounds - 1
    counts = np.array([edge(most * mean) for edge in (math.floor, math.ceil) for mean in (low, high)])
    means = np.clip(counts / max(1, most), low, high)
    special = scipy.special
    choices = special.gammaln(arm_rounds) - special.gammaln(counts + 1) - special.gammaln(arm_rounds - counts)
    chances = special.xlogy(counts, means) + special.xlog1py(most - counts, -means)
    return float(arm_rounds * np.exp(choices + chances).max())


@checked
def variant_inflation_ceiling(draws: int, arm_rounds: int, spread: float, low: float, high: float) -> float:
    """Bound what variants add to the expected score of a best of s draws: s k t^2, k the steepness of n-round counts.

    Each draw has n rewards; the score weighs the champion's average there with that of fresh rewards, in any way, and
    the bound is on its excess over the score of the original alone. 0 for copies, second order in the spread t. Proven.

    >>> round(variant_inflation_ceiling(15, 169, 0.0072, 0.48, 0.52), 4)    # 5 Elo points are .0072: 5.6 Elo points
    0.0081
    """
    _check_order(low, high)
    if spread > (high - low) / 2:
        raise MechanismError(
            f"expected means from low to high to have a spread of at most {(high - low) / 2:g}, got {spread:g}; "
            "widen the interval"
        )
    return draws * count_steepness(arm_rounds, low, high) * spread**2


@checked
def novelty_gain_ceiling(payoffs: Sequence[float], new: float) -> float:
    """Return the most that variants gain which are each a new item with this chance, and else an exact copy.

    `payoffs` are H_l, H_(l+1), .., H_(l+k), so there are k variants: E[H_(l+N)] - H_l with N binomial, and for one
    variant the chance times (H_(l+1) - H_l). Proven for every mechanism under which neither copies nor withholding pay
    with any number of originals, where all means come from one prior.

    >>> novelty_gain_ceiling([10.0, 12.0], new=0.25)
    0.5
    """
    variants = len(payoffs) - 1
    chances = [math.comb(variants, k) * new**k * (1 - new) ** (variants - k) for k in range(variants + 1)]
    return math.fsum([*(chance * payoff for chance, payoff in zip(chances, payoffs, strict=True)), -payoffs[0]])


@checked
def variant_gain_ceiling(
    distance: float, horizon: int, arm_rounds: int, low: float, high: float, tests: float, varied: float = 1.0
) -> float:
    """Return eps T (1 + omega M kappa_n v), the most that variants gain whose means differ by at most eps.

    Each test has n = `arm_rounds` rounds; `low` and `high` are the least and the largest mean of the agent's items,
    variants included. Proven for the flat reservoir, first to pass or best of all, at every horizon and against any
    opponents, if the agent's means are exchangeable and variants are made before they are known.

    >>> round(variant_gain_ceiling(0.001, 10**5, arm_rounds=25, low=0.2, high=0.4, tests=3), 1)
    691.1
    """
    return distance * horizon * (1 + varied * tests * count_steepness(arm_rounds, low, high) * high)


def _check_order(low: float, high: float) -> None:
    if low > high:
        raise MechanismError(f"expected low to be at most high, got {low:g} and {high:g}; exchange them")
