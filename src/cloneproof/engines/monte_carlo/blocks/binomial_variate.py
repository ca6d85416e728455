"""Binomial variates of up to 10^15 trials from a counter-based stream, at a cost that does not grow with the trials.

Inversion by sequential search if fewer than 10 successes are expected, else Hormann's transformed rejection (BTRS, "The
generation of binomial random variates", 1993). Its acceptance test uses the exact probability in Loader's saddle-point
form ("Fast and accurate computation of binomial probabilities", 2000), whose rounding stays near 10^-13 even at n =
10^15. The law is exact up to the rounding of p and of one comparison.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.compiling import uniform

_FEW = 10.0  # expected successes below which inversion is used, and from which BTRS is proven
_STIRLING = np.array(
    [
        0.0, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093, 0.016644691189821193,
        0.013876128823070748, 0.01189670994589177, 0.010411265261972096, 0.009255462182712733, 0.00833056343336287,
        0.007573675487951841, 0.00694284010720953, 0.006408994188004207, 0.0059513701127588475, 0.005554733551962801,
    ]
)  # fmt: skip


@nb.njit(nogil=True)
def binomial(trials, chance, stream):
    """Draw the number of successes in `trials` trials, from the uniform numbers 0, 1, .. of the stream."""
    if trials <= 0 or chance <= 0.0:
        return np.int64(0)
    if chance >= 1.0:
        return np.int64(trials)
    if chance > 0.5:
        return trials - _successes(trials, 1.0 - chance, stream)
    return _successes(trials, chance, stream)


@nb.njit(nogil=True)
def _successes(trials, chance, stream):
    if trials * chance < _FEW:
        return _by_inversion(trials, chance, stream)
    return _by_rejection(trials, chance, stream)


@nb.njit(nogil=True)
def _by_inversion(trials, chance, stream):
    """Subtract P(0), P(1), .. from a uniform number until it falls below; restart if rounding lost the end."""
    none = math.exp(trials * math.log1p(-chance))
    odds = chance / (1.0 - chance)
    expected = trials * chance
    last = min(np.float64(trials), expected + 30.0 * math.sqrt(expected) + 30.0)
    index = 0
    while True:
        left, at, k = uniform(stream, index), none, 0
        while left > at and k <= last:
            left -= at
            k += 1
            at *= odds * (trials - k + 1) / k
        if k <= last:
            return np.int64(k)
        index += 1


@nb.njit(nogil=True)
def _by_rejection(trials, chance, stream):
    """Do steps 0 to 3 of BTRS; the centre is split so that the proposal is a whole number without rounding."""
    expected = trials * chance
    spread = math.sqrt(expected * (1.0 - chance))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    alpha = (2.83 + 5.1 / b) * spread
    sure = 0.92 - 4.2 / b
    centre = math.floor(expected)
    beyond = expected - centre + 0.5
    centre = np.int64(centre)
    mode = np.int64(math.floor((trials + 1.0) * chance))
    at_mode = 0.0
    index = 0
    # A proposal near the centre lies under the curve for sure (`room`, `sure`) and is accepted without a logarithm,
    # which is so for most. The others compare logarithms of probabilities, that of the mode computed once.
    while True:
        u = uniform(stream, index) - 0.5
        v = uniform(stream, index + 1)
        index += 2
        room = 0.5 - abs(u)
        k = centre + np.int64(math.floor((2.0 * a / room + b) * u + beyond))
        if room >= 0.07 and v <= sure:
            return k
        if k < 0 or k > trials:
            continue
        if at_mode == 0.0:
            at_mode = log_chance(mode, trials, chance)
        if math.log(v * alpha / (a / (room * room) + b)) <= log_chance(k, trials, chance) - at_mode:
            return k


@nb.njit(nogil=True)
def log_chance(k, trials, chance):
    """Return ln P(k successes), for a chance strictly between 0 and 1."""
    if k == 0:
        return trials * math.log1p(-chance)
    if k == trials:
        return trials * math.log(chance)
    failures = trials - k
    deviance = _deviance(k, trials * chance) + _deviance(failures, trials * (1.0 - chance))
    errors = _stirling_error(trials) - _stirling_error(k) - _stirling_error(failures)
    return errors - deviance - 0.5 * math.log(2.0 * math.pi * k * (np.float64(failures) / trials))


@nb.njit(nogil=True)
def _stirling_error(number):
    """Return ln n! minus Stirling's formula, from a table or by its series (exact to 10^-16 from 16 on)."""
    if number < 16:
        return _STIRLING[number]
    n = np.float64(number)
    square = n * n
    tail = 1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square
    return (1 / 12 - (1 / 360 - tail / square) / square) / n


@nb.njit(nogil=True)
def _deviance(number, expected):
    """Return x ln(x / e) + e - x, by a series where the two are close and the terms would cancel."""
    x = np.float64(number)
    difference = x - expected
    if abs(difference) >= 0.1 * (x + expected):
        return x * math.log(x / expected) - difference
    v = difference / (x + expected)
    total, term = difference * v, 2.0 * x * v
    square = v * v
    for odd in range(3, 200, 2):
        term *= square
        more = total + term / odd
        if more == total:
            break
        total = more
    return total
