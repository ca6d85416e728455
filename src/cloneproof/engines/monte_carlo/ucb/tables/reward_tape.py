"""Reward tapes, compiled: the words of a stream one after the other, each from the last by one addition."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)

from __future__ import annotations

import math

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_12, _27, _30, _31 = (np.uint64(number) for number in (12, 27, 30, 31))


@nb.njit(nogil=True, inline="always")
def mixed(x):
    """The 52 bits behind `uniform(stream, index)` where x = stream + GOLDEN (index + 1), kept by adding GOLDEN.

    A product of 64 bits costs three cycles of the multiplier on common cores, so two instead of three of them matter.
    """
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return np.int64((x ^ (x >> _31)) >> _12)


@compiled
def threshold(mean):
    """The whole number that `mixed` stays below exactly where uniform < mean, u = (mixed + 1/2) 2^-52."""
    return np.int64(math.ceil(mean * 2.0**52 - 0.5))
