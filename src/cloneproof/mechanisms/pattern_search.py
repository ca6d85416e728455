"""One pattern search for all tuners: from a point to better neighbours, in ever smaller steps.

Costs are remembered, and work is counted rather than timed, so that one market has one answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, Literal, TypeVar

Candidate = TypeVar("Candidate", bound=Hashable)
Step = TypeVar("Step")


def halved(step: float, finest: float) -> Iterator[float]:
    """Yield steps of half the length each, as long as they are longer than the finest.

    >>> list(halved(0.8, 0.1))
    [0.8, 0.4, 0.2]
    """
    while step > finest:
        yield step
        step /= 2


class PatternSearch(Generic[Candidate]):
    """A search for a point of low `cost`, which is computed once for each point.

    work, most   what one evaluation counts for, and how much may be spent
    gain, least  a point is better if its cost is lower by more than this part of it and this much

    >>> search = PatternSearch(lambda x: (x - 5) ** 2)
    >>> search.descend(0, lambda x, step: [x + step, x - step], [4, 2, 1])
    5
    """

    def __init__(
        self,
        cost: Callable[[Candidate], float],
        work: Callable[[Candidate], float] = lambda _: 1.0,
        most: float = math.inf,
        gain: float = 0.0,
        least: float = 0.0,
    ) -> None:
        self._cost, self._work, self.most = cost, work, most
        self._gain, self._least = gain, least
        self.done, self.known = 0.0, dict[Candidate, float]()

    @property
    def over(self) -> bool:
        """Whether the work is done."""
        return self.done >= self.most

    def cost(self, point: Candidate) -> float:
        """Return the cost, computed once."""
        if point not in self.known:
            self.known[point] = self._cost(point)
            self.done += self._work(point)
        return self.known[point]

    def best_of(self, points: Sequence[Candidate]) -> Candidate:
        """Return the point of lowest cost, of those evaluated before the search is over."""
        tried = [*points[:1]]
        for point in points[1:]:
            if not self.over:
                tried.append(point)
                self.cost(point)
        return min(tried, key=self.cost)

    def descend(
        self,
        point: Candidate,
        neighbours: Callable[[Candidate, Step], Sequence[Candidate]],
        steps: Iterable[Step],
        choose: Literal["first", "turns", "best"] = "first",
    ) -> Candidate:
        """Move to better neighbours with one step after the other, each until none helps.

        `neighbours` has one for each direction. The search moves to the first that is better, a direction that has
        helped being tried again first, and then ("first") the others as before or ("turns") those that follow it; or to
        the best of all neighbours ("best").
        """
        order: list[int] = []
        for step in steps:
            moved = True
            while moved and not self.over:
                near, moved, now = neighbours(point, step), False, self.cost(point)
                order = order or [*range(len(near))]
                if choose == "best":
                    order = [min(range(len(near)), key=[self.cost(neighbour) for neighbour in near].__getitem__)]
                for place, direction in enumerate(order):
                    if self.over and choose != "best":
                        return point
                    if self.cost(near[direction]) < now - self._gain * abs(now) - self._least:
                        point, moved = near[direction], True
                        before, after = order[:place], order[place + 1 :]
                        order = [direction, *after, *before] if choose == "turns" else [direction, *before, *after]
                        break
        return point
