"""Checks of arguments: each returns the value, or raises one sentence (expected, got, what to do)."""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Final

from cloneproof.errors import CloneproofError, brief, did_you_mean

EXACT: Final = 2**53  # up to here every whole number is a float of its own
HORIZON_LIMIT: Final = 10**15  # rounds, which stay exact in floating point

_TEXT: Final = r"""(?:"(?:[^"\\\n]|\\.)*+"?+|'[^'\n]*+'?+)"""  # also one that never ends
_LONG_KEYS = re.compile(  # group 1; texts and comments, which may look like one, are passed over
    r"""(?s:"{3}(?:\\.|[^\\])*?(?:"{3}|\Z)|'{3}.*?(?:'{3}|\Z))|#[^\n]*"""
    rf"""|((?<![\w-])(?:(?:[\w-]++|{_TEXT})[ \t]*+\.[ \t]*+){{100}})|{_TEXT}"""
)

_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, halves of characters, line and paragraph breaks


def real(value: object) -> float | None:
    """Return the value as a finite float; None for anything else (text, NaN, infinity, a bool, a huge integer).

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
    """Return the value as an int; None for anything that is not a whole number. A whole float such as 1e6 is accepted.

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


def ungrouped(text: str) -> str:
    """Return the text of a number without the commas between its thousands; any other text as it is.

    >>> ungrouped("2,000,000"), ungrouped("2,5"), ungrouped("1e6")
    ('2000000', '2,5', '1e6')
    """
    return text.replace(",", "") if re.fullmatch(r"[+-]?[0-9]{1,3}(,[0-9]{3})+", text) else text


def is_one_line(text: str) -> bool:
    r"""Return whether a text has no control character and no line break.

    >>> is_one_line("Zoë & co"), is_one_line("an\na"), is_one_line("a\u2028b")
    (True, False, False)
    """
    return text.isprintable() or not any(unicodedata.category(letter) in _BREAKING for letter in text)


def one_of(value: object, names: Iterable[str], what: str, error: type[CloneproofError] = CloneproofError) -> str:
    """Return the value if it is one of the names; otherwise the error lists them.

    >>> one_of("gpu", ("auto", "cpu", "gpu"), "device")
    'gpu'
    """
    known = list(names)
    if isinstance(value, str) and value in known:
        return value
    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    raise error(f"expected {what} to be one of {', '.join(known)}, got {brief(value)}; {hint}choose one of them")


def known(value: object, names: Iterable[str], what: str, error: type[CloneproofError] = CloneproofError) -> str:
    """Return the value if it is one of the known names; otherwise the error suggests the nearest.

    >>> known("ana", {"ana": 1, "bo": 2}, "agent")
    'ana'
    """
    there = list(names)
    if isinstance(value, str) and value in there:
        return value
    hint = did_you_mean(value, there) if isinstance(value, str) else ""
    raise error(f"unknown {what} {brief(value)}; {hint}known are {', '.join(there) or 'none'}")


def listed(
    value: object, what: str, error: type[CloneproofError] = CloneproofError, example: str = "[1, 2]"
) -> list[Any]:
    """Return the items of a non-empty list or tuple; refuses text and mappings.

    >>> listed((0.2, 0.8), "values")
    [0.2, 0.8]
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping) and (items := list(value)):
        return items
    raise error(f"expected {what} to be a list of at least one number, got {brief(value)}; give e.g. {example}")


def count(
    value: object, what: str, least: int = 1, most: int | None = None, error: type[CloneproofError] = CloneproofError
) -> int:
    """Return the value as an int, if it is a whole number from `least` to `most`.

    >>> count(1e6, "runs"), count(0, "burn-in", least=0)
    (1000000, 0)
    """
    number = whole(value)
    if number is not None and number >= least and (most is None or number <= most):
        return number
    limits = f"from {least} on" if most is None else f"from {least} to {most}"
    raise error(f"expected {what} to be a whole number {limits}, got {brief(value)}; use e.g. {least or most or 1}")


def number_in(
    value: object,
    what: str,
    low: float,
    high: float = math.inf,
    error: type[CloneproofError] = CloneproofError,
    *,
    low_open: bool = False,
) -> float:
    """Return the value as a float, if it is a number from `low` (above it, if open) to `high`.

    >>> number_in(0.4, "share", 0, 1, low_open=True)
    0.4
    """
    number = real(value)
    if number is not None and (low < number if low_open else low <= number) and number <= high:
        return number
    if high < math.inf:
        limits = f"above {low:g} and at most {high:g}" if low_open else f"from {low:g} to {high:g}"
    else:
        limits = "that is finite" if low == -math.inf else f"above {low:g}" if low_open else f"of at least {low:g}"
    raise error(f"expected {what} to be a number {limits}, got {brief(value)}; give one in that range")


@dataclass(frozen=True)
class WholeRange:
    """Whole numbers from `least` to `most`: as data, from which `cloneproof schema` makes JSON Schema."""

    least: int = 1
    most: int | None = None

    def checked(self, value: object, what: str, error: type[CloneproofError] = CloneproofError) -> int:
        return count(value, what, self.least, self.most, error)


@dataclass(frozen=True)
class NumberRange:
    """Numbers from `low` (above it, if open) to `high`, as data."""

    low: float
    high: float = math.inf
    low_open: bool = False

    def checked(self, value: object, what: str, error: type[CloneproofError] = CloneproofError) -> float:
        return number_in(value, what, self.low, self.high, error, low_open=self.low_open)


class Either(tuple[Any, ...]):
    """Forms of which a value in a file has one."""


def key_names(form: Mapping[Any, Any]) -> dict[str, bool]:
    """Return the keys of a table's form, and whether each is needed: a key that ends in `?` may be left out.

    >>> key_names({"samples": [NumberRange(0, 1)], "bins?": WholeRange()})
    {'samples': True, 'bins': False}
    """
    return {key.removesuffix("?"): not key.endswith("?") for key in form}


def has_form(keys: Iterable[str], form: Mapping[Any, Any]) -> bool:
    """Return whether a table with these keys has that form."""
    given, known = set(keys), key_names(form)
    return given <= set(known) and given >= {key for key, needed in known.items() if needed}


def toml_tables(text: str, source: str, error: type[CloneproofError] = CloneproofError) -> dict[str, Any]:
    """Parse the tables of a TOML text.

    Python's parser takes time and memory that grow with the square of the parts of a dotted key: 50,000 parts are a few
    letters each to write, and minutes and gigabytes to read. More than 100 are refused unread.

    >>> toml_tables("ana.prior.point = 0.5", "the text")
    {'ana': {'prior': {'point': 0.5}}}
    """
    for found in _LONG_KEYS.finditer(text):
        if found[1]:
            line = 1 + text.count("\n", 0, found.start())
            raise error(f"expected keys of at most 100 parts in {source}, got more in line {line}; shorten that key")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise error(f"{source} is not TOML: {problem}; fix that line") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
        raise error(f"{source} cannot be parsed: a huge number or thousands of brackets; fix it") from None
