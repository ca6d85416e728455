"""Rewards as whole numbers: exact sums, in which the order of arrival cannot matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

TICK_BITS: Final = 30  # sums of rewards are whole numbers of 2**-30
ONE: Final = 1 << TICK_BITS
LARGEST: Final = 1 << 31  # size of a reward that a session takes
EXACT: Final = 1 << 53  # whole numbers below it are floats


def ticks(value: float) -> int:
    """Return a reward as a whole number of 2**-30, rounded to the nearest: what ties in decimals ties.

    >>> ticks(1.0) == 1 << 30, ticks(-0.5) == -(1 << 29), ticks(0.2) + ticks(0.8) == 2 * ticks(0.5)
    (True, True, True)
    """
    return ONE if value == 1.0 else round(value * ONE)


def written(numbers: Sequence[int]) -> list[int | str]:
    """Return whole numbers as a file has them: from 2**53 on as text, since JavaScript reads numbers as floats.

    >>> written([5, ONE << 30])
    [5, '1152921504606846976']
    """
    return [number if abs(number) < EXACT else str(number) for number in numbers]
