"""Names of the array types that signatures use, and groups of what pairs join."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
WordArray = npt.NDArray[np.uint64]


def joined(count: int, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Group the numbers below `count`: those joined by a chain of pairs are together.

    >>> joined(4, [(0, 2), (2, 3)])
    [(0, 2, 3), (1,)]
    """
    above = list(range(count))

    def top(one: int) -> int:
        while above[one] != one:
            above[one] = one = above[above[one]]
        return one

    for first, second in pairs:
        above[top(second)] = top(first)
    members: dict[int, list[int]] = {}
    for one in range(count):
        members.setdefault(top(one), []).append(one)
    return [tuple(group) for group in members.values()]
