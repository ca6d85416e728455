"""Which copies an agent may register: the vectors that an audit tries.

Originals of equal prior are exchangeable, so only which numbers of copies occur matters, not which original has them;
except where arms are explored in order of registration, where (2, 1) and (1, 2) differ. Vectors are written with the
largest number first within originals of equal prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

from cloneproof.market.agents import Agent
from cloneproof.market.copies import MOST_ARMS

CopyVector = tuple[int, ...]
MOST_VECTORS = 2000  # of the grid; beyond it, those of the fewest arms


@dataclass(frozen=True)
class OriginalKinds:
    """Which originals of an agent can be exchanged: equal numbers mark the same kind."""

    labels: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many originals there are."""
        return len(self.labels)

    @property
    def honest(self) -> CopyVector:
        """Everything once."""
        return (1,) * self.count

    def canonical(self, vector: CopyVector) -> bool:
        """Whether no exchange of originals of one kind brings larger numbers to the front."""
        last: dict[int, int] = {}
        for label, number in zip(self.labels, vector, strict=True):
            if number > last.get(label, number):
                return False
            last[label] = number
        return True

    def sorted(self, vector: CopyVector) -> CopyVector:
        """The canonical vector that exchanges make of it.

        >>> OriginalKinds((0, 1, 0)).sorted((1, 5, 3))
        (3, 5, 1)
        """
        places: dict[int, list[int]] = {}
        for label, number in zip(self.labels, vector, strict=True):
            places.setdefault(label, []).append(number)
        falling = {label: iter(sorted(numbers, reverse=True)) for label, numbers in places.items()}
        return tuple(next(falling[label]) for label in self.labels)

    def first_of_each(self) -> list[int]:
        """One original of each kind."""
        return [position for position, label in enumerate(self.labels) if label not in self.labels[:position]]


def kinds_of(agent: Agent, in_order: bool) -> OriginalKinds:
    """Originals of equal prior are of one kind; none are where the order of registration matters.

    >>> from cloneproof.market.priors import Point
    >>> kinds_of(Agent("ana", prior=[Point(0.5), Point(0.5), Point(0.9)]), in_order=False).labels
    (0, 0, 2)
    """
    priors = agent.priors
    return OriginalKinds(tuple(k if in_order else priors.index(prior) for k, prior in enumerate(priors)))


def of_sum(kinds: OriginalKinds, arms: int, least: int = 1) -> Iterator[CopyVector]:
    """Every canonical vector of so many arms.

    >>> list(of_sum(OriginalKinds((0, 0, 0)), 5))
    [(2, 2, 1), (3, 1, 1)]
    """

    def rest(position: int, left: int) -> Iterator[CopyVector]:
        places = kinds.count - position
        if places == 0:
            yield ()
            return
        for number in range(least, left - least * (places - 1) + 1) if places > 1 else (left,):
            for following in rest(position + 1, left - number):
                yield (number, *following)

    return (vector for vector in rest(0, arms) if arms >= least * kinds.count and kinds.canonical(vector))


def all_below(kinds: OriginalKinds, arms: int, most: int) -> list[CopyVector] | None:
    """Every vector that copies something and has fewer arms than that; None where they are more than `most`."""
    vectors: list[CopyVector] = []
    for total in range(kinds.count + 1, arms):
        vectors += islice(of_sum(kinds, total), most + 1 - len(vectors))
        if len(vectors) > most:
            return None
    return vectors


def grid(kinds: OriginalKinds, cap: int, least: int = 1) -> tuple[list[CopyVector], int]:
    """The vectors with numbers from `least` to `cap`, fewest arms first, without honesty; and how many were left out.

    >>> grid(OriginalKinds((0, 0)), 2)
    ([(2, 1), (2, 2)], 0)
    """
    vectors: list[CopyVector] = []
    numbers = range(least, cap + 1)
    if len(numbers) ** kinds.count <= 100 * MOST_VECTORS:
        every = [v for v in product(numbers, repeat=kinds.count) if kinds.canonical(v) and v != kinds.honest and any(v)]
        return sorted(every, key=_size)[:MOST_VECTORS], max(0, len(every) - MOST_VECTORS)
    for total in range(max(1, least * kinds.count), cap * kinds.count + 1):
        fitting = (v for v in of_sum(kinds, total, least) if max(v) <= cap and v != kinds.honest)
        vectors += islice(fitting, MOST_VECTORS - len(vectors))
        if len(vectors) == MOST_VECTORS:
            break
    return vectors, len(numbers) ** kinds.count - len(vectors)


def ladders(kinds: OriginalKinds, rounds: int) -> list[list[CopyVector]]:
    """Copies 2, 4, 8, .. up to the rounds (and 2 at least): of one original, for one of each kind; and of all of them.

    >>> ladders(OriginalKinds((0, 0)), 5)
    [[(2, 1), (4, 1)], [(2, 2), (4, 4)]]
    """
    powers = [2**power for power in range(1, max(2, rounds).bit_length())]
    of_one = [
        [tuple(number if k == position else 1 for k in range(kinds.count)) for number in powers]
        for position in kinds.first_of_each()
    ]
    of_all = [[(number,) * kinds.count for number in powers]] if kinds.count > 1 else []
    return [[vector for vector in rungs if sum(vector) <= MOST_ARMS] for rungs in of_one + of_all]


def withholding_vectors(kinds: OriginalKinds, cap: int) -> list[CopyVector]:
    """The vectors that leave something out, with at most `cap` copies of the rest."""
    return [vector for vector in grid(kinds, cap, least=0)[0] if 0 in vector]


def _size(vector: CopyVector) -> tuple[int, CopyVector]:
    return sum(vector), vector
