"""Group commit: gather what has been asked, do it, make it durable in one transaction, then reply to all.

Everything that changes a market happens here, in one task, so there is nothing to lock. While storage writes in its own
thread, the next group gathers. If storage fails, nothing of the group was acknowledged: everybody in it gets an error
that says to try again, and the markets are read back from storage. A command that fails by a fault of the service gets
an answer of 500 alone: its market is read back beside the others, and its other calls wait for that.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.commit.checkpoints import CheckpointInTheMaking
from cloneproof.serve.commit.commands import LATER, Command
from cloneproof.serve.commit.fair_queue import GROUP_SECONDS, FairQueue, Group, QueuedCall
from cloneproof.serve.commit.grouping import merge, split_reply
from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.commit.queue_waits import QueueWaits
from cloneproof.serve.commit.reread import follow
from cloneproof.serve.commit.settle import Settle
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.storage.interface import Storage

_MOST_ASIDE: Final = 100  # long pieces of work that wait for their thread
_PAGE: Final = 1000  # lines that are read back at a time
_TICK: Final = 1.0  # seconds between looks at wait windows where nobody asks for anything

log = logging.getLogger("cloneproof.serve")


def milliseconds() -> int:
    """The time of day, which may be set."""
    return time.time_ns() // 1_000_000


def steady_milliseconds() -> int:
    """A time that nobody can set."""
    return time.monotonic_ns() // 1_000_000


class Writer:
    """The one task that changes markets."""

    def __init__(
        self,
        storage: Storage,
        clock: Callable[[], int] | None = None,
        wall: Callable[[], int] | None = None,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.storage, self._clock, self._stopwatch = storage, clock or steady_milliseconds, stopwatch
        self._wall = wall or clock or milliseconds
        self.markets = ServedMarkets.recover(storage)
        self.ready = True
        self.groups = self.commands = 0
        self.waits = QueueWaits()
        self._writing_thread = ThreadPoolExecutor(1, "storage")
        self._reading_thread = ThreadPoolExecutor(1, "reader")
        self._aside_thread = ThreadPoolExecutor(1, "aside")
        self._market_thread = ThreadPoolExecutor(1, "market")  # what a market waits for, and not behind other callers
        self._aside = 0
        self._queue = FairQueue()
        self._expiring = False  # whether more windows are over than were seen to
        self._rereading: set[asyncio.Task[None]] = set()
        self._reread: list[tuple[ServedMarkets, str, MarketEngine]] = []
        self._checkpoint: CheckpointInTheMaking | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin to work, in the running event loop."""
        loop = asyncio.get_running_loop()
        self._task, self._ticking = loop.create_task(self._run()), loop.create_task(self._tick())
        self._finish_settlements(self.markets.by_name)

    def submit(self, command: Command) -> asyncio.Future[Any]:
        """Have a command done; its reply comes after the commit."""
        if self._stopping or not self.ready:
            raise Refused(503, "unavailable", "the service is starting, stopping or its storage failed; try again")
        future = asyncio.get_running_loop().create_future()
        self._queue.put(command, future)
        self.waits.follow(command.market if command.market in self.markets.by_name else "", future)
        self._wake.set()
        return future

    async def aside(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Do something that takes long and changes nothing, in a thread of its own."""
        if self._aside >= _MOST_ASIDE:
            raise Refused(503, "overloaded", "too much long work is waiting; try again a little later")
        self._aside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._aside_thread, work)
        finally:
            self._aside -= 1

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
        while not (self._stopping and not self._queue and not (self._checkpoint and self._checkpoint.working)):
            self._between_groups()
            if not (self._queue or self._expiring or self._checkpoint_is_complete):
                self._wake.clear()
                await self._wake.wait()
                self._between_groups()
                if not self._queue and not self._overdue():
                    continue
            group = self._queue.next_group()
            try:
                replies = await self._commit_group(group)
            except Exception as problem:
                _log_failure("storage failed; the markets are read back from it", problem)
                refusal = Refused(503, "storage", f"storage failed ({type(problem).__name__}); try again")
                for call in [*(call for call, _ in group), *self._queue.drain()]:
                    call.enter_reply(refusal)  # before the recovery, which may have to wait for the storage
                await self._recover()
            else:
                self._send_replies(group, replies)

    def _send_replies(self, group: Group, replies: Sequence[Any]) -> None:
        """Replies to what is done and durable; what has none, or not to all its items, waits for the next group."""
        unfinished: list[tuple[QueuedCall, int]] = []
        done: list[tuple[QueuedCall, Any]] = []
        for (call, part), reply in zip(group, replies, strict=True):
            if reply is LATER:
                unfinished.append((call, part.size))
                continue
            if type(reply) is list and len(reply) < part.size:
                unfinished.append((call, part.size - len(reply)))
            done.append((call, reply))
        self._queue.put_back(unfinished)
        for call, reply in done:
            call.enter_reply(reply)
        self._finish_settlements({call.command.market for call, _ in unfinished})

    async def _commit_group(self, group: Group) -> list[Any]:
        """The replies to a group, after its commit."""
        commands = list(merge([part for _, part in group]))
        known = await self._find_known([command for command, _ in commands])
        markets, storage, now = self.markets, self.storage, self._set_time()
        later = markets.expire(now, known)  # these have their windows ended first
        self._expiring = bool(later)
        replies, faulty = list[Any]([None] * len(group)), set[str]()
        for command, positions in commands:
            reply = LATER
            if command.market not in later:
                reply = self._do(command, known, now)
            if isinstance(reply, _Fault) and command.market in markets.by_name:
                faulty.add(command.market)
            if reply is LATER or command.market in faulty:
                later.add(command.market)
            for at, part in zip(positions, split_reply(reply, [group[at][1].size for at in positions]), strict=True):
                replies[at] = part
        if faulty:
            self._read_back_later(faulty)
            replies = [
                LATER if part.market in faulty and not isinstance(reply, _Fault) else reply
                for (_, part), reply in zip(group, replies, strict=True)
            ]
        appended = markets.take()
        if appended:
            await self.in_writing_thread(lambda: storage.commit(appended))
        self.groups += 1
        self.commands += len(group)
        if self._checkpoint is not None and self._checkpoint.complete:
            snapshots, self._checkpoint = self._checkpoint.snapshots, None
            await self.in_writing_thread(lambda: storage.checkpoint(snapshots))
        elif self._checkpoint is None and storage.checkpoint_due:
            self._checkpoint = CheckpointInTheMaking(markets, storage)
        return replies

    def _do(self, command: Command, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        """The reply of a command; while its market is being settled, by whichever process, only that goes on."""
        market = self.markets.by_name.get(command.market)
        if market is not None and market.settling and not isinstance(command, Settle):
            return LATER
        begun, stopwatch = self._stopwatch(), self._stopwatch
        self.markets.out_of_time = lambda: stopwatch() - begun > GROUP_SECONDS
        reply: Any = None
        try:
            reply = command.run(self.markets, known, now)
        except Refused as refusal:
            reply = refusal
        except Exception:
            log.exception("a command on market %r failed", command.market)
            reply = _Fault(500, "internal", "this is a fault of the service; see its log")
        self._queue.note(command, stopwatch() - begun, len(reply) if isinstance(reply, list) else command.size)
        return reply

    def _finish_settlements(self, names: Iterable[str]) -> None:
        """A settlement that another process began, or that a crash cut short, is finished before other calls."""
        for name in names:
            market = self.markets.by_name.get(name)
            if market is not None and market.settling and not self._queue.begins_with(name, Settle):
                future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                self._queue.put_first(Settle(name, lambda market: None), future)

    def _read_back_later(self, names: set[str]) -> None:
        """Markets in which something went wrong half-way are not touched until they are read back."""
        for name in names:
            if name not in self.markets.stored:
                raise ServeError(f"the new market {name!r} failed before it was stored; all are read back")
            self.markets.held.add(name)
            self._queue.hold(name)
            task = asyncio.get_running_loop().create_task(self._read_back(self.markets, name))
            self._rereading.add(task)
            task.add_done_callback(self._rereading.discard)

    async def _read_back(self, markets: ServedMarkets, name: str) -> None:
        """One market as its ledger has it, for the next group."""
        market: MarketEngine | None = None
        number = markets.numbers[name]
        while not self._stopping:
            after = 0 if market is None else market.chain.n
            try:
                lines = await self.read(partial(self.storage.lines, number, after, _PAGE))
                if not lines and market is not None:
                    self._reread.append((markets, name, market))
                    self._wake.set()
                    return
                market = await asyncio.get_running_loop().run_in_executor(
                    self._market_thread, partial(follow, market, lines, markets.by_name[name].dice)
                )
            except Exception as problem:
                _log_failure("a market cannot be read back; trying again", problem)
                market = None
                await asyncio.sleep(_TICK)

    def _between_groups(self) -> None:
        """Nothing is half done here: markets that were read back come in, and one may be held for its snapshot."""
        self._take_reread()
        if self._checkpoint is not None and self._checkpoint.markets is not self.markets:
            self._checkpoint = None  # all were read back meanwhile
        if self._checkpoint is None or self._stopping or (work := self._checkpoint.next_work()) is None:
            return
        if self._checkpoint.held is not None:
            self._queue.hold(self._checkpoint.held)
        task = asyncio.get_running_loop().create_task(self._work_on(self._checkpoint, work))
        self._rereading.add(task)
        task.add_done_callback(self._rereading.discard)

    @property
    def _checkpoint_is_complete(self) -> bool:
        return self._checkpoint is not None and self._checkpoint.complete

    async def _work_on(self, checkpoint: CheckpointInTheMaking, work: Callable[[], None]) -> None:
        """A piece of a checkpoint in a thread; then the market that waited for it goes on."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._market_thread, work)
        except Exception as problem:
            _log_failure("a snapshot failed; the next start reads more of the ledger", problem)
        name, markets = checkpoint.end_work(), checkpoint.markets
        if name is not None:
            self._reread.append((markets, name, markets.by_name[name]))
        self._wake.set()

    def _take_reread(self) -> None:
        """Go on with markets that were read back, unless all of them were meanwhile."""
        for markets, name, market in self._reread:
            if markets is self.markets:
                self._enter_reread(name, market)
                self._queue.release(name)
        self._reread.clear()

    def _enter_reread(self, name: str, market: MarketEngine) -> None:
        market.ahead = self.markets.by_name[name].ahead  # it goes on with the same time
        self.markets.by_name[name] = market
        self.markets.held.discard(name)

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
        """Write snapshots of everything, while nothing else goes on, so that the next start is short."""
        taken = {} if self._checkpoint is None else self._checkpoint.snapshots
        self._checkpoint = None

        def work() -> None:
            snapshots = taken | self.markets.take_snapshots()
            self.storage.prepare_checkpoint()()
            self.storage.checkpoint(snapshots)

        await self.in_writing_thread(work)

    async def _recover(self) -> None:
        self.ready = False
        while not (self.ready or self._stopping):
            try:
                recovered = await self.in_writing_thread(lambda: ServedMarkets.recover(self.storage))
                recovered.keep_time_of(self.markets)
                self.markets = recovered
                self._queue.release_all()
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
        for task in self._rereading:
            task.cancel()
        refusal = Refused(503, "unavailable", "the service is stopping; try again")
        for call in self._queue.drain():
            call.enter_reply(refusal)
        if self.ready:
            try:
                await self.checkpoint()
            except Exception:
                log.exception("no last snapshots; the next start reads the ledger instead")
        self._writing_thread.shutdown()
        self._reading_thread.shutdown()
        self._aside_thread.shutdown(cancel_futures=True)
        self._market_thread.shutdown()
        self.storage.close()


def _log_failure(what: str, problem: Exception) -> None:
    """A database that is away is one line in the log; anything else is told with where it happened."""
    if isinstance(problem, Refused):
        log.warning("%s (%s)", what, problem)
    else:
        log.exception(what)


class _Fault(Refused):
    """The answer to a command that failed by a fault of the service."""
