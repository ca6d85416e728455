"""Slots of all agents side by side until the end: the one of lowest rank is played, and ranks never fall.

A rank follows from the slot's own rewards alone: minus the lowest index that it has had, or how often its balance has
been used up (`Slots.bars`). Ties follow an order of all slots that is drawn once and hidden, in which slots of agents
that join come last: if newcomers came first, waiting would pay (docs/textbook/seasons.md). As ranks never fall, a heap
whose entries are brought up to date only at its front finds the slot to play.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from typing import Any

from cloneproof._randomness import MASK, Stream, substream, uniform, word
from cloneproof._schedules import next_update
from cloneproof.mechanisms.online.levels import Level
from cloneproof.mechanisms.online.registration import nobody_left
from cloneproof.mechanisms.online.streams import COIN_STREAM, EXPLORE_STREAM, TIE_STREAM
from cloneproof.mechanisms.rule import PriorityInputs, Rule


class FallingLevel(Level):
    """Slots by rank, ties in the drawn order.

    rank      of each slot
    order     its place among slots of one rank

    A kind of level says what a new slot starts with (`_open`), and raises ranks as rewards come (`add`).
    """

    __slots__ = ("_heap", "order", "rank")

    def __init__(self, rule: Rule, explore: int, stream: Stream, keys: Sequence[int]) -> None:
        super().__init__(rule, explore, stream, keys)
        self.rank: list[float] = []
        self.order = [word(self._streams[TIE_STREAM], key) for key in keys]
        self._open(keys)
        self._queue_anew()

    def _open(self, keys: Sequence[int]) -> None:
        raise NotImplementedError(type(self).__name__)

    def _queue_anew(self) -> None:
        self._heap = [(self.rank[k], self.order[k], k) for k in self.left]
        heapq.heapify(self._heap)

    def extend(self, keys: Sequence[int]) -> None:
        """Go on with further slots."""
        count, more = len(self.keys), len(keys)
        self.keys, self.left = [*self.keys, *keys], [*self.left, *range(count, count + more)]
        for numbers in (self.decided, self.judged, self.arrived, self.total):
            numbers.extend([0] * more)
        self.means += [0.0] * more
        self.order += self.last_places(count, more)
        self._orders += [substream(self._streams[EXPLORE_STREAM], key) for key in keys]
        self._explore_anew()
        self._open(keys)
        self._queue_anew()

    @staticmethod
    def last_places(count: int, more: int) -> Sequence[int]:
        """Return places after those of all slots so far in the order that breaks ties."""
        return range(MASK + 1 + count, MASK + 1 + count + more)

    def leave_out(self, gone: Collection[int]) -> None:
        super().leave_out(gone)
        self._queue_anew()

    def _best(self, clock: int) -> int:
        heap, rank = self._heap, self.rank
        if not heap:
            raise nobody_left()
        while heap[0][0] != rank[k := heap[0][2]]:
            heapq.heapreplace(heap, (rank[k], self.order[k], k))
        self.chance = None  # the order is hidden
        return k


class IndexLevel(FallingLevel):
    """Slots ranked by the lowest index that each has had; `look` is the number of rewards at its next update."""

    __slots__ = ("look",)

    def __init__(self, rule: Rule, explore: int, stream: Stream, keys: Sequence[int]) -> None:
        self.look: list[int] = []
        super().__init__(rule, explore, stream, keys)

    def _open(self, keys: Sequence[int]) -> None:
        self.rank += [-math.inf] * len(keys)
        self.look += [next_update(0)] * len(keys)

    def add(self, k: int, ticks: int) -> None:
        """Enter a reward, and update the slot's index if it is due."""
        super().add(k, ticks)
        if self.arrived[k] == self.look[k]:
            self.look[k] = next_update(self.arrived[k])
            inputs = PriorityInputs(0, -math.inf, self.arrived[k], self.means[k], 0.5, 0.5, len(self.keys))
            self.rank[k] = max(self.rank[k], -self.rule.priority(inputs, *self.rule.parameters))

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"lowest": [None if rank == -math.inf else -rank for rank in self.rank]}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.rank = [-math.inf if low is None else -low for low in state["lowest"]]
        self.look = [next_update(0)] * len(self.keys)
        for k, arrived in enumerate(self.arrived):
            while self.look[k] <= arrived:
                self.look[k] = next_update(self.look[k])
        self._queue_anew()


class BarsLevel(FallingLevel):
    """Slots ranked by how often each has failed; `balance` has the points that it has left.

    A view costs its point, and a click earns its points, when the reward is in. So while rewards are missing a slot is
    shown on, and each further reward counts towards the attempt that runs when it arrives.
    """

    __slots__ = ("_coins", "balance")
    lists = (*Level.lists, "rank", "balance")

    def __init__(self, rule: Rule, explore: int, stream: Stream, keys: Sequence[int]) -> None:
        self.balance: list[int] = []
        self._coins: list[Stream] = []
        super().__init__(rule, explore, stream, keys)

    def _open(self, keys: Sequence[int]) -> None:
        self.rank += [0] * len(keys)
        self.balance += [self.rule.slots.bars[0].stake] * len(keys)
        self._coins += [substream(self._streams[COIN_STREAM], key) for key in keys]

    def _best(self, clock: int) -> int:
        k = super()._best(clock)
        self.chance = 1.0 if self.decided[k] else None  # which slots follow each other is known once they were played
        return k

    def sure_rounds(self, k: int) -> float:
        return max(0, self.balance[k] - self.decided[k] + self.arrived[k])

    def repeat(self, k: int, times: int) -> None:
        super().repeat(k, times)
        self.judged[k] += times
        self.missing += times

    def add(self, k: int, ticks: int) -> None:
        """Enter a reward; a slot without points has failed once more, and starts with the stake of the next bar."""
        super().add(k, ticks)
        bars, failures = self.rule.slots.bars, int(self.rank[k])
        left = self.balance[k] - 1
        if ticks:
            bar = bars[min(failures, len(bars) - 1)]
            left += bar.whole + (bar.part > 0 and uniform(self._coins[k], self.arrived[k] - 1) < bar.part)
        if not left:
            self.rank[k] = failures + 1
            left = bars[min(failures + 1, len(bars) - 1)].stake
        self.balance[k] = left

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._queue_anew()
