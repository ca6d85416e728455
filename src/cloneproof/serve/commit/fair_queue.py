"""Calls that wait, by market: each group has work of every market that waits, in equal shares, counted in items.

Fair queueing with two lists of markets, as in RFC 8290 (section 4.1): one that had nothing to do is served before those
that had, once, and then in turn with them. So a call waits for the shares of other markets, never for their queues. A
batch that is larger than a share is done in parts. What an item takes is measured, since one of a rule that looks at
thousands of arms is worth hundreds of others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final

from cloneproof.errors import Refused
from cloneproof.serve.commit.commands import Command

GROUP_SECONDS: Final = 0.015  # work in one group
SHARE_SECONDS: Final = 0.004  # of one market in it, while others wait
MOST_CALLS_IN_A_GROUP: Final = 512
MOST_ITEMS_WAITING: Final = 200_000  # of one market
MOST_CALLS_WAITING: Final = 20_000  # of all markets
_FIRST_GUESS: Final = 2e-4  # seconds an item, of a market that nothing is known about
_LEAST: Final = 5e-6  # seconds an item: storing it takes as much


class QueuedCall:
    """A command, who waits for its reply, and how much of it is done."""

    __slots__ = ("command", "done", "future", "replies", "size")

    def __init__(self, command: Command, future: asyncio.Future[Any]) -> None:
        self.command, self.future, self.size, self.done = command, future, command.size, 0
        self.replies: list[Any] | None = None  # of its parts so far

    def enter_reply(self, reply: Any) -> None:  # noqa: ANN401
        """A part is done and durable; with the last one the caller gets the reply."""
        if self.future.done():
            return
        if isinstance(reply, Exception):
            self.future.set_exception(reply)
        elif self.done < self.size:
            self.replies = [*(self.replies or ()), *reply]
        else:
            self.future.set_result(reply if self.replies is None else [*self.replies, *reply])


Group = list[tuple[QueuedCall, Command]]  # with the part of its command that is in this group


class Lane:
    """What waits for one market, in the order of arrival."""

    __slots__ = ("calls", "held", "items", "listed", "pace")

    def __init__(self) -> None:
        self.calls: deque[QueuedCall] = deque()
        self.items = 0
        self.listed = self.held = False
        self.pace: dict[type, float] = {}  # seconds an item

    def take(self, group: Group, seconds: float) -> float:
        """Move work of about so many seconds into the group, a first item in any case if it is empty; what is left."""
        while self.calls and len(group) < MOST_CALLS_IN_A_GROUP:
            call = self.calls[0]
            command = call.command
            pace = self.pace.get(type(command), _FIRST_GUESS)
            room, left = int(seconds / pace), call.size - call.done
            if room < 1 and group:
                break
            part, size = command, left
            if call.done or left > room:
                part = command.part(call.done, max(1, room))
                size = part.size
            group.append((call, part))
            call.done += size
            self.items -= size
            seconds -= pace * size
            if size < left:
                return 0.0
            self.calls.popleft()
        return seconds


class FairQueue:
    """The lanes of all markets; calls that are about no market have one of their own."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        self._new: deque[Lane] = deque()
        self._old: deque[Lane] = deque()
        self.calls = 0

    def __bool__(self) -> bool:
        return any(lane.calls and not lane.held for lane in (*self._new, *self._old))

    def put(self, command: Command, future: asyncio.Future[Any]) -> None:
        """Let a command wait, or refuse it where its market has too much waiting."""
        lane = self._lanes.get(command.market)
        if lane is None:
            lane = self._lanes[command.market] = Lane()
        call = QueuedCall(command, future)
        if lane.items and lane.items + call.size > MOST_ITEMS_WAITING:
            raise Refused(503, "overloaded", "too much is waiting for this market; try again a little later")
        if self.calls >= MOST_CALLS_WAITING:
            raise Refused(503, "overloaded", "too many calls are waiting; try again a little later")
        lane.calls.append(call)
        lane.items += call.size
        self.calls += 1
        if not lane.listed:
            lane.listed = True
            self._new.append(lane)

    def next_group(self) -> Group:
        """The work of the next commit: of each market a share, new ones first; at least one item if there is any."""
        group: Group = []
        seconds, held = GROUP_SECONDS, list[Lane]()
        share = SHARE_SECONDS if len(self._new) + len(self._old) > 1 else GROUP_SECONDS
        for _ in range(len(self._new) + len(self._old)):
            lane = (self._new or self._old).popleft()
            if lane.held:
                held.append(lane)
            elif not lane.calls:
                lane.listed = False
            else:
                before = len(group)
                mine = min(share, seconds)
                seconds -= mine - lane.take(group, mine)
                if len(group) == before:  # its next item does not fit in any more
                    self._old.appendleft(lane)
                    break
                self._old.append(lane)
        self._old.extend(held)
        self.calls -= sum([call.done >= call.size for call, _ in group])
        self._drop_idle()
        return group

    def put_back(self, parts: Sequence[tuple[QueuedCall, int]]) -> None:
        """So many items of these calls have no reply yet: they go before everything else that waits for its market."""
        for call, items in reversed(parts):
            lane = self._lanes.setdefault(call.command.market, Lane())
            if not lane.calls or lane.calls[0] is not call:
                lane.calls.appendleft(call)
                self.calls += 1
            call.done -= items
            lane.items += items
            if not lane.listed:
                lane.listed = True
                self._old.append(lane)

    def note(self, command: Command, seconds: float, items: int) -> None:
        """What a command took for so many items: so the next share of its market is measured."""
        lane = self._lanes.get(command.market)
        if lane is not None:
            pace, before = max(_LEAST, seconds / max(1, items)), lane.pace.get(type(command))
            lane.pace[type(command)] = pace if before is None else 0.5 * (before + pace)

    def hold(self, market: str) -> None:
        """Do nothing for a market until it is released; its calls wait."""
        lane = self._lanes.setdefault(market, Lane())
        lane.held = True

    def release(self, market: str) -> None:
        """Go on with a market."""
        self._lanes[market].held = False

    def release_all(self) -> None:
        """Go on with all of them."""
        for lane in self._lanes.values():
            lane.held = False

    def begins_with(self, market: str, kind: type) -> bool:
        """Whether the next command for a market is of this kind."""
        lane = self._lanes.get(market)
        return lane is not None and bool(lane.calls) and isinstance(lane.calls[0].command, kind)

    def put_first(self, command: Command, future: asyncio.Future[Any]) -> None:
        """Let a command go before everything else that waits for its market."""
        call = QueuedCall(command, future)
        call.done = call.size
        self.put_back([(call, call.size)])

    def drain(self) -> Iterator[QueuedCall]:
        """Everything that waits, taken out."""
        for lane in self._lanes.values():
            yield from lane.calls
            lane.calls.clear()
            lane.items = 0
        self.calls = 0

    def _drop_idle(self) -> None:
        """Lanes of names that nobody waits for are dropped in time: names are the callers' to choose."""
        if len(self._lanes) > 10_000:
            self._lanes = {name: lane for name, lane in self._lanes.items() if lane.listed or lane.held}
