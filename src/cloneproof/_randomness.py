"""Counter-based randomness: every random number is a hash of where it is used.

A *stream* is a 64-bit integer. A number of a stream is found by its index, in any order and on any machine, so one
seed gives the same bits whole or resumed, on one thread or many, and two strategies can share their reward tapes.
The hash is the finaliser of splitmix64 (Steele, Lea and Flood 2014, constants by Stafford), a bijection of 64 bits.
"""

from __future__ import annotations

from typing import Final

MASK: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15


def word(stream: int, index: int) -> int:
    """The 64-bit word number `index` of a stream, which may serve as a stream itself."""
    x = (stream + GOLDEN * (index + 1)) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def substream(stream: int, *indices: int) -> int:
    """The stream reached from `stream` by a path of indices.

    >>> substream(1, 2, 3) == word(word(1, 2), 3)
    True
    """
    for index in indices:
        stream = word(stream, index)
    return stream


def uniform(stream: int, index: int) -> float:
    """A number strictly between 0 and 1, uniform on the odd multiples of 2**-53."""
    return ((word(stream, index) >> 12) + 0.5) * 2.0**-52
