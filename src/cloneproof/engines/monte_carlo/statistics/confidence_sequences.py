"""Confidence sequences for means of bounded observations: valid at every time at once, so at any stopping time.

Let observations X_1, X_2, .. lie in intervals no longer than c, with conditional means m_i, and let Y_i be any guess of
X_i from the past that lies in the same interval. Fan, Grama and Liu (2015) show for 0 <= r < 1 that

    exp(r S / c - f(r) V / c^2),   S = sum (X_i - m_i),   V = sum (X_i - Y_i)^2,   f(r) = -ln(1 - r) - r,

is a supermartingale that starts at 1 (Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 4; Waudby-Smith and Ramdas
2023, Theorem 2): each rate r is a way of betting that S grows. A weighted sum of such bets over fixed rates is one too,
and by Ville's inequality it reaches 2/alpha with probability at most alpha/2; likewise for -S. So with probability
1 - alpha, at all times together, |S| stays below the solution s of

    sum_k w_k exp(r_k s / c - f(r_k) V / c^2) = 2 / alpha.

The inequality behind it, exp(r x - f(r) x^2) <= 1 + r x, holds for all x >= -1: a bet that S grows asks only that no
X_i lies more than c *below* its guess, and a bet that S falls only that none lies more than c above it. So two ways of
guessing share the stake. The running mean adapts to the variance that is met, and c is the whole range. And with a c of
half the range, the running mean as far as that c allows: for bets that S grows at most the middle of the range, for
bets that it falls at least the middle. That is worth more where observations are few or hug the middle, as differences
of payoffs do. The rates form a geometric grid, from bold ones for tiny variance and few observations to timid ones for
long samples. So nothing is tuned, but that for differences of payoffs half of the stake is on the boldest bet: its cost
is ln 2 then, where it is 1.8 else, and bets for long samples lose as much. Where observations spread over their range,
the width is about 1.7 times what the central limit theorem gives at one fixed time, at 99 %, for a thousand
observations and for 10^8. Where they hardly vary, as gains do that are sampled in pairs, it is that of the range, about
c (ln(2 / alpha) + ln 2) / n, until n is as large as c^2 over the variance: some ten times the central limit theorem's
for hundreds of pairs, and nothing that holds for every distribution could be less than c ln(1 / alpha) / n, since a
rare observation of -c may not have come up yet. No other betting gains more there: a wealth that stays positive
whatever comes grows by at most 1 + X_i / c with each observation. Only S and the V are needed, O(1) an observation, and
the bound itself only when somebody looks.
"""

from __future__ import annotations

import math

import numpy as np

from cloneproof._arrays import FloatArray

RATES: FloatArray = 0.97 * 1.5 ** -np.arange(35.0)  # down to 1e-6: best for V / c^2 near 10^13, beyond any sample
_RANKS = np.arange(1.0, len(RATES) + 1.0) ** -1.2  # heavy enough a tail that no sample size pays much
LOG_WEIGHTS: FloatArray = np.log(_RANKS / _RANKS.sum())
COSTS: FloatArray = -np.log1p(-RATES) - RATES
_STEPS = 100  # Newton needs about 6


def log_wealth(deviation: FloatArray, variations: FloatArray, scales: FloatArray, bold: float = 0.0) -> FloatArray:
    """The logarithm of the sum of bets at S = `deviation`.

    The last axis of `variations` (V) and `scales` (c) lists the ways of guessing, which have equal stakes but for the
    part `bold` of all, which is on the largest rate of the last way.
    """
    slopes, offsets = _bets(variations, scales, bold)
    terms = deviation[..., None] * slopes + offsets
    most = terms.max(axis=-1)
    return np.asarray(most + np.log(np.exp(terms - most[..., None]).sum(axis=-1)))


def deviations(variations: FloatArray, scales: FloatArray, alpha: float, bold: float = 0.0) -> FloatArray:
    """The largest |S| that is believable at confidence 1 - alpha.

    The best single bet bounds the solution from above. The logarithm of the sum is convex and increasing in s, so
    Newton's steps come down from there and never pass the solution: wherever they end, the bound holds.
    """
    slopes, offsets = _bets(variations, scales, bold)
    goal = math.log(2.0 / alpha)
    widths = ((goal - offsets) / slopes).min(axis=-1)
    for _ in range(_STEPS):
        terms = widths[..., None] * slopes + offsets
        most = terms.max(axis=-1)
        bets = np.exp(terms - most[..., None])
        total = bets.sum(axis=-1)
        step = (most + np.log(total) - goal) * total / (bets * slopes).sum(axis=-1)
        widths = widths - np.maximum(step, 0.0)
        if not (step > 1e-9 * widths).any():
            break
    return round_up(widths)


def _bets(variations: FloatArray, scales: FloatArray, bold: float) -> tuple[FloatArray, FloatArray]:
    """The logarithm of each bet as a line in S: slope r / c, and ln w - f(r) V / c^2 where S = 0."""
    ways = variations.shape[-1]
    scales = np.broadcast_to(scales, variations.shape)
    slopes = RATES / scales[..., None]
    stakes = np.tile((1 - bold) / ways * np.exp(LOG_WEIGHTS), (ways, 1))
    stakes[-1, 0] += bold
    offsets = np.log(stakes) - COSTS * (variations / scales**2)[..., None]
    shape = (*variations.shape[:-1], ways * len(RATES))
    return slopes.reshape(shape), offsets.reshape(shape)


def round_up(values: FloatArray) -> FloatArray:
    """Up to 32 bits: nobody reads more of an error bound, and the last bits of exp and ln differ between machines."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.ceil(mantissa * 2.0**32) * 2.0**-32, exponent)
