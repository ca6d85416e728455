"""Sets of arms as bits: put, take, and find the member of a given rank in the order of registration.

A set is a row of 64-bit words; the sizes of blocks of eight words stand in a row of their own, so that the search for
a member reads a few sizes and a few words however many arms there are.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numba as nb
import numpy as np
from numba.core import types
from numba.extending import intrinsic

WORD_BITS = 64
BLOCK_WORDS = 8
_ONE, _LOW, _BYTE, _BLOCK = np.uint64(1), np.uint64(63), np.uint64(255), np.uint64(BLOCK_WORDS)
_BY_2, _BY_4, _BY_8 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_EACH, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_IN_BYTE = np.array(
    [([bit for bit in range(8) if byte >> bit & 1] + [0] * 8)[rank] for rank in range(8) for byte in range(256)],
    np.uint8,
)


@intrinsic  # type: ignore[untyped-decorator]
def ones(typing_context, word):
    """How many bits are set (one instruction where the processor has it)."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@nb.njit(nogil=True, forceinline=True)
def flip(words, row, k):
    """Put element k into the set that begins at word `row`, or take it out."""
    words[row + (k >> 6)] ^= _ONE << (np.uint64(k) & _LOW)


@nb.njit(nogil=True, forceinline=True)
def holds(words, row, k):
    """Whether element k is in the set."""
    return (words[row + (k >> 6)] >> (np.uint64(k) & _LOW)) & _ONE != 0


@nb.njit(nogil=True, forceinline=True)
def bit_of_rank(word, rank):
    """The position of the set bit of that rank: counts of bits in each byte, summed up by one product, then a table."""
    counts = word - ((word >> _ONE) & _BY_2)
    counts = (counts & _BY_4) + ((counts >> np.uint64(2)) & _BY_4)
    sums = ((counts + (counts >> np.uint64(4))) & _BY_8) * _EACH
    skipped = (((((rank * _EACH) | _TOPS) - sums) & _TOPS) >> np.uint64(7)) * _EACH  # bytes, counted in the top one
    shift = (skipped >> np.uint64(56)) << np.uint64(3)
    rank -= ((sums << np.uint64(8)) >> shift) & _BYTE
    return shift + np.uint64(_IN_BYTE[(rank << np.uint64(8)) | ((word >> shift) & _BYTE)])


@nb.njit(nogil=True, forceinline=True)
def member(words, row, ints, sizes, blocks, rank):
    """The element of that rank, counted from 0; the sizes of the blocks begin at ints[sizes]. All are unsigned.

    Lots are random, so no branch may depend on them: a wrong guess of the processor costs more than all eight words.
    """
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


@nb.njit(nogil=True, forceinline=True)
def two_members(words, row, ints, sizes, blocks, one, other):
    """Two searches at a time: each is a long chain of dependent steps, and two side by side cost hardly more."""
    total = below_one = below_other = block_one = block_other = np.uint64(0)
    for b in range(sizes, sizes + blocks):
        total += np.uint64(ints[b])
        passed_one, passed_other = total <= one, total <= other
        block_one += np.uint64(passed_one)
        block_other += np.uint64(passed_other)
        below_one = total if passed_one else below_one
        below_other = total if passed_other else below_other
    one -= below_one
    other -= below_other
    start_one, start_other = row + (block_one << np.uint64(3)), row + (block_other << np.uint64(3))
    place_one, place_other = start_one, start_other
    total_one = total_other = below_one = below_other = np.uint64(0)
    for w in range(_BLOCK):
        total_one += ones(words[start_one + w])
        total_other += ones(words[start_other + w])
        passed_one, passed_other = total_one <= one, total_other <= other
        place_one += np.uint64(passed_one)
        place_other += np.uint64(passed_other)
        below_one = total_one if passed_one else below_one
        below_other = total_other if passed_other else below_other
    return (
        ((place_one - row) << np.uint64(6)) + bit_of_rank(words[place_one], one - below_one),
        ((place_other - row) << np.uint64(6)) + bit_of_rank(words[place_other], other - below_other),
    )


@nb.njit(nogil=True)
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
