"""Pairs theorem: rounds from the values that means can have, instead of the smallest distance between them.

At click rates a distance says little: .004 and .006 are as hard to tell apart as .46 and .54. For two values u < v let
e_m(u, v) bound the probability that the average of m rewards of mean u reaches that of m rewards of mean v:

    exact         P(Bin(m, u) >= Bin(m, v)), for Bernoulli rewards; Chernoff's larger bound above a million rounds
    chernoff      (sqrt(uv) + sqrt((1-u)(1-v)))^(2m), for any rewards in [0, 1]: a coin of the same mean has the largest
                  exponential moments
    sub-gaussian  exp(-m (v-u)^2 / (4 spread^2)); with a spread of 1/2 Hoeffding's bound

The hold-out mechanism is clone-proof if e_m(u, v) T v <= m (v - u) / L for every two values
(docs/textbook/hold-out.md). All three bounds fall with m and rise with u, so that it suffices to check neighbouring
values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

from cloneproof.bounds._domain import checked
from cloneproof.bounds.rounds import smallest

__all__ = ["log_overtaken_pair", "pairs_apply", "pairs_arm_rounds", "pairs_regret"]

TailBound = Literal["exact", "chernoff", "sub-gaussian"]
LARGEST_EXACT = 10**6  # rounds up to which a binomial sum is cheap
WIDE, FAR = 14, 100  # deviations, and counts besides, beyond which binomial terms are left out
SPARE = 1e-6  # of a logarithm: more than the roundings of a binomial sum up to that size


@checked
def log_overtaken_pair(
    low: float, high: float, rounds: int, tail: TailBound = "chernoff", spread: float = 0.5
) -> float:
    """Return ln e_m(u, v): after m rounds each, the average of an arm of mean u reaches that of one of mean v.

    >>> import math
    >>> [round(math.exp(log_overtaken_pair(0.25, 0.75, 33, tail)), 8) for tail in ("exact", "chernoff", "sub-gaussian")]
    [1.077e-05, 7.534e-05, 0.00026126]
    """
    return _log_tail(low, high, rounds, tail, spread)


@checked
def pairs_apply(
    originals: int,
    values: Sequence[float],
    arm_rounds: int,
    horizon: int,
    tail: TailBound = "chernoff",
    spread: float = 0.5,
) -> bool:
    """Return whether e_m(u, v) T v <= m (v - u) / L for every two values: the pairs theorem's condition.

    If it holds, it holds for every shorter horizon and every larger m (docs/textbook/hold-out.md).

    >>> pairs_apply(2, (0.25, 0.75), 33, 10**6, "exact"), pairs_apply(2, (0.25, 0.75), 32, 10**6, "exact")
    (True, False)
    """
    if originals == 1:
        return True
    return all(
        _below(_log_limit(originals, horizon, u, v, arm_rounds), u, v, tail, spread, arm_rounds)
        for u, v in pairwise(sorted(set(values)))
    )


@checked
def pairs_arm_rounds(
    originals: int, values: Sequence[float], horizon: int, tail: TailBound = "chernoff", spread: float = 0.5
) -> int:
    """Find the smallest m of the pairs theorem's condition; by Chernoff's bound if a binomial sum would be long.

    >>> [pairs_arm_rounds(3, (0.01, 0.02, 0.05), 10**6, tail) for tail in ("sub-gaussian", "chernoff", "exact")]
    [48235, 4175, 3178]
    """
    return arm_rounds_for(originals, pairwise(sorted(set(values))), horizon, tail, spread)


def arm_rounds_for(
    originals: int, pairs: Iterable[tuple[float, float]], horizon: int, tail: TailBound, spread: float
) -> int:
    """Return the smallest m that meets the pairs theorem's condition for these pairs of neighbouring values."""
    if originals == 1:
        return 1
    return _rounds_for(pairs, partial(_log_limit, originals, horizon), tail, spread)


def score_rounds_for(
    agents: int, pairs: Iterable[tuple[float, float]], horizon: int, tail: TailBound, spread: float
) -> int:
    """Find the smallest W with e_W(u, v) <= 1 / (n T) for these pairs, so that scores tell best arms apart."""
    limit = -math.log(agents * horizon)
    return _rounds_for(pairs, lambda u, v, rounds: limit, tail, spread)


def _rounds_for(
    pairs: Iterable[tuple[float, float]], limit: Callable[[float, float, int], float], tail: TailBound, spread: float
) -> int:
    """Return the smallest number of rounds at which ln e(u, v) is at most `limit` for every pair."""

    def holds(u: float, v: float, bound: TailBound, rounds: int) -> bool:
        return _below(limit(u, v, rounds), u, v, bound, spread, rounds)

    least = 1
    for u, v in _hardest_first(pairs):
        long = tail == "exact" and not holds(u, v, "chernoff", LARGEST_EXACT)
        enough = partial(holds, u, v, "chernoff" if long else tail)
        if not enough(least):  # else an earlier pair asks for more
            least = smallest(enough)
    return least


