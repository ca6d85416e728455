"""Whose turn it is: while a level explores, and while a commitment waits for late rewards.

Exploration is a heap of the candidates that are owed rounds. A waiting round is neutral: agents take turns in an order
that is drawn at the start, whoever is late, and inside an agent an arm is drawn uniformly from those registered. It
counts in no comparison. Averaged over which original has which mean it pays an agent the average of its means, whatever
copies are registered (docs/textbook/delays.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from cloneproof._randomness import uniform, word
from cloneproof.mechanisms.online.registration import Registration
from cloneproof.mechanisms.online.streams import NEUTRAL_STREAM
from cloneproof.mechanisms.rule import Order

WAIT: Final = -1


class ExplorationQueue:
    """Candidates that are owed rounds, in the order of exploration.

    `decided` are the rounds given to each candidate so far; the level that owns the list changes it, and then calls
    `advance`. `streams` has a random stream for each candidate, which orders it.
    """

    __slots__ = ("_decided", "_explore", "_order", "_streams", "ahead", "heap")

    def __init__(self, order: Order, explore: int, decided: Sequence[int], streams: Sequence[int]) -> None:
        self._order, self._explore, self._decided, self._streams = order, explore, decided, streams
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
        """The candidate whose turn it is."""
        return self.heap[0][2]

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

    def _count_ahead(self) -> None:
        """How many candidates are as far as the one at the front, each as likely as it to be next: `ahead`."""
        heap = self.heap
        if self._order == "round-robin":
            self.ahead = sum(entry[0] == heap[0][0] for entry in heap)
        elif self._order == "block":  # one that has begun goes on; else any of them may be the next
            self.ahead = 1 if any(self._decided[entry[2]] for entry in heap) else len(heap)
        else:
            self.ahead = min(1, len(heap))

    def _one_less_ahead(self) -> None:
        """The front has moved on: amortised constant, as a pass over all candidates ends in one new count."""
        if self._order == "round-robin" and self.ahead > 1:
            self.ahead -= 1
        else:
            self._count_ahead()


class NeutralRounds:
    """The turns of waiting rounds, and the draws of arms in them.

    shared   rounds that all agents shared in turn
    drawn    arms drawn so far, in shared rounds and in turns of an agent's own
    """

    __slots__ = ("_order", "_ranked", "_streams", "drawn", "shared")

    def __init__(self, registration: Registration, stream: int) -> None:
        base = word(stream, NEUTRAL_STREAM)
        self._streams = [word(base, key) for key in registration.agent_keys]
        self._order = sorted(range(len(self._streams)), key=self._streams.__getitem__)
        self._ranked = [sorted(range(len(keys)), key=keys.__getitem__) for keys in registration.arm_keys]
        self.shared = self.drawn = 0

    def turn(self) -> tuple[int, int, float]:
        """The agent and the arm of the next shared round, and the probability of the arm."""
        i = self._order[self.shared % len(self._order)]
        self.shared += 1
        arm, chance = self.arm(i)
        return i, arm, chance

    def arm(self, i: int) -> tuple[int, float]:
        """A uniform draw from the arms that agent i registered, and its probability."""
        ranked = self._ranked[i]
        self.drawn += 1
        return ranked[int(uniform(self._streams[i], self.drawn) * len(ranked))], 1 / len(ranked)

    def to_data(self) -> list[int]:
        """The state, from which `restore` goes on identically."""
        return [self.shared, self.drawn]

    def restore(self, data: Sequence[int]) -> None:
        """Take over a state made by `to_data`."""
        self.shared, self.drawn = data
