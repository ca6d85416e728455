"""Records of arrays without owners: the same arrays, and nobody's count of references moves."""

import sys
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.compiling import uncounted


class Inner(NamedTuple):
    numbers: Any
    factor: float


class Outer(NamedTuple):
    inner: Inner
    table: Any
    flag: bool


@nb.njit
def double(record):
    """Write through the record that has no owners, and return a number out of each of its parts."""
    free = uncounted(record)
    for i in range(len(free.inner.numbers)):
        free.inner.numbers[i] *= 2
    return free.inner.factor + free.table[1, 2] + free.flag


def test_the_arrays_are_the_same_and_stay_with_their_owners():
    numbers, table = np.arange(5), np.arange(6.0).reshape(2, 3)
    record = Outer(Inner(numbers, 0.5), table, True)
    assert double(record) == 0.5 + 5.0 + 1  # compiles
    before = sys.getrefcount(numbers), sys.getrefcount(table)
    for _ in range(10):
        double(record)
    assert (sys.getrefcount(numbers), sys.getrefcount(table)) == before
    assert numbers.tolist() == [i << 11 for i in range(5)]
