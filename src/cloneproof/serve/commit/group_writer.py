"""Group commit: gather what has been asked, do it, make it durable in one transaction, then reply to all.

Everything that changes a market happens here, in one task, so there is nothing to lock. While storage writes in its own
thread, the next group gathers. If storage fails, nothing of the group was acknowledged: everybody in it gets an error
that says to try again, and the markets are read back from storage.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from cloneproof.serve.commit.commands import Command
from cloneproof.serve.commit.grouping import MOST_IN_A_GROUP, group_size, merged, parts
from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.ledger.terms import Refused
from cloneproof.serve.storage.interface import Storage

MOST_WAITING: Final = 20_000
_TICK: Final = 1.0  # seconds between looks at wait windows where nobody asks for anything

log = logging.getLogger("cloneproof.serve")
Waiting = list[tuple[Command, "asyncio.Future[Any]"]]


def milliseconds() -> int:
    """The time of the ledger."""
    return time.time_ns() // 1_000_000


class Writer:
    """The one task that changes markets."""

    def __init__(self, storage: Storage, clock: Callable[[], int] = milliseconds) -> None:
        self.storage, self._clock = storage, clock
        self.house = ServedMarkets.recovered(storage)
        self.ready = True
        self.groups = self.commands = 0
        self._thread = ThreadPoolExecutor(1, "storage")
        self._reader = ThreadPoolExecutor(1, "reader")
        self._waiting: Waiting = []
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to work, in the running event loop."""
        loop = asyncio.get_running_loop()
        self._task, self._ticking = loop.create_task(self._run()), loop.create_task(self._tick())

    def submit(self, command: Command) -> asyncio.Future[Any]:
        """Have a command done; its reply comes after the commit."""
        if self._stopping or not self.ready:
            raise Refused(503, "unavailable", "the service is starting, stopping or its storage failed; try again")
        if len(self._waiting) >= MOST_WAITING:
            raise Refused(503, "overloaded", "too many calls are waiting; try again a little later")
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((command, future))
        self._bell.set()
        return future

    async def read(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Read from storage beside the writing."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, work)

    async def in_turn(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Do something with the storage in the writing thread, between two of its steps."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _tick(self) -> None:
        """Where nobody asks for anything, windows end all the same."""
        while True:
            await asyncio.sleep(_TICK)
            self._bell.set()

    def _overdue(self) -> bool:
        now = self._clock()
        return any(market.overdue(now) for market in self.house.markets.values())

    async def _run(self) -> None:
        while not (self._stopping and not self._waiting):
            if not self._waiting:
                self._bell.clear()
                await self._bell.wait()
                if not self._waiting and not self._overdue():
                    continue
            group = self._next_group()
            try:
                replies = await self._done(group)
            except Exception as problem:
                _tell("storage failed; the markets are read back from it", problem)
                refusal = Refused(503, "storage", f"storage failed ({type(problem).__name__}); try again")
                group, self._waiting = group + self._waiting, []
                _answer(group, [refusal] * len(group))  # before the recovery, which may have to wait for the storage
                await self._recover()
            else:
                _answer(group, replies)

    def _next_group(self) -> Waiting:
        """Who has waited longest, until there are enough of them."""
        enough = group_size([command for command, _ in self._waiting[:MOST_IN_A_GROUP]])
        group, self._waiting = self._waiting[:enough], self._waiting[enough:]
        return group

    async def _done(self, group: Waiting) -> list[Any]:
        """The replies to a group, after its commit."""
        commands = list(merged([command for command, _ in group]))
        known = await self._known([command for command, _ in commands])
        house, storage, now = self.house, self.storage, self._clock()
        house.expire(now, known)
        replies: list[Any] = [None] * len(group)
        for command, positions in commands:
            reply = _reply(command, house, known, now)
            for at, part in zip(positions, parts(reply, [group[at][0].size for at in positions]), strict=True):
                replies[at] = part
        appended = house.take()
        if appended:
            await self.in_turn(lambda: storage.commit(appended))
        self.groups += 1
        self.commands += len(group)
        if storage.checkpoint_due:
            await self.checkpoint()
        return replies

    async def _known(self, commands: Sequence[Command]) -> KnownEntries:
        """The old entries that commands need to see."""
        wanted: defaultdict[int, list[str]] = defaultdict(list)
        for command in commands:
            asked = command.wanted(self.house)
            if asked is not None:
                wanted[asked[0]].extend(asked[1])
        known: KnownEntries = defaultdict(dict)
        if wanted:
            known |= await self.in_turn(lambda: self.storage.find(wanted))
        return known

    async def checkpoint(self) -> None:
        """Write snapshots, so that the next start is short."""
        snapshots = self.house.snapshots()
        await self.in_turn(lambda: self.storage.checkpoint(snapshots))

    async def _recover(self) -> None:
        self.ready = False
        while not (self.ready or self._stopping):
            try:
                self.house = await self.in_turn(lambda: ServedMarkets.recovered(self.storage))
                self.ready = True
            except Exception as problem:
                _tell("storage cannot be read; trying again", problem)
                await asyncio.sleep(_TICK)

    async def stop(self) -> None:
        """Finish what was asked, write snapshots, let go of storage."""
        self._stopping = True
        self._bell.set()
        if self._task is not None and self._ticking is not None:
            await self._task
            self._ticking.cancel()
        if self.ready:
            try:
                await self.checkpoint()
            except Exception:
                log.exception("no last snapshots; the next start reads the ledger instead")
        self._thread.shutdown()
        self._reader.shutdown()
        self.storage.close()


def _tell(what: str, problem: Exception) -> None:
    """A database that is away is one line in the log; anything else is told with where it happened."""
    if isinstance(problem, Refused):
        log.warning("%s (%s)", what, problem)
    else:
        log.exception(what)


def _answer(group: Waiting, replies: Sequence[Any]) -> None:
    for (_, future), reply in zip(group, replies, strict=True):
        if future.cancelled():
            continue
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)


def _reply(command: Command, house: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
    try:
        return command.run(house, known, now)
    except Refused as refusal:
        return refusal
