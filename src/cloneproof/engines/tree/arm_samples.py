"""The samples of arms that RH-UCB and S-UCB keep: which copies survive, and with which probability."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from cloneproof.errors import EngineError

SAMPLES_LIMIT = 2_000


def samples(copies: Sequence[int], size: int, kinds: Sequence[object]) -> dict[tuple[int, ...], float]:
    """How many copies of each original are kept in a uniform sample of `size` arms, with probabilities.

    The law is multivariate hypergeometric. Originals of equal kind are exchangeable, so only the sorted outcome counts.

    >>> samples((2, 1), 1, ("x", "y"))
    {(1, 0): 0.6666666666666666, (0, 1): 0.3333333333333333}
    """
    arms = sum(copies)
    if size >= arms:
        return {tuple(copies): 1.0}
    groups = Counter(zip(kinds, copies, strict=True))
    ways_of: dict[tuple[int, ...], int] = {}
    for deal, ways in _deals(list(groups.items()), size):
        hands = {group: list(hand) for group, hand in zip(groups, deal, strict=True)}
        key = _sort_within_kinds(
            tuple(hands[kind, count].pop() for kind, count in zip(kinds, copies, strict=True)), kinds
        )
        ways_of[key] = ways_of.get(key, 0) + ways
        if len(ways_of) > SAMPLES_LIMIT:
            raise EngineError(
                f"the tree expects at most {SAMPLES_LIMIT} different samples of arms, got more from {arms} arms, "
                f"{size} of them kept; use engine 'monte-carlo'"
            )
    return {key: ways / math.comb(arms, size) for key, ways in ways_of.items()}


SampledCopies = tuple[tuple[object, int], int]  # ((kind, copies), how many originals are like that)


def _deals(groups: list[SampledCopies], size: int) -> Iterator[tuple[tuple[tuple[int, ...], ...], int]]:
    """What each group keeps, as numbers of copies in falling order, and the ways to keep that; never by labels."""
    if not groups:
        if size == 0:
            yield (), 1
        return
    ((_, copies), originals), rest = groups[0], groups[1:]
    room = sum(count * number for (_, count), number in rest)
    for kept in range(min(size, copies * originals), max(0, size - room) - 1, -1):
        for hand in _hands(originals, copies, kept, copies):
            ways = math.factorial(originals)
            for number, times in Counter(hand).items():
                ways = ways // math.factorial(times) * math.comb(copies, number) ** times
            for others, other_ways in _deals(rest, size - kept):
                yield (hand, *others), ways * other_ways


def _hands(originals: int, copies: int, kept: int, most: int) -> Iterator[tuple[int, ...]]:
    """Falling sequences of that many numbers, each at most `most`, that sum to `kept`."""
    if originals == 0:
        if kept == 0:
            yield ()
        return
    for first in range(min(most, kept), -1, -1):
        if kept - first <= first * (originals - 1):
            for rest in _hands(originals - 1, copies, kept - first, first):
                yield (first, *rest)


def _sort_within_kinds(kept: tuple[int, ...], kinds: Sequence[object]) -> tuple[int, ...]:
    """The numbers sorted downwards among originals of one kind."""
    groups: dict[object, list[int]] = {}
    for kind, number in zip(kinds, kept, strict=True):
        groups.setdefault(kind, []).append(number)
    for numbers in groups.values():
        numbers.sort()
    return tuple(groups[kind].pop() for kind in kinds)
