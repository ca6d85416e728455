"""The samples of arms that RH-UCB and S-UCB keep: which copies survive, and with which probability."""

from __future__ import annotations

import math
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
    found: dict[tuple[int, ...], int] = {}
    for kept in _kept(tuple(copies), size):
        ways = math.prod(math.comb(c, k) for c, k in zip(copies, kept, strict=True))
        key = _sorted(kept, kinds)
        found[key] = found.get(key, 0) + ways
        if len(found) > SAMPLES_LIMIT:
            raise EngineError(
                f"the tree expects at most {SAMPLES_LIMIT} different samples of arms, got more from {arms} arms, "
                f"{size} of them kept; use engine 'monte-carlo'"
            )
    return {key: ways / math.comb(arms, size) for key, ways in found.items()}


def _kept(copies: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    if not copies:
        if size == 0:
            yield ()
        return
    for first in range(min(copies[0], size), -1, -1):
        if size - first <= sum(copies[1:]):
            for rest in _kept(copies[1:], size - first):
                yield (first, *rest)


def _sorted(kept: tuple[int, ...], kinds: Sequence[object]) -> tuple[int, ...]:
    """The numbers sorted downwards among originals of one kind."""
    groups: dict[object, list[int]] = {}
    for kind, number in zip(kinds, kept, strict=True):
        groups.setdefault(kind, []).append(number)
    for numbers in groups.values():
        numbers.sort()
    return tuple(groups[kind].pop() for kind in kinds)
