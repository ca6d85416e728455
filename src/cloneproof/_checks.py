"""What a number is: any real or whole number, numpy's too, as a plain Python one; or nothing. What a name may be."""

from __future__ import annotations

import math
import unicodedata
from numbers import Integral, Real
from typing import Final

EXACT: Final = 2**53  # up to here every whole number is a float of its own

_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, halves of characters, line and paragraph breaks


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
    """The value as an int; None for anything that is not a whole number. A float counts where it is whole: 1e6.

    >>> whole(3), whole(1e6), whole(2.5), whole(1e30), whole(True)
    (3, 1000000, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        return int(value)
    number = real(value)
    exact = number is not None and number.is_integer() and abs(number) <= EXACT
    return int(number) if exact and number is not None else None


def is_one_line(text: str) -> bool:
    r"""Whether a text has no control character and no line break, so that it can stand in a table or a log.

    >>> is_one_line("Zoë & co"), is_one_line("an\na"), is_one_line("a\u2028b")
    (True, False, False)
    """
    return text.isprintable() or not any(unicodedata.category(letter) in _BREAKING for letter in text)
