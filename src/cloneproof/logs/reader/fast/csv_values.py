"""Fields of a line of bytes in compiled code: their words, plain decimal numbers, and times in ISO 8601.

A reading here is what DuckDB's cast to DOUBLE or TIMESTAMP says, bit for bit, or none: whatever is written in another
way (a sign of plus, an exponent, blanks, a zone) is not understood, and DuckDB is asked instead.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, PLR0911, PLR1714 (compiled functions are typed by their arguments; each oddity returns)
from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined

ZERO, NINE, MINUS, POINT, COLON, BLANK = (np.uint8(ord(letter)) for letter in "09-.: ")
LETTER_T, LETTER_Z = np.uint8(ord("T")), np.uint8(ord("Z"))
POWERS = np.array([10.0**power for power in range(19)])
MONTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
MOST_DIGITS = np.int64(((1 << 63) - 10) // 10)  # one more digit still fits 64 bits
PRECISE = np.int64(1 << 53)  # whole numbers below are exact as a DOUBLE, and so is their quotient by a power of ten


def _word_at(typing_context: Any, data: Any, place: Any) -> Any:  # noqa: ANN401 (Numba's own types)
    """Eight bytes of an array from a place on, as one number; on a machine whose lower bytes come first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        number = context.get_value_type(types.uint64)
        return builder.load(builder.bitcast(pointer, number.as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


word_at: Any = intrinsic(_word_at)


def _lowest_bit(typing_context: Any, word: Any) -> Any:  # noqa: ANN401 (Numba's own types)
    """The number of the lowest bit that is set; 64 where there is none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), generate


lowest_bit: Any = intrinsic(_lowest_bit)


def _ones(typing_context: Any, word: Any) -> Any:  # noqa: ANN401 (Numba's own types)
    """How many bits are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


ones: Any = intrinsic(_ones)


@inlined
def masked(word, count):
    """The first `count` bytes of a word, from 1 to 8; the others are 0."""
    return word & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(8 * (8 - count)))


@compiled
def hashed(data, begin, end, seed):
    """A hash of the bytes from begin to end and of their number."""
    value = seed ^ np.uint64(end - begin)
    while end - begin > 8:
        value = (value ^ word_at(data, begin)) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(29)
        begin += 8
    if end > begin:
        value = (value ^ masked(word_at(data, begin), end - begin)) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(32)
    return value


@compiled
def equal(data, begin, end, texts, text, length):
    """Whether the bytes from begin to end are the text of that length at a place of `texts`."""
    if end - begin != length:
        return False
    while end - begin > 8:
        if word_at(data, begin) != word_at(texts, text):
            return False
        begin += 8
        text += 8
    return end == begin or masked(word_at(data, begin) ^ word_at(texts, text), end - begin) == 0


@compiled
def below(data, begin, end, texts, text, length):
    """Whether the bytes from begin to end come before a text, byte by byte."""
    for k in range(min(end - begin, length)):
        if data[begin + k] != texts[text + k]:
            return data[begin + k] < texts[text + k]
    return end - begin < length


@compiled
def decimal(data, begin, end):
    """A plain decimal number as (digits, how many of them stand behind the point, sign); sign 0: it is none."""
    sign = np.int64(1)
    if begin < end and data[begin] == MINUS:
        sign = np.int64(-1)
        begin += 1
    digits, places = np.int64(0), np.int64(-1)
    if end - begin > 19 or end <= begin or data[begin] == POINT or data[end - 1] == POINT:
        return digits, places, np.int64(0)
    for k in range(begin, end):
        letter = data[k]
        if ZERO <= letter <= NINE:
            if digits > MOST_DIGITS:
                return digits, places, np.int64(0)
            digits = digits * 10 + np.int64(letter - ZERO)
            places += places >= 0
        elif letter == POINT and places < 0:
            places = np.int64(0)
        else:
            return digits, places, np.int64(0)
    places = max(places, np.int64(0))
    if (places > 0 and digits >= PRECISE) or (digits == 0 and sign < 0):
        return digits, places, np.int64(0)
    return digits, places, sign


@compiled
def two_digits(data, place):
    """The number of two digits; -1 where they are none."""
    tens, ones = data[place], data[place + 1]
    if ZERO <= tens <= NINE and ZERO <= ones <= NINE:
        return 10 * np.int64(tens - ZERO) + np.int64(ones - ZERO)
    return np.int64(-1)


@compiled
def microseconds(data, begin, end):
    """(From the beginning of 1970, True) of `2026-03-01`, with or without `12:34:56.789` behind it; else (0, False)."""
    none = (np.int64(0), False)
    size = end - begin
    if size != 10 and size < 19:
        return none
    century, years = two_digits(data, begin), two_digits(data, begin + 2)
    month, day = two_digits(data, begin + 5), two_digits(data, begin + 8)
    if data[begin + 4] != MINUS or data[begin + 7] != MINUS or century < 10 or years < 0:
        return none
    year = 100 * century + years
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    if month < 1 or month > 12 or day < 1 or day > MONTHS[month] + (leap and month == 2):
        return none
    before = year - (month <= 2)  # the calendar with years that begin in March
    days = 365 * before + before // 4 - before // 100 + before // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day
    total = np.int64(days - 719469) * np.int64(86_400_000_000)
    if size == 10:
        return total, True
    hour, minute, second = (
        two_digits(data, begin + 11),
        two_digits(data, begin + 14),
        two_digits(data, begin + 17),
    )
    between = data[begin + 10]
    if (between != BLANK and between != LETTER_T) or data[begin + 13] != COLON or data[begin + 16] != COLON:
        return none
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return none
    total += np.int64((hour * 60 + minute) * 60 + second) * np.int64(1_000_000)
    if data[end - 1] == LETTER_Z:
        end -= 1
    if end == begin + 19:
        return total, True
    if data[begin + 19] != POINT or end == begin + 20 or end > begin + 26:
        return none
    unit = np.int64(100_000)
    for k in range(begin + 20, end):
        if not ZERO <= data[k] <= NINE:
            return none
        total += unit * np.int64(data[k] - ZERO)
        unit //= 10
    return total, True
