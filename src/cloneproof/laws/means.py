"""Realised means: which means an agent's originals may have, and how likely each way is.

Originals of equal prior that are registered equally often are alike, so that only how many of them have each value
matters: multisets, with multinomial probabilities. Weights may be fractions or floats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

ExactAtoms = tuple[tuple[float, Fraction], ...]
MeanCounts = tuple[tuple[float, int], ...]  # different means, and how many arms have each


class CopiedOriginal(NamedTuple):
    """A registered original: its prior as exact atoms, and how often it is registered (at least once)."""

    atoms: ExactAtoms
    copies: int


class EqualArms(NamedTuple):
    """`number` originals with the same prior, each registered `copies` times."""

    atoms: ExactAtoms
    copies: int
    number: int


def exact_atoms(pairs: Sequence[tuple[float, Any]]) -> ExactAtoms:
    """Return values with weights that sum to exactly 1; those of no weight are left out.

    >>> exact_atoms([(0.5, 1.0), (0.75, 3.0)])
    ((0.5, Fraction(1, 4)), (0.75, Fraction(3, 4)))
    """
    exact = [(value, Fraction(weight)) for value, weight in pairs if weight > 0]
    total = sum((weight for _, weight in exact), Fraction(0))
    return tuple((value, weight / total) for value, weight in exact)


def prior_mean(atoms: ExactAtoms) -> Fraction:
    """Return the exact expectation of a prior."""
    return sum((Fraction(value) * weight for value, weight in atoms), Fraction(0))


def group_originals(originals: Sequence[CopiedOriginal]) -> list[EqualArms]:
    """Group originals of equal prior and equal copies, in order of first appearance."""
    return [EqualArms(*original, number) for original, number in Counter(originals).items()]


def multisets(atoms: Sequence[tuple[float, Any]], size: int) -> Iterator[tuple[Any, MeanCounts]]:
    """Yield how many of `size` originals have each value, with its probability.

    >>> list(multisets([(0.0, 0.5), (1.0, 0.5)], 2))
    [(0.25, ((0.0, 2),)), (0.5, ((0.0, 1), (1.0, 1))), (0.25, ((1.0, 2),))]
    """
    for positions in combinations_with_replacement(range(len(atoms)), size):
        counts = Counter(positions)
        chance: Any = math.factorial(size)
        for position, number in counts.items():
            chance *= atoms[position][1] ** number / math.factorial(number)
        yield chance, tuple((atoms[position][0], number) for position, number in counts.items())


def count_realisations(originals: Sequence[CopiedOriginal], ordered: bool = False) -> int:
    """Count the `realisations`."""
    if ordered:
        return math.prod(len(original.atoms) for original in originals)
    return math.prod(math.comb(g.number + len(g.atoms) - 1, g.number) for g in group_originals(originals))


def realisations(originals: Sequence[CopiedOriginal], ordered: bool = False) -> Iterator[tuple[Fraction, MeanCounts]]:
    """Yield each realisation with its probability: runs of (mean, arms), optionally in order of registration."""
    groups = [EqualArms(*original, 1) for original in originals] if ordered else group_originals(originals)
    for parts in product(*(list(multisets(group.atoms, group.number)) for group in groups)):
        runs = tuple(
            (value, number * group.copies)
            for group, (_, counts) in zip(groups, parts, strict=True)
            for value, number in counts
        )
        yield math.prod((chance for chance, _ in parts), start=Fraction(1)), runs


def merge_equal_means(runs: MeanCounts) -> MeanCounts:
    """Return the different means and how many arms have each, the rarest first."""
    counts: dict[float, int] = {}
    for mean, count in runs:
        counts[mean] = counts.get(mean, 0) + count
    return tuple(sorted(counts.items(), key=lambda item: (item[1], item[0])))
