"""The upper bound of KL-UCB by additions, multiplications and divisions alone: the same bits on every machine.

Two indices are compared, so they must not depend on a C library's logarithm. IEEE arithmetic rounds the four basic
operations in one way everywhere; the logarithm here is made of them (a series after a reduction by powers of 2), and
the root is found by a fixed procedure. Compiled code runs the same functions and gets the same bits.
"""

from __future__ import annotations

import math

LN_2 = 0.6931471805599453
SQRT_HALF = 0.7071067811865476
STEPS = 80  # enough for bisection alone; a safeguarded Newton iteration takes about six


def log_ratio(x: float) -> float:
    """ln(1 + x) for x > -1, with a relative error of a few units in the last place.

    >>> abs(log_ratio(0.5) - math.log(1.5)) < 1e-15, abs(log_ratio(1e-12) - 1e-12) < 1e-23
    (True, True)
    """
    return _series(x) if -0.25 <= x <= 0.4 else log(1.0 + x)


def log(x: float) -> float:
    """Ln x for x > 0, with an absolute error of a few units in the last place of the larger of 1 and |ln x|.

    >>> abs(log(1e-300) - math.log(1e-300)) < 1e-12
    True
    """
    mantissa, power = math.frexp(x)
    if mantissa < SQRT_HALF:
        mantissa, power = 2.0 * mantissa, power - 1
    return _series(mantissa - 1.0) + power * LN_2


def _series(x: float) -> float:
    """ln(1 + x) for x from -0.3 to 0.42: 2 artanh z with z = x / (2 + x), |z| <= 0.18."""
    z = x / (2.0 + x)
    square = z * z
    series = 1.0 / 25.0  # written out, so that compilers see the quotients as constants
    series = series * square + 1.0 / 23.0
    series = series * square + 1.0 / 21.0
    series = series * square + 1.0 / 19.0
    series = series * square + 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    return 2.0 * (z + z * square * series)


def kl_upper_bound(mean: float, pulls: float, width: float) -> float:
    """The largest q with pulls * kl(mean, q) <= width, kl the divergence of two coins; 1 where the mean is 1.

    The unknown is the distance q - mean: near the mean both logarithms are small, and what is left of their difference
    is right to the last bits. Newton's iteration comes from the right of the root, since the divergence is convex; a
    step that would leave the bracket is replaced by bisection.

    >>> round(kl_upper_bound(0.5, 10.0, 2.0), 9)  # 10 kl(1/2, q) = 2
    0.787088816
    """
    room = 1.0 - mean
    if room <= 0.0:
        return 1.0
    target = width / pulls
    if target <= 0.0:
        return mean
    low, high = 0.0, room
    x = math.sqrt(0.5 * target)  # Pinsker: the root is not beyond
    if x >= room:
        x = 0.5 * room
    for _ in range(STEPS):
        divergence = -room * log_ratio(-x / room)
        slope = 1.0
        if mean > 0.0:
            divergence -= mean * log_ratio(x / mean)
            slope = x / (mean + x)
        excess = divergence - target
        if excess > 0.0:
            high = x
        else:
            low = x
        step = excess * (room - x) / slope
        following = x - step
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == x or not low < following < high:
            break
        x = following
    return mean + x
