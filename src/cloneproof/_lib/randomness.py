"""Counter-based randomness: every random number is a hash of where it is used.

A *stream* is a 64-bit integer. A number of a stream is computed from its index, in any order and on any machine, so
equal seeds give equal bits whether a run is resumed or not and on any number of threads, and two strategies can share
their rewards. The hash is the finaliser of splitmix64 (Steele, Lea and Flood 2014, constants by Stafford), a bijection
of 64 bits, so that words of a stream reveal the stream. Where somebody could gain by that, as in a live market, a
stream is a key of 32 bytes and the hash is keyed BLAKE2b.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, overload

MASK: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15


Stream = int | bytes


def word(stream: Stream, index: int) -> int:
    """Return the 64-bit word number `index` of a stream."""
    if isinstance(stream, bytes):
        digest = blake2b(index.to_bytes(8, "big"), key=stream, digest_size=8, person=b"cloneproof word").digest()
        return int.from_bytes(digest, "big")
    x = (stream + GOLDEN * (index + 1)) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


@overload
def substream(stream: int, *indices: int) -> int: ...
@overload
def substream(stream: Stream, *indices: int) -> Stream: ...
def substream(stream: Stream, *indices: int) -> Stream:
    """Return the stream reached from `stream` by a path of indices.

    >>> substream(1, 2, 3) == word(word(1, 2), 3), len(substream(bytes(32), 2, 3))
    (True, 32)
    """
    for index in indices:
        if isinstance(stream, bytes):
            stream = blake2b(index.to_bytes(8, "big"), key=stream, digest_size=32, person=b"cloneproof key").digest()
        else:
            stream = word(stream, index)
    return stream


def uniform(stream: Stream, index: int) -> float:
    """Return a number strictly between 0 and 1, uniform on the odd multiples of 2**-53."""
    return ((word(stream, index) >> 12) + 0.5) * 2.0**-52
