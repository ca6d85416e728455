"""In which order candidates are first looked at: spread over agents and horizons, large rungs early.

What pays under adaptive policies is often a flood of copies, which a search from few arms upwards reaches last. So the
rungs come as 16, 64, 4, 256, 2, .. copies; agents and horizons take turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import TypeVar

from cloneproof.analysis.audit.copy_vectors import CopyVector

RUNGS = (16, 64, 4, 256, 2, 8, 32, 128)

T = TypeVar("T")


def rung_rank(vector: CopyVector) -> tuple[int, int, CopyVector]:
    """What a vector is sorted by: its largest number of copies, then its arms.

    >>> sorted([(2,), (3,), (4,), (8,), (16,), (32,), (64,), (512,), (256,)], key=rung_rank)
    [(16,), (64,), (4,), (256,), (2,), (8,), (32,), (3,), (512,)]
    """
    most = max(vector)
    return (RUNGS.index(most) if most in RUNGS else len(RUNGS)), sum(vector), vector


def in_turn(groups: Iterable[Iterable[T]]) -> list[T]:
    """The first of each group, then the second of each, and so on.

    >>> in_turn([[1, 2, 3], [4], [5, 6]])
    [1, 4, 5, 2, 6, 3]
    """
    boxed = ([(each,) for each in group] for group in groups)
    return [each for turn in zip_longest(*boxed, fillvalue=()) for box in turn for each in box]
