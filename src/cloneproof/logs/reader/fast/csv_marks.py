"""Where delimiters and ends of lines stand, in compiled code that looks at 16 bytes at once."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202, ANN401 (compiled functions are typed by their arguments, the compiler's objects have none)
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.logs.reader.fast.csv_values import lowest_bit, ones

NEWLINE, RETURN, QUOTE = (np.uint8(number) for number in b'\n\r"')
FOURTHS, NOTHINGS = np.uint64(0x1111111111111111), np.uint64(0x3333333333333333)
LETTERS = ir.VectorType(ir.IntType(8), 16)
PAIRS = ir.VectorType(ir.IntType(16), 8)
HALVES = ir.VectorType(ir.IntType(8), 8)


def _letters(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """16 bytes of an array from a place on."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    pointer = builder.gep(array.data, [arguments[1]])
    return builder.load(builder.bitcast(pointer, LETTERS.as_pointer()), align=1)


def _all_of(builder: Any, letter: Any) -> Any:
    """One letter 16 times."""
    one = builder.insert_element(ir.Constant(LETTERS, ir.Undefined), letter, ir.Constant(ir.IntType(32), 0))
    first = ir.Constant(ir.VectorType(ir.IntType(32), 16), [0] * 16)
    return builder.shuffle_vector(one, ir.Constant(LETTERS, ir.Undefined), first)


def _narrowed(builder: Any, marks: Any) -> Any:
    """Four bits of each of 16 bytes, which are 0 or 255."""
    pairs = builder.lshr(builder.bitcast(marks, PAIRS), ir.Constant(PAIRS, [4] * 8))
    return builder.bitcast(builder.trunc(pairs, HALVES), ir.IntType(64))


def _equal_to(typing_context: Any, data: Any, place: Any, one: Any, other: Any) -> Any:
    """Four bits for each of 16 bytes from a place on: whether it is one of two letters."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        letters = _letters(context, builder, signature, arguments)
        either = [builder.icmp_unsigned("==", letters, _all_of(builder, letter)) for letter in arguments[2:]]
        return _narrowed(builder, builder.sext(builder.or_(*either), LETTERS))

    return types.uint64(data, types.uint64, types.uint8, types.uint8), generate


def _none_or_wide(typing_context: Any, data: Any, place: Any) -> Any:
    """Four bits for each of 16 bytes from a place on: whether it is 0 (the lowest two) or above 127 (the others)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        letters = _letters(context, builder, signature, arguments)
        nothing = ir.Constant(LETTERS, [0] * 16)
        none = builder.sext(builder.icmp_unsigned("==", letters, nothing), LETTERS)
        wide = builder.sext(builder.icmp_signed("<", letters, nothing), LETTERS)
        low, high = (ir.Constant(LETTERS, [bits] * 16) for bits in (0x33, 0xCC))
        return _narrowed(builder, builder.or_(builder.and_(none, low), builder.and_(wide, high)))

    return types.uint64(data, types.uint64), generate


equal_to: Any = intrinsic(_equal_to)
none_or_wide: Any = intrinsic(_none_or_wide)


@inlined
def _put(marks, known, first, bits):
    """The place of the lowest bit as a mark; the other bits."""
    marks[known] = np.int32(first + (lowest_bit(bits) >> np.uint64(2)))
    return bits & (bits - np.uint64(1))


@compiled
def marked(data, place, until, delimiter, returns, marks, known):
    """Add the places of delimiters and ends of lines to the `known` marks; (how many, ends of lines, other letters).

    -1 where there is a quote, a 0, or a return in a file without them. Bytes are looked at 64 at a time, also beyond
    `until`, and there must be room for a mark each and for 64 more.
    """
    stray = QUOTE if returns else RETURN
    bad, wide, lines, known = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(known)
    for block in range(np.uint64(place), np.uint64(until), np.uint64(64)):
        ends = np.uint64(0)
        for k in range(np.uint64(4)):
            first = block + np.uint64(16) * k
            bad |= equal_to(data, first, QUOTE, stray)
            wide |= none_or_wide(data, first)
            ends |= (equal_to(data, first, NEWLINE, NEWLINE) & FOURTHS) << k
            bits = equal_to(data, first, delimiter, NEWLINE) & FOURTHS
            after = known + ones(bits)
            bits = _put(marks, known, first, bits)  # four at once, needed or not, are quicker than to ask each time
            bits = _put(marks, known + np.uint64(1), first, bits)
            bits = _put(marks, known + np.uint64(2), first, bits)
            bits = _put(marks, known + np.uint64(3), first, bits)
            known += np.uint64(4)
            while bits:
                bits = _put(marks, known, first, bits)
                known += np.uint64(1)
            known = after
        lines += ones(ends)
    if bad or wide & NOTHINGS:
        return np.int64(-1), np.int64(0), np.int64(0)
    return np.int64(known), np.int64(lines), np.int64(wide != 0)
