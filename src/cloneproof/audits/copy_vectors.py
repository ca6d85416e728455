"""The vectors of copies that an audit tries.

Originals with equal priors are exchangeable, so only the multiset of copies matters, unless arms are explored in the
order of registration. Within originals of equal prior, vectors have the largest number first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import comb, prod

from cloneproof.market.market import MOST_ARMS, Agent, sort_within_kinds

CopyVector = tuple[int, ...]
MOST_VECTORS = 2000  # of the grid; beyond it, those of the fewest arms


@dataclass(frozen=True)
class OriginalKinds:
    """Which originals of an agent can be exchanged: equal numbers mark the same kind."""

    labels: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.labels)

    @property
    def honest(self) -> CopyVector:
        return (1,) * self.count

    def canonical(self, vector: CopyVector) -> bool:
        """Return whether originals of one kind have falling numbers."""
        last: dict[int, int] = {}
        for label, number in zip(self.labels, vector, strict=True):
            if number > last.get(label, number):
                return False
            last[label] = number
        return True

    def sorted(self, vector: CopyVector) -> CopyVector:
        """Return the canonical vector that exchanges of originals make of it.

        >>> OriginalKinds((0, 1, 0)).sorted((1, 5, 3))
        (3, 5, 1)
        """
        return sort_within_kinds(vector, self.labels)

    def first_of_each(self) -> list[int]:
        return [position for position, label in enumerate(self.labels) if label not in self.labels[:position]]


def kinds_of(agent: Agent, in_order: bool) -> OriginalKinds:
    """Return the kinds of an agent's originals: equal priors are one kind, unless the order of registration matters.

    >>> from cloneproof.market.priors import Point
    >>> kinds_of(Agent("ana", prior=[Point(0.5), Point(0.5), Point(0.9)]), in_order=False).labels
    (0, 0, 2)
    """
    laws = agent.laws
    return OriginalKinds(tuple(k if in_order else laws.index(law) for k, law in enumerate(laws)))


def of_sum(kinds: OriginalKinds, arms: int, least: int = 1, most: int | None = None) -> Iterator[CopyVector]:
    """Yield every canonical vector with this many arms and numbers from `least` to `most`, in lexicographic order.

    Generates only vectors with the right sum.

    >>> list(of_sum(OriginalKinds((0, 0, 0)), 5))
    [(2, 2, 1), (3, 1, 1)]
    """
    # A depth-first walk over the originals, with an iterator of possible numbers for each one reached so far.
    # `left` is what the remaining numbers sum to, `room` the most that they can sum to under the caps of their kinds.
    # A number is possible only if the rest can still reach the sum, so that no branch ends without a vector.
    labels, top = kinds.labels, arms if most is None else min(most, arms)
    if not least * kinds.count <= arms <= top * kinds.count:
        return
    same = [labels[position + 1 :].count(label) for position, label in enumerate(labels)]
    caps = dict.fromkeys(labels, top)  # the next original of a kind has no more copies than the last one
    numbers: list[int] = []
    left, room = arms, top * kinds.count  # for the originals that have no number yet: what they sum to, and can at most
    before: list[tuple[int, int, int]] = []

    def possible() -> Iterator[int]:
        place = len(numbers)
        cap = caps[labels[place]]
        low = cap - (room - left) // (1 + same[place])  # the others can still make up the sum
        return iter(range(max(least, low), min(cap, left - least * (kinds.count - place - 1)) + 1))

    open_ = [possible()]
    while open_:
        number = next(open_[-1], None)
        if number is None:
            open_.pop()
            if numbers:
                numbers.pop()
                caps[labels[len(numbers)]], left, room = before.pop()
        elif len(open_) == kinds.count:
            yield (*numbers, number)
        else:
            place, cap = len(numbers), caps[labels[len(numbers)]]
            before.append((cap, left, room))
            caps[labels[place]], left, room = number, left - number, room - cap - same[place] * (cap - number)
            numbers.append(number)
            open_.append(possible())


def all_below(kinds: OriginalKinds, arms: int, most: int) -> list[CopyVector] | None:
    """Return every vector with copies and fewer arms than `arms`; None if there are more than `most`."""
    vectors: list[CopyVector] = []
    for total in range(kinds.count + 1, arms):
        vectors += islice(of_sum(kinds, total), most + 1 - len(vectors))
        if len(vectors) > most:
            return None
    return vectors


def grid(kinds: OriginalKinds, cap: int, least: int = 1) -> tuple[list[CopyVector], int]:
    """Return vectors with numbers from `least` to `cap`, fewest arms first, without honesty; and how many are left out.

    >>> grid(OriginalKinds((0, 0)), 2)
    ([(2, 1), (2, 2)], 0)
    """
    vectors: list[CopyVector] = []
    for total in range(max(1, least * kinds.count), cap * kinds.count + 1):
        fitting = (vector for vector in of_sum(kinds, total, least, cap) if vector != kinds.honest)
        vectors += islice(fitting, MOST_VECTORS - len(vectors))
        if len(vectors) == MOST_VECTORS:
            break
    every = prod(comb(cap - least + number, number) for number in Counter(kinds.labels).values())
    return vectors, every - (least <= 1 <= cap) - (least == 0) - len(vectors)


def ladders(kinds: OriginalKinds, rounds: int) -> list[list[CopyVector]]:
    """2, 4, 8, .. copies up to the number of rounds: of one original of each kind, and of all of them.

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
    """Return the vectors that leave something out, with at most `cap` copies of the rest."""
    return [vector for vector in grid(kinds, cap, least=0)[0] if 0 in vector]


def neighbours(kinds: OriginalKinds, vector: CopyVector, factor: float) -> Iterator[CopyVector]:
    """Yield vectors with one number, or all, multiplied or divided by the factor (by at least one copy); not honesty.

    >>> list(neighbours(OriginalKinds((0, 0)), (4, 1), 2.0))
    [(8, 1), (2, 1), (4, 2), (8, 2), (2, 1)]
    """
    more = [max(number + 1, round(number * factor)) for number in vector]
    fewer = [max(1, min(number - 1, round(number / factor))) for number in vector]
    changed = [(*vector[:k], numbers[k], *vector[k + 1 :]) for k in range(len(vector)) for numbers in (more, fewer)]
    both = [tuple(more), tuple(fewer)] if len(vector) > 1 else []
    for near in (*changed, *both):
        if near not in (vector, kinds.honest):
            yield kinds.sorted(near)
