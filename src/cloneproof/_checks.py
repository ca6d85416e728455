"""What a number is: any real or whole number, numpy's too, as a plain Python one; or nothing."""

from __future__ import annotations

import math
from numbers import Integral, Real


def real(value: object) -> float | None:
    """The value as a finite float; None for anything else (text, NaN, infinity, a bool, an integer beyond floats).

    >>> real(2), real(True), real(10**400), real(float("nan"))
    (2.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole(value: object) -> int | None:
    """The value as an int, also where it is a whole float such as 1e6; None for anything else.

    >>> whole(3), whole(1e6), whole(1.5), whole(True), whole("3")
    (3, 1000000, None, None, None)
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    number = real(value)
    return int(number) if number is not None and number.is_integer() else None
