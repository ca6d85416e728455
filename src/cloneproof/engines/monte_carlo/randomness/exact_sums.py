"""Sums of rewards in compiled code: exact, as the running mechanism keeps them, in whole numbers of 2**-60.

Such a sum needs more than 64 bits, so it is two words, `high * 2**60 + low` with 0 <= low < 2**60. Equal averages are
equal floats whatever the number of pulls, which decides the ties of deterministic rewards. Sums must stay below 2**62.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Final

import numba as nb
import numpy as np

from cloneproof.mechanisms.online.level import TICK_BITS

BITS: Final = np.int64(TICK_BITS)
MASK: Final = np.int64((1 << TICK_BITS) - 1)
_ONE: Final = 2.0**TICK_BITS
_SURE_BITS: Final = np.int64(1 << 55)  # two bits more than a float has, so that a sticky last bit rounds correctly
_DIGIT: Final = np.int64(10)  # bits of a digit of long division and multiplication: remainders stay below 2**50


@nb.njit(nogil=True)
def ticks(value):
    """A reward of at most 2**62 as (high, low), rounded to whole ticks as a session rounds it."""
    if abs(value) < 4.0:
        whole = np.int64(np.rint(value * _ONE))
        return whole >> BITS, whole & MASK
    floor = np.floor(value)  # from 4 on a float is a whole number of ticks, so nothing is rounded here
    return np.int64(floor), np.int64((value - floor) * _ONE)


@nb.njit(nogil=True)
def plus(high, low, more_high, more_low):
    """The sum of two sums."""
    low += more_low
    return high + more_high + (low >> BITS), low & MASK


@nb.njit(nogil=True)
def times(number, high, low):
    """A sum repeated `number` times, a number below 2**50."""
    total_high, total_low = number * high, np.int64(0)
    for shift in range(0, TICK_BITS, 10):
        part = number * ((low >> np.int64(shift)) & np.int64(1023))
        room = BITS - np.int64(shift)
        part_low = (part & ((np.int64(1) << room) - np.int64(1))) << np.int64(shift)
        total_high, total_low = plus(total_high, total_low, part >> room, part_low)
    return total_high, total_low


@nb.njit(nogil=True)
def average(high, low, pulls):
    """The float nearest to the sum over a number of pulls from 1, below 2**50."""
    if low == 0 and abs(high) < np.int64(1 << 53):
        return np.float64(high) / np.float64(pulls)
    if high < 0:
        return -_positive(-high - np.int64(low > 0), (-low) & MASK, pulls)
    return _positive(high, low, pulls)


@nb.njit(nogil=True)
def _positive(high, low, pulls):
    """The same from 0 on: long division with enough bits, the last of which stands for all that follow."""
    whole, rest = high // pulls, high % pulls
    fraction = np.int64(0)
    shift = BITS
    while shift > 0:
        shift -= _DIGIT
        rest = (rest << _DIGIT) | ((low >> shift) & np.int64(1023))
        fraction = (fraction << _DIGIT) | (rest // pulls)
        rest %= pulls
    if whole >= 4:
        up = np.int64(0)
        while (whole << up) < np.int64(1 << 61):
            up += np.int64(1)
        up = min(up, BITS)
        bits = (whole << up) | (fraction >> (BITS - up))
        lost = rest > 0 or (fraction & ((np.int64(1) << (BITS - up)) - np.int64(1))) > 0
        return np.float64(bits | np.int64(lost)) * 2.0 ** -np.float64(up)
    bits, scale = (whole << BITS) | fraction, 1.0 / _ONE
    while rest > 0 and bits < _SURE_BITS:
        rest <<= np.int64(7)
        bits = (bits << np.int64(7)) | (rest // pulls)
        rest %= pulls
        scale /= 128.0
    return np.float64(bits | np.int64(rest > 0)) * scale
