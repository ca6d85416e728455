"""Sets of arms as bits: add, remove, and find the member of a given rank in the order of registration.

A set is a row of 64-bit words. The sizes of blocks of eight words stand in another row, so that the search for a
member reads these sizes and eight words however many arms there are.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from cloneproof._arrays import IntArray, WordArray
from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined

WORD_BITS = 64
BLOCK_WORDS = 8
_ONE, _LOW, _BYTE, _BLOCK = np.uint64(1), np.uint64(63), np.uint64(255), np.uint64(BLOCK_WORDS)
_BY_2, _BY_4, _BY_8 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_EACH, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_IN_BYTE = np.array(
    [([bit for bit in range(8) if byte >> bit & 1] + [0] * 8)[rank] for rank in range(8) for byte in range(256)],
    np.uint8,
)


class BitSet(NamedTuple):
    """Where a set stands: its words begin at words[row], the sizes of its blocks at ints[sizes]; all are unsigned."""

    words: WordArray
    row: np.uint64
    ints: IntArray
    sizes: np.uint64
    blocks: np.uint64


def _ones(typing_context, word):
    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


ones: Any = intrinsic(_ones)
"""`ones(word)`: how many bits are set (one instruction where the processor has it)."""


@inlined
def flip(words, row, k):
    """Add element k to the set that begins at word `row`, or remove it."""
    words[row + (k >> 6)] ^= _ONE << (np.uint64(k) & _LOW)


@inlined
def holds(words, row, k):
    """Whether element k is in the set."""
    return (words[row + (k >> 6)] >> (np.uint64(k) & _LOW)) & _ONE != 0


@inlined
def bit_of_rank(word, rank):
    """The position of the set bit of that rank: counts of bits in each byte, summed up by one product, then a table."""
    counts = word - ((word >> _ONE) & _BY_2)
    counts = (counts & _BY_4) + ((counts >> np.uint64(2)) & _BY_4)
    sums = ((counts + (counts >> np.uint64(4))) & _BY_8) * _EACH
    skipped = (((((rank * _EACH) | _TOPS) - sums) & _TOPS) >> np.uint64(7)) * _EACH  # bytes, counted in the top one
    shift = (skipped >> np.uint64(56)) << np.uint64(3)
    rank -= ((sums << np.uint64(8)) >> shift) & _BYTE
    return shift + np.uint64(_IN_BYTE[(rank << np.uint64(8)) | ((word >> shift) & _BYTE)])


@inlined
def member(bit_set, rank):
    """The element of that rank, counted from 0, an unsigned number as the rank is.

    Lots are random, so no branch may depend on them: a wrong guess of the processor costs more than all eight words.
    """
    words, row, ints, sizes, blocks = bit_set
    total = below = block = np.uint64(0)
    for b in range(sizes, sizes + blocks):
        total += np.uint64(ints[b])
        passed = total <= rank
        block += np.uint64(passed)
        below = total if passed else below
    rank -= below
    start = row + (block << np.uint64(3))
    total, below, position = np.uint64(0), np.uint64(0), start
    for w in range(start, start + _BLOCK):
        total += ones(words[w])
        passed = total <= rank
        position += np.uint64(passed)
        below = total if passed else below
    return ((position - row) << np.uint64(6)) + bit_of_rank(words[position], rank - below)


@inlined
def two_members(bit_set, rank_a, rank_b):
    """Two searches at a time: each is a long chain of dependent steps, and two side by side cost hardly more."""
    words, row, ints, sizes, blocks = bit_set
    total = below_a = below_b = block_a = block_b = np.uint64(0)
    for b in range(sizes, sizes + blocks):
        total += np.uint64(ints[b])
        passed_a, passed_b = total <= rank_a, total <= rank_b
        block_a += np.uint64(passed_a)
        block_b += np.uint64(passed_b)
        below_a = total if passed_a else below_a
        below_b = total if passed_b else below_b
    rank_a -= below_a
    rank_b -= below_b
    start_a, start_b = row + (block_a << np.uint64(3)), row + (block_b << np.uint64(3))
    place_a, place_b = start_a, start_b
    total_a = total_b = below_a = below_b = np.uint64(0)
    for w in range(_BLOCK):
        total_a += ones(words[start_a + w])
        total_b += ones(words[start_b + w])
        passed_a, passed_b = total_a <= rank_a, total_b <= rank_b
        place_a += np.uint64(passed_a)
        place_b += np.uint64(passed_b)
        below_a = total_a if passed_a else below_a
        below_b = total_b if passed_b else below_b
    return (
        ((place_a - row) << np.uint64(6)) + bit_of_rank(words[place_a], rank_a - below_a),
        ((place_b - row) << np.uint64(6)) + bit_of_rank(words[place_b], rank_b - below_b),
    )


@compiled
def member_of_union(words, width, sets, number, rank):
    """The element of that rank in the union of disjoint sets, whose numbers are `sets[:number]`."""
    for position in range(width):
        word = np.uint64(0)
        for p in range(number):
            word |= words[sets[p] * width + position]
        size = np.int64(ones(word))
        if rank < size:
            return position * WORD_BITS + np.int64(bit_of_rank(word, np.uint64(rank)))
        rank -= size
    return -1
