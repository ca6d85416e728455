"""What a mechanism may know of a market, and what it remembers of a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cloneproof._randomness import word


@dataclass(frozen=True)
class Registration:
    """What a mechanism may know: who registered how many arms. Keys name agents and arms to the random numbers."""

    names: tuple[str, ...]
    arms: tuple[int, ...]
    agent_keys: tuple[int, ...]
    arm_keys: tuple[tuple[int, ...], ...]


class Allocation(NamedTuple):
    """A decision as a state remembers it: whom it served, on which levels its reward counts, and who waits for it."""

    agent: int
    arm: int
    phase: str
    agent_counts: bool
    arm_counts: bool
    version: int
    slot: int = -1  # the candidate of a level of slots
    awaited: bool = False  # the next phase waits for the reward, whether it counts or not


def sampled(items: Sequence[tuple[Any, ...]], size: int, stream: int) -> list[tuple[Any, ...]]:
    """A uniform sample without replacement of (key, ..) items that travels with the keys, in the given order."""
    ranks = sorted(range(len(items)), key=lambda number: word(stream, items[number][0]))
    return [items[number] for number in sorted(ranks[:size])]
