"""Whose turn it is while a level explores, and how many candidates may be next.

A heap of the candidates that are owed rounds. One that cannot use a round now is parked: taken off the heap when it
comes to the front, and until then counted as `stale`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Final

from cloneproof._randomness import word
from cloneproof.mechanisms.rule import Order

WAIT: Final = -1


class ExplorationQueue:
    """Candidates that are owed rounds, in the order of exploration.

    `decided` are the rounds given to each candidate so far; the level that owns the list changes it, and then calls
    `advance`. `streams` has a random stream for each candidate, which orders it.
    """

    __slots__ = ("_decided", "_explore", "_order", "_stale", "_streams", "ahead", "heap", "parked")

    def __init__(self, order: Order, explore: int, decided: Sequence[int], streams: Sequence[int]) -> None:
        self._order, self._explore, self._decided, self._streams = order, explore, decided, streams
        self.parked: set[int] = set()
        self._stale: set[int] = set()  # parked, and still in the heap
        self.heap = [self._entry(k) for k in range(len(decided)) if decided[k] < explore]
        heapq.heapify(self.heap)
        self._count_ahead()

    def _entry(self, k: int) -> tuple[int, int, int]:
        """What sorts candidate k in the heap."""
        if self._order == "round-robin":
            return self._decided[k], word(self._streams[k], self._decided[k]), k
        if self._order == "block":
            return 0, word(self._streams[k], 0), k
        return k, 0, k

    def front(self) -> int:
        """The candidate whose turn it is, or WAIT where all that are owed rounds are parked."""
        if self._stale:
            self._drop_stale()
        return self.heap[0][2] if self.heap else WAIT

    def advance(self, k: int) -> None:
        """Candidate k was given a round; `decided` has it."""
        heap = self.heap
        if heap[0][2] != k:
            return
        if self._decided[k] >= self._explore:
            heapq.heappop(heap)
            self._one_less_ahead()
        elif self._order == "round-robin":
            heapq.heapreplace(heap, self._entry(k))
            self._one_less_ahead()
        elif self._decided[k] == 1:
            self._count_ahead()

    def park(self, k: int) -> None:
        """Set a candidate aside that cannot use a round now; no-op where it is owed none."""
        if self._decided[k] < self._explore:
            self._drop_stale()
            fewest = self.heap[0][0]
            self.parked.add(k)
            self._stale.add(k)
            if self._order != "round-robin" or self._decided[k] == fewest:
                self._one_less_ahead()

    def release(self, k: int) -> None:
        """Queue a parked candidate again."""
        if k not in self.parked:
            return
        self._drop_stale()
        fewest = self.heap[0][0] if self.heap else math.inf
        self.parked.discard(k)
        if k in self._stale:
            self._stale.discard(k)
        else:
            heapq.heappush(self.heap, self._entry(k))
        if self._order != "round-robin" or self._decided[k] < fewest:
            self._count_ahead()
        elif self._decided[k] == fewest:
            self.ahead += 1

    def _count_ahead(self) -> None:
        """How many candidates are as far as the one at the front, each as likely as it to be next: `ahead`."""
        self._drop_stale()
        heap, stale = self.heap, self._stale
        if self._order == "round-robin":
            self.ahead = sum(entry[0] == heap[0][0] and entry[2] not in stale for entry in heap)
        elif self._order == "block":  # one that has begun goes on; else any of them may be the next
            begun = any(self._decided[entry[2]] and entry[2] not in stale for entry in heap)
            self.ahead = 1 if begun else len(heap) - len(stale)
        else:
            self.ahead = min(1, len(heap))

    def _one_less_ahead(self) -> None:
        """The front has moved on: amortised constant, as a pass over all candidates ends in one new count."""
        if self._order == "round-robin" and self.ahead > 1:
            self.ahead -= 1
        else:
            self._count_ahead()

    def _drop_stale(self) -> None:
        """Take parked candidates off the front of the heap; further back they do no harm, and may come back first."""
        while self.heap and self.heap[0][2] in self._stale:
            self._stale.discard(heapq.heappop(self.heap)[2])
