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

from cloneproof.errors import Refused
from cloneproof.serve.commit.commands import Command
from cloneproof.serve.commit.grouping import MOST_IN_A_GROUP, group_size, merge, split_reply
from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.commit.queue_waits import QueueWaits
from cloneproof.serve.storage.interface import Storage

MOST_WAITING: Final = 20_000
_TICK: Final = 1.0  # seconds between looks at wait windows where nobody asks for anything

log = logging.getLogger("cloneproof.serve")
Waiting = list[tuple[Command, "asyncio.Future[Any]"]]


def milliseconds() -> int:
    """The time of day, which may be set."""
    return time.time_ns() // 1_000_000


def steady_milliseconds() -> int:
    """A time that nobody can set."""
    return time.monotonic_ns() // 1_000_000


class Writer:
    """The one task that changes markets."""

    def __init__(
        self, storage: Storage, clock: Callable[[], int] | None = None, wall: Callable[[], int] | None = None
    ) -> None:
        self.storage, self._clock = storage, clock or steady_milliseconds
        self._wall = wall or clock or milliseconds
        self.markets = ServedMarkets.recover(storage)
        self.ready = True
        self.groups = self.commands = 0
        self.waits = QueueWaits()
        self._writing_thread = ThreadPoolExecutor(1, "storage")
        self._reading_thread = ThreadPoolExecutor(1, "reader")
        self._waiting: Waiting = []
        self._wake = asyncio.Event()
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
        self.waits.follow(getattr(command, "market", ""), future)
        self._waiting.append((command, future))
        self._wake.set()
        return future

    async def read(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Read from storage beside the writing."""
        return await asyncio.get_running_loop().run_in_executor(self._reading_thread, work)

    async def in_writing_thread(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Do something with the storage in the writing thread, between two of its steps."""
        return await asyncio.get_running_loop().run_in_executor(self._writing_thread, work)

    async def _tick(self) -> None:
        """Where nobody asks for anything, windows end all the same."""
        while True:
            await asyncio.sleep(_TICK)
            self._wake.set()

    def _set_time(self) -> int:
        """Have all markets follow the clocks; the time that commands are given."""
        now = self._clock()
        self.markets.follow(now, self._wall())
        return now

    def _overdue(self) -> bool:
        now = self._set_time()
        return any(market.overdue(now) for market in self.markets.by_name.values())

    async def _run(self) -> None:
        while not (self._stopping and not self._waiting):
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
                if not self._waiting and not self._overdue():
                    continue
            group = self._next_group()
            try:
                replies = await self._commit_group(group)
            except Exception as problem:
                _log_failure("storage failed; the markets are read back from it", problem)
                refusal = Refused(503, "storage", f"storage failed ({type(problem).__name__}); try again")
                group, self._waiting = group + self._waiting, []
                _send_replies(
                    group, [refusal] * len(group)
                )  # before the recovery, which may have to wait for the storage
                await self._recover()
            else:
                _send_replies(group, replies)

    def _next_group(self) -> Waiting:
        """Who has waited longest, until there are enough of them."""
        enough = group_size([command for command, _ in self._waiting[:MOST_IN_A_GROUP]])
        group, self._waiting = self._waiting[:enough], self._waiting[enough:]
        return group

    async def _commit_group(self, group: Waiting) -> list[Any]:
        """The replies to a group, after its commit."""
        commands = list(merge([command for command, _ in group]))
        known = await self._find_known([command for command, _ in commands])
        markets, storage, now = self.markets, self.storage, self._set_time()
        markets.expire(now, known)
        replies: list[Any] = [None] * len(group)
        for command, positions in commands:
            reply = _run(command, markets, known, now)
            for at, part in zip(positions, split_reply(reply, [group[at][0].size for at in positions]), strict=True):
                replies[at] = part
        appended = markets.take()
        if appended:
            await self.in_writing_thread(lambda: storage.commit(appended))
        self.groups += 1
        self.commands += len(group)
        if storage.checkpoint_due:
            await self.checkpoint()
        return replies

    async def _find_known(self, commands: Sequence[Command]) -> KnownEntries:
        """The old entries that commands need to see."""
        wanted: defaultdict[int, list[str]] = defaultdict(list)
        for command in commands:
            keys = command.wanted_keys(self.markets)
            if keys is not None:
                wanted[keys[0]].extend(keys[1])
        known: KnownEntries = defaultdict(dict)
        if wanted:
            known |= await self.in_writing_thread(lambda: self.storage.find(wanted))
        return known

    async def checkpoint(self) -> None:
        """Write snapshots, so that the next start is short."""
        snapshots = self.markets.take_snapshots()
        await self.in_writing_thread(lambda: self.storage.checkpoint(snapshots))

    async def _recover(self) -> None:
        self.ready = False
        while not (self.ready or self._stopping):
            try:
                recovered = await self.in_writing_thread(lambda: ServedMarkets.recover(self.storage))
                recovered.keep_time_of(self.markets)
                self.markets = recovered
                self.ready = True
            except Exception as problem:
                _log_failure("storage cannot be read; trying again", problem)
                await asyncio.sleep(_TICK)

    async def stop(self) -> None:
        """Finish what was asked, write snapshots, close the storage."""
        self._stopping = True
        self._wake.set()
        if self._task is not None and self._ticking is not None:
            await self._task
            self._ticking.cancel()
        if self.ready:
            try:
                await self.checkpoint()
            except Exception:
                log.exception("no last snapshots; the next start reads the ledger instead")
        self._writing_thread.shutdown()
        self._reading_thread.shutdown()
        self.storage.close()


def _log_failure(what: str, problem: Exception) -> None:
    """A database that is away is one line in the log; anything else is told with where it happened."""
    if isinstance(problem, Refused):
        log.warning("%s (%s)", what, problem)
    else:
        log.exception(what)


def _send_replies(group: Waiting, replies: Sequence[Any]) -> None:
    for (_, future), reply in zip(group, replies, strict=True):
        if future.cancelled():
            continue
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)


def _run(command: Command, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
    try:
        return command.run(markets, known, now)
    except Refused as refusal:
        return refusal
