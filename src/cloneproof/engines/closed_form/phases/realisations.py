"""The realised means of one agent: multisets where the order of registration does not matter, else sequences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from cloneproof.engines.closed_form.phases.commitment import EqualArms, ExactAtoms
from cloneproof.engines.closed_form.phases.committed_sums import MeanCounts
from cloneproof.engines.time_limit import check_time


class CopiedOriginal(NamedTuple):
    """A registered original: its prior as exact atoms, and how often it is registered (at least once)."""

    atoms: ExactAtoms
    copies: int


def group_originals(originals: list[CopiedOriginal]) -> list[EqualArms]:
    """Originals of equal prior and equal number of copies together, in order of first appearance."""
    return [EqualArms(*original, number) for original, number in Counter(originals).items()]


def count_realisations(originals: list[CopiedOriginal], ordered: bool) -> int:
    """How many `realisations` there are."""
    if ordered:
        return math.prod(len(original.atoms) for original in originals)
    return math.prod(math.comb(g.number + len(g.atoms) - 1, g.number) for g in group_originals(originals))


def realisations(originals: list[CopiedOriginal], ordered: bool) -> Iterator[tuple[Fraction, MeanCounts]]:
    """Each realisation with its probability: runs of (mean, arms), in order of registration if that is wanted."""
    if ordered:
        for atoms in product(*(original.atoms for original in originals)):
            check_time("closed form")
            runs = tuple((value, original.copies) for (value, _), original in zip(atoms, originals, strict=True))
            yield math.prod((weight for _, weight in atoms), start=Fraction(1)), runs
        return
    for parts in product(*(list(_multisets(group)) for group in group_originals(originals))):
        check_time("closed form")
        weight = math.prod((chance for chance, _ in parts), start=Fraction(1))
        yield weight, tuple(run for _, runs in parts for run in runs)


def _multisets(group: EqualArms) -> Iterator[tuple[Fraction, MeanCounts]]:
    """How many of the group's originals have each value, with multinomial probabilities."""
    for positions in combinations_with_replacement(range(len(group.atoms)), group.number):
        counts = Counter(positions)
        chance = Fraction(math.factorial(group.number))
        for position, number in counts.items():
            chance *= group.atoms[position][1] ** number / math.factorial(number)
        yield chance, tuple((group.atoms[position][0], number * group.copies) for position, number in counts.items())
