"""Waiting calls by market: each group takes an equal share of items from the markets in turn.

A market that had no waiting calls is served first once, and then in turn with the others (as in RFC 8290, section 4.1).
So a call waits for the shares of other markets, never for their whole queues. What a group leaves unfinished, such as
the rest of a long batch, is put back before all other calls of its market.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

from cloneproof.errors import Refused
from cloneproof.serve.writer.commands import Command, Unfinished

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


@dataclass(frozen=True, slots=True)
class Capacity:
    """Limits of how much a group takes, and how much may wait."""

    group_items: int = 3000
    share_items: int = 750  # of one market in a group, while others wait
    group_calls: int = 512
    waiting_items: int = 200_000  # of one market
    waiting_calls: int = 20_000  # of all markets
    lanes: int = 10_000  # that are kept although nothing waits in them, since callers choose the names


class QueuedCall:
    """What is left of a command, the last reply to that, the replies to items before it, and the future of all."""

    __slots__ = ("command", "future", "replies", "reply")

    def __init__(self, command: Command, future: asyncio.Future[Any]) -> None:
        self.command, self.future = command, future
        self.replies: list[Any] = []
        self.reply: Any = Unfinished()

    def send(self) -> None:
        """Send the reply, if the command is done; else keep what there is of it."""
        if isinstance(self.reply, Unfinished):
            self.replies += self.reply.replies
            self.command = self.command.rest(len(self.reply.replies))
        elif self.future.done():
            return
        elif isinstance(self.reply, Exception):
            self.future.set_exception(self.reply)
        else:
            self.future.set_result([*self.replies, *self.reply] if self.replies else self.reply)


class Lane:
    """Waiting calls of one market, in the order of arrival."""

    __slots__ = ("calls", "held", "items", "listed")

    def __init__(self) -> None:
        self.calls: deque[QueuedCall] = deque()
        self.items = 0
        self.listed = self.held = False

    def take(self, group: list[QueuedCall], room: int, most_calls: int) -> int:
        """Move calls into the group until they have so many items or more, and return how many."""
        taken = 0
        while self.calls and taken < room and len(group) < most_calls:
            call = self.calls.popleft()
            group.append(call)
            taken += call.command.size
        self.items -= taken
        return taken


class RoundRobin:
    """Lanes of all markets; calls that concern no market have their own."""

    def __init__(self, capacity: Capacity | None = None) -> None:
        self._capacity = capacity or Capacity()
        self._lanes: dict[str, Lane] = {}
        self._round: deque[Lane] = deque()  # the next to be served first
        self.calls = 0

    def __bool__(self) -> bool:
        return any(lane.calls and not lane.held for lane in self._round)

    def put(self, command: Command, future: asyncio.Future[Any]) -> None:
        """Queue a command, or refuse it if too much is waiting."""
        lane = self._lanes.setdefault(command.market, Lane())
        if lane.items and lane.items + command.size > self._capacity.waiting_items:
            raise Refused(503, "overloaded", "too much is waiting for this market; try again a little later")
        if self.calls >= self._capacity.waiting_calls:
            raise Refused(503, "overloaded", "too many calls are waiting; try again a little later")
        lane.calls.append(QueuedCall(command, future))
        lane.items += command.size
        self.calls += 1
        if not lane.listed:
            lane.listed = True
            self._round.appendleft(lane)

    def next_group(self) -> list[QueuedCall]:
        """Return the calls of the next transaction: a share of each market, as long as there is room."""
        group: list[QueuedCall] = []
        most = self._capacity
        room, share = most.group_items, most.share_items if len(self._round) > 1 else most.group_items
        for _ in range(len(self._round)):
            # Each lane is looked at once and goes to the end of the round, so the next group begins where this one ran
            # out of room. An empty lane leaves the round, and comes back at its front with its next call. A held lane
            # stays in the round without giving anything.
            if room <= 0 or len(group) >= most.group_calls:
                break
            lane = self._round.popleft()
            lane.listed = bool(lane.calls) or lane.held
            if lane.listed:
                self._round.append(lane)
                room -= 0 if lane.held else lane.take(group, min(share, room), most.group_calls)
        self.calls -= len(group)
        if len(self._lanes) > most.lanes:
            self._lanes = {name: lane for name, lane in self._lanes.items() if lane.listed or lane.held}
        return group

    def put_back(self, group: Sequence[QueuedCall]) -> set[str]:
        """Put back the calls that a group has left unfinished, before all others of their markets; these' names."""
        left = [call for call in group if isinstance(call.reply, Unfinished)]
        markets_first = {call.command.market for call in left if call.reply.market_first}
        for call in reversed(left):
            # From the last call to the first, each at the front of its lane, so that they keep their order. The lanes
            # of markets that got no time go to the front of the round, so that the next group begins with them.
            lane = self._lanes.setdefault(call.command.market, Lane())
            lane.calls.appendleft(call)
            lane.items += call.command.size
            self.calls += 1
            if call.command.market in markets_first and lane.listed:
                self._round.remove(lane)
                self._round.appendleft(lane)
            elif not lane.listed:
                lane.listed = True
                self._round.append(lane)
        return {call.command.market for call in left}

    def hold(self, market: str) -> None:
        """Let the calls of a market wait until it is released."""
        self._lanes.setdefault(market, Lane()).held = True

    def release(self, market: str) -> None:
        self._lanes.setdefault(market, Lane()).held = False

    def release_all(self) -> None:
        for lane in self._lanes.values():
            lane.held = False

    def begins_with(self, market: str, kind: type) -> bool:
        """Whether the next command for a market is of this kind."""
        lane = self._lanes.get(market)
        return lane is not None and bool(lane.calls) and isinstance(lane.calls[0].command, kind)

    def put_first(self, command: Command, future: asyncio.Future[Any]) -> None:
        """Queue a command before all other calls of its market."""
        self.put_back([QueuedCall(command, future)])

    def drain(self) -> Iterator[QueuedCall]:
        """Remove and return all waiting calls."""
        for lane in self._lanes.values():
            yield from lane.calls
            lane.calls.clear()
            lane.items = 0
        self.calls = 0


class QueueWaits:
    """Metrics of calls by market: how many are pending, and how long they take up to their commit."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        depth = Gauge(
            "cloneproof_queue_depth", "Calls of a market that have no reply yet.", ["market"], registry=self.registry
        )
        seconds = Histogram(
            "cloneproof_queue_seconds",
            "From a call's turn to wait until its commit.",
            ["market"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._of = cache(lambda market: (depth.labels(market), seconds.labels(market)))

    def follow(self, market: str, future: asyncio.Future[Any]) -> None:
        """Count a call until its future is done; `market` is empty for calls that concern none."""
        depth, seconds = self._of(market)
        depth.inc()
        future.add_done_callback(partial(self._done, depth, seconds, time.perf_counter()))

    @staticmethod
    def _done(depth: Gauge, seconds: Histogram, begun: float, future: asyncio.Future[Any]) -> None:
        depth.dec()
        seconds.observe(time.perf_counter() - begun)
