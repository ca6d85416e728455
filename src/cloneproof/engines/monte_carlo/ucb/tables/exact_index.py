"""The index as a session computes it, for the rounds in which the quick estimate cannot tell two candidates apart."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)

from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.mechanisms.online.level import TICK_BITS

BELOW_ONE, TICK = (1 << TICK_BITS) - 1, 2.0**-TICK_BITS
_DIGIT_BITS = 30
_DIGIT = (1 << _DIGIT_BITS) - 1


@compiled
def index(mean, pulls, f):
    """Mean + sqrt(f(t) / n), rounded as in `rules.ucb.index`: f is c ln t, already rounded."""
    return mean + math.sqrt(f / pulls)


@compiled
def average(whole, ticks, pulls):
    """(whole + ticks 2^-60) / pulls rounded once to the nearest double, ties to even: Python's division of integers.

    Long division in digits of 30 bits, until the quotient has more bits than a double and one bit that says whether a
    remainder is left. Assumes 0 <= ticks < 2^60, whole < 2^60 and pulls < 2^31, so no step overflows.
    """
    remainder = quotient = np.int64(0)
    digits = np.int64(0)
    while True:
        if digits < 2:
            digit = (whole >> (_DIGIT_BITS * (1 - digits))) & _DIGIT
        elif digits < 4:
            digit = (ticks >> (_DIGIT_BITS * (3 - digits))) & _DIGIT
        else:
            digit = np.int64(0)
        # one bit at a time, so that the quotient can stop at 55 bits
        for bit in range(_DIGIT_BITS - 1, -1, -1):
            remainder = 2 * remainder + ((digit >> bit) & 1)
            quotient *= 2
            if remainder >= pulls:
                remainder -= pulls
                quotient += 1
            if quotient >= 1 << 54:
                exponent = bit + _DIGIT_BITS * (3 - digits) - TICK_BITS
                rest = remainder > 0 or _below(whole, ticks, digits, bit)
                return math.ldexp(_rounded(quotient, rest), int(exponent + 2))
        digits += 1
        if digits > 60:  # nothing but zeros
            return 0.0


@compiled
def _below(whole, ticks, digits, bit):
    """Whether the dividend has bits below this one."""
    position = bit + _DIGIT_BITS * (3 - digits)
    if position <= 0:
        return False
    if position <= TICK_BITS:
        return ticks & ((1 << position) - 1) != 0
    return ticks != 0 or whole & ((1 << (position - TICK_BITS)) - 1) != 0


@compiled
def _rounded(quotient, rest):
    """A quotient of 55 bits, rounded to 53: to the nearest, ties to even."""
    kept, dropped = quotient >> 2, quotient & 3
    if dropped == 3 or (dropped == 2 and (rest or kept & 1)):
        kept += 1
    return np.float64(kept)
