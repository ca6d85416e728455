"""Which copies vectors a dominance check looks at, and from how many arms on it has not looked at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cloneproof.analysis.audit.dominance.two_phase_game import TwoPhaseGame

MOST_VECTORS = 2000
MOST_LADDER_ARMS = 4096


@dataclass(frozen=True)
class Deviations:
    """Vectors by increasing number of arms; every vector of fewer than `unsearched` arms is among them."""

    vectors: tuple[tuple[int, ...], ...]
    unsearched: int


def deviations(game: TwoPhaseGame, max_copies: int) -> Deviations:
    """Up to `max_copies` of each original, and everything that has a score where arms are limited.

    By symmetry of the prior only sorted vectors matter, unless priors differ or the order of registration counts.
    """
    originals, limit = len(game.priors), game.max_arms or 0
    vectors: list[tuple[int, ...]] = []
    whole_until = max(limit + 1, originals + max_copies)  # smallest number of arms with a vector out of reach
    for arms in range(originals + 1, max(limit, originals * max_copies) + 1):
        most = arms if arms <= limit else max_copies
        for vector in parts(arms, originals, most, not game.orders_matter):
            vectors.append(vector)
            if len(vectors) > MOST_VECTORS:
                return Deviations(tuple(v for v in vectors if sum(v) < arms), min(whole_until, arms))
    return Deviations(tuple(vectors), whole_until)


def ladder(game: TwoPhaseGame) -> list[tuple[int, ...]]:
    """2, 4, 8, .. copies of one original and of all: scores of all rewards may fall only to very many."""
    originals, vectors, number = len(game.priors), [], 2
    while number * originals <= MOST_LADDER_ARMS and number <= game.horizon:
        places = range(originals) if game.orders_matter else range(1)
        vectors += [tuple(number if i == j else 1 for j in range(originals)) for i in places]
        if originals > 1:
            vectors.append((number,) * originals)
        number *= 2
    return vectors


def parts(total: int, number: int, most: int, falling: bool) -> Iterator[tuple[int, ...]]:
    """The vectors of so many whole numbers from 1 to `most` with that total; only falling ones if asked for.

    >>> list(parts(5, 2, 4, True))
    [(4, 1), (3, 2)]
    """
    if number == 1:
        if 1 <= total <= most:
            yield (total,)
        return
    for first in range(min(most, total - number + 1), 0, -1):
        for rest in parts(total - first, number - 1, first if falling else most, falling):
            yield (first, *rest)
