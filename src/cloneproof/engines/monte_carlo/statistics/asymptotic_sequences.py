"""Asymptotic confidence sequences: valid at every time at once, for long samples, and without a range.

Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024, "Time-uniform central limit theory and asymptotic confidence
sequences", Theorem 2.2): for observations of finite variance, with mean m_t and sample variance v_t of the first t,

    m_t  +-  sqrt(v_t) sqrt( 2 (t r^2 + 1) / (t r)^2  ln( sqrt(t r^2 + 1) / alpha ) )

is an asymptotic (1 - alpha) confidence sequence for any r > 0: a sum of observations is, in the limit, a Brownian
motion, whose mixture of Gaussian bets is a martingale. That is to sequences what the central limit theorem is to
intervals. It proves nothing of a finite sample: a gain of one run in ten thousand that the sample has not met is not
covered, where a distribution-free sequence covers it at the price of a width of at least range ln(1/alpha) / t. So an
estimate with such an error has a kind of its own, "asymptotic".
"""

from __future__ import annotations

import math

import numpy as np

from cloneproof._arrays import FloatArray

FIRST_TIME = 16  # observations before which no limit is trusted
TIGHTEST = 256  # observations at which the width is least for its alpha


def asymptotic_widths(variances: FloatArray, count: int, alpha: float) -> FloatArray:
    """The half-widths of means of `count` observations of these sample variances; infinite for too few.

    >>> asymptotic_widths(np.array([1.0]), 256, 0.01).round(3)
    array([0.223])
    """
    if count < FIRST_TIME:
        return np.full(variances.shape, math.inf)
    log = -2 * math.log(alpha)
    rate = (log + math.log(log + 1)) / TIGHTEST  # r^2, nearly the best for that time
    spread = 1 + count * rate
    return np.asarray(np.sqrt(variances * 2 * spread / (count**2 * rate) * math.log(math.sqrt(spread) / alpha)))
