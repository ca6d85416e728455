"""Attention of the places of a page as a log shows it, and rounds that count by it.

A reward in place p has the mean of its item times the attention of p. What items that were shown in both places earned
in p is compared with what they earned in the first place, by the ratio of Mantel and Haenszel: items (in a segment) are
its strata, so that it does not matter which items a place has, if all have the same ratio. Its interval is that of
Greenland and Robins for rewards of 0 and 1, and wider than needed for others. A place that depends on more than the
item (on the user's wish, or on luck that the item had before) is not corrected for.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from cloneproof.logs.faults import Fault
from cloneproof.logs.statistics import ArmSums

Z95: Final = 1.96  # half-width of a 95 % interval in standard errors
YOUNG: Final = "wait until items have earned in both, or leave these places out by --leave-out"
ROUNDING: Final = 1e-6  # of a round: error of sums of attention
PlaceSums = Mapping[int, tuple[int, float]]  # rounds and rewards of an item by place


@dataclass(frozen=True)
class PlaceAttention:
    """A place of a page: its views, their mean reward, its attention against the first place, and a 95 % interval.

    `shared` counts the items that were shown in both, in each segment by itself.
    """

    place: int
    views: int
    mean: float
    attention: float
    low: float
    high: float
    shared: int


def by_attention(
    arms: Sequence[ArmSums], segments: Sequence[ArmSums], cells: Sequence[ArmSums], unit: Fraction
) -> tuple[list[ArmSums], list[ArmSums], tuple[PlaceAttention, ...], list[Fault]]:
    """Return the sums of arms, in all and by segment, with rounds by attention; the places; and what has none.

    `cells` are those sums by place, and `unit` is the highest reward in ticks. Nothing counts of places without
    attention.
    """
    strata: dict[Any, dict[int, tuple[int, float]]] = defaultdict(dict)
    rows: dict[int, int] = defaultdict(int)
    for cell in cells:
        if cell.position is not None:
            strata[cell.agent, cell.arm, cell.segment][cell.position] = cell.rounds, float(cell.total / unit)
            rows[cell.position] += cell.rows
    by_place = {place: attention(list(strata.values()), min(rows), place) for place in sorted(rows)}
    missing = [place for place, own in by_place.items() if own is None]
    kind = f"a place that shares no item with place {min(rows, default=1)} that earned something in both"
    faults = (
        [Fault(kind, sum(rows[place] for place in missing), "row", f"place {missing[0]}", YOUNG)] if missing else []
    )
    places = tuple(own for own in by_place.values() if own is not None)
    counts = _counted(cells, {own.place: own.attention for own in places}, unit)
    of_arms: dict[Any, tuple[int, ...]] = defaultdict(lambda: (0, 0, 0))
    for (agent, arm, _), own in counts.items():
        of_arms[agent, arm] = tuple(map(sum, zip(of_arms[agent, arm], own, strict=True)))

    def with_counts(group: ArmSums, counted: tuple[int, ...]) -> ArmSums:
        rounds, total, squares = counted
        return replace(group, rounds=rounds, total=total, squares=squares)

    corrected = [with_counts(own, of_arms[own.agent, own.arm]) for own in arms]
    by_segment = [with_counts(own, counts.get((own.agent, own.arm, own.segment), (0, 0, 0))) for own in segments]
    return corrected, by_segment, places, faults


def attention(items: Sequence[PlaceSums], first: int, place: int) -> PlaceAttention | None:
    """Return the attention of a place against the first one; None where no item tells it.

    >>> found = attention([{1: (100, 40.0), 2: (50, 10.0)}, {1: (10, 2.0), 2: (90, 9.0)}, {2: (7, 1.0)}], 1, 2)
    >>> found.attention, found.shared
    (0.5, 2)
    """
    own = [cells[place] for cells in items if place in cells]
    views = sum(n for n, _ in own)
    mean = math.fsum(c for _, c in own) / max(views, 1)
    if place == first:
        return PlaceAttention(place, views, mean, 1.0, 1.0, 1.0, len(own))
    both = [(*cells[place], *cells[first]) for cells in items if place in cells and first in cells]
    shared = [pair for pair in both if pair[0] and pair[2]]
    here = math.fsum(c * m / (n + m) for n, c, m, _ in shared)
    there = math.fsum(d * n / (n + m) for n, _, m, d in shared)
    if not here or not there:
        return None
    spread = math.fsum(((c + d) * n * m - c * d * (n + m)) / (n + m) ** 2 for n, c, m, d in shared)
    ratio, factor = here / there, math.exp(Z95 * math.sqrt(max(spread, 0.0) / (here * there)))
    return PlaceAttention(place, views, mean, ratio, ratio / factor, ratio * factor, len(shared))


def _counted(cells: Sequence[ArmSums], weights: Mapping[int, float], unit: Fraction) -> dict[Any, tuple[int, int, int]]:
    """Return the rounds by attention, the sum of rewards and of their squares of each agent, arm and segment.

    Rounds of an item are rounded up to a whole number, and are never fewer than its rewards; these stay as counted.
    """
    sums: dict[Any, tuple[float, int, int]] = defaultdict(lambda: (0.0, 0, 0))
    for cell in sorted(cells, key=lambda cell: (str(cell.segment), cell.position or 0)):
        if weight := weights.get(cell.position or 0):
            views, total, squares = sums[cell.agent, cell.arm, cell.segment]
            here = views + weight * cell.rounds, total + cell.total, squares + cell.squares
            sums[cell.agent, cell.arm, cell.segment] = here
    seen: dict[Any, float] = defaultdict(float)  # of the segments of an item so far: their whole rounds add up to its
    counted = {}
    for (agent, arm, segment), (views, total, squares) in sums.items():
        before = _whole(seen[agent, arm])
        seen[agent, arm] += views
        rounds = max(_whole(seen[agent, arm]) - before, math.ceil(total / unit))
        counted[agent, arm, segment] = rounds, total, squares
    return counted


def _whole(rounds: float) -> int:
    return math.ceil(rounds - ROUNDING)
