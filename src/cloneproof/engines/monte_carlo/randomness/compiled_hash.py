"""The counter-based generator of `cloneproof._randomness`, compiled: the same bits, a few nanoseconds each."""

from __future__ import annotations

import numba as nb
import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_ONE, _12, _27, _30, _31 = (np.uint64(number) for number in (1, 12, 27, 30, 31))


@nb.njit(cache=True, nogil=True, inline="always")
def word(stream, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """The 64-bit word number `index` of a stream; see `cloneproof._randomness.word`."""
    x = np.uint64(stream) + _GOLDEN * (np.uint64(index) + _ONE)
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@nb.njit(cache=True, nogil=True, inline="always")
def uniform(stream, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """A number strictly between 0 and 1; see `cloneproof._randomness.uniform`."""
    return (np.float64(word(stream, index) >> _12) + 0.5) * 2.0**-52