def _hardest_first(pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Sort pairs roughly by the rounds they need, so that most need only a check."""
    return sorted(pairs, key=lambda pair: (pair[1] - pair[0]) ** 2 / (pair[1] * (1 - pair[0])))


@checked
def pairs_regret(
    agents: int,
    originals: int,
    arm_rounds: int,
    score_rounds: int,
    values: Sequence[float],
    max_arms: int | None = None,
) -> float:
    """Return the regret with an award: D ((n-1)(Km + W) + 2(L-1)(1 + 1/L)m + 1), D the distance of the extreme values.

    Holds if everybody is honest, m meets the pairs theorem's condition and W at least `score_rounds_for` all pairs.

    >>> round(pairs_regret(20, 3, 48_413, 105_471, (0.004, 0.006)))
    10043
    """
    allowed = originals if max_arms is None else max_arms
    exploring = 2 * (originals - 1) * (1 + 1 / originals) * arm_rounds
    return (max(values) - min(values)) * ((agents - 1) * (allowed * arm_rounds + score_rounds) + exploring + 1)


def rate_values(lowest: float, highest: float, relative_gap: float) -> tuple[float, ...]:
    """Return the two hardest values, for rates in a range of which any two that differ do so by a relative gap.

    Of all u < v with lowest <= u, (1 + r) u <= v <= highest these are lowest and (1 + r) lowest: v / (v - u) and e_m
    fall as v grows, and along v = (1 + r) u the first is constant and e_m falls as u grows. Returns one value if the
    range is too narrow for two.

    >>> rate_values(0.002, 0.05, 0.5), rate_values(0.01, 0.011, 0.2)
    ((0.002, 0.003), (0.01,))
    """
    nearest = (1 + relative_gap) * lowest
    return (lowest, nearest) if nearest <= highest else (lowest,)


def _below(limit: float, u: float, v: float, tail: TailBound, spread: float, rounds: int) -> bool:
    if tail == "exact" and _log_tail(u, v, rounds, "chernoff", spread) <= limit:  # a larger bound, at no cost
        return True
    return _log_tail(u, v, rounds, tail, spread) <= limit


def _log_limit(originals: int, horizon: int, u: float, v: float, arm_rounds: int) -> float:
    return math.log(arm_rounds) + math.log((v - u) / v) - math.log(originals * horizon)


def _log_tail(u: float, v: float, rounds: int, tail: TailBound, spread: float) -> float:
    if tail == "sub-gaussian":
        return -rounds * (v - u) ** 2 / (4 * spread**2)
    if tail == "exact" and rounds <= LARGEST_EXACT:
        return _log_binomial(u, v, rounds)
    return 2 * rounds * _log_affinity(u, v)


def _log_affinity(u: float, v: float) -> float:
    """Return ln(sqrt(uv) + sqrt((1-u)(1-v))) = ln s, by 1 - s = (d(u, v)^2 + d(1-u, 1-v)^2) / 2, d of square roots."""
    lost = ((v - u) / (math.sqrt(v) + math.sqrt(u))) ** 2 + ((v - u) / (math.sqrt(1 - u) + math.sqrt(1 - v))) ** 2
    return math.log1p(-lost / 2) if lost < 2 else -math.inf


@lru_cache(maxsize=4096)  # searches and claims ask the same questions
def _log_binomial(u: float, v: float, rounds: int) -> float:
    """Return ln P(Bin(m, u) >= Bin(m, v)), rounded up; all terms are positive.

    Leaves out counts far below the smaller mean or above the larger one. By Bernstein's inequality and the likelihood
    ratio order these are less than exp(-90) of the sum.
    """
    import numpy as np
    from scipy import special

    low, high = (rounds * p + side * (WIDE * math.sqrt(rounds * p) + FAR) for p, side in ((u, -1), (v, 1)))
    number = np.arange(max(0, math.floor(low)), min(rounds, math.ceil(high)) + 1)
    ways = special.gammaln(rounds + 1) - special.gammaln(number + 1) - special.gammaln(rounds - number + 1)
    worse, better = (ways + special.xlogy(number, p) + special.xlog1py(rounds - number, -p) for p in (u, v))
    reached = np.logaddexp.accumulate(worse[::-1])[::-1]  # ln P(Bin(m, u) >= k)
    logarithm = float(np.logaddexp.reduce(reached + better))
    return min(0.0, logarithm + SPARE) if logarithm > -math.inf else logarithm
