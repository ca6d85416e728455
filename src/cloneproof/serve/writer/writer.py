"""The writer: gather calls into a group, run them, commit one durable transaction, then send all replies.

Everything that changes a market happens in this one task, so nothing needs a lock. While storage writes in its own
thread, the next group gathers. If storage fails, no call of the group was acknowledged: all get a retryable error, and
the markets are read back from storage. If a command fails by a fault of the service, only that call gets a 500; its
market is read back while other markets continue, and its other calls wait. A market with a rule of an installed package
that takes longer than a group waits after each command, so that it uses at most a tenth of this task's time.

Several processes take turns: a `SharedWriter` takes its turn before each group and applies what the others wrote. All
processes apply the same entries in the same order, so their markets are equal line by line. A process that gets another
entry or hash than the stored one writes nothing and reads everything back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from cloneproof.errors import MechanismError, Refused, ServeError
from cloneproof.serve.market.entries import Known, Wanted, decode
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import go_on, take_snapshot
from cloneproof.serve.storage.sql import Line, RemoteBlock, SharedStorage, Storage
from cloneproof.serve.writer.commands import LATER, Command, Do, Settle, merge, split_reply
from cloneproof.serve.writer.markets import KnownEntries, ServedMarkets
from cloneproof.serve.writer.queue import Group, QueuedCall, QueueWaits, RoundRobin

GROUP_SECONDS: Final = 0.015  # work in one group
SHARE_SECONDS: Final = 0.004  # of one command in it, if others wait
REST: Final = 9  # how many times as long a market waits as a slow command of its installed rule took
_MOST_COMPUTATIONS: Final = 100  # that wait for their thread
_PAGE: Final = 1000  # lines that are read back at a time
_TICK: Final = 1.0  # seconds between checks of wait windows without calls

log = logging.getLogger("cloneproof.serve")


def milliseconds() -> int:
    """The wall clock's time, which may be set."""
    return time.time_ns() // 1_000_000


def steady_milliseconds() -> int:
    """The time of a clock that cannot be set."""
    return time.monotonic_ns() // 1_000_000


async def _run_in(pool: ThreadPoolExecutor, work: Callable[[], Any]) -> Any:  # noqa: ANN401
    return await asyncio.get_running_loop().run_in_executor(pool, work)


class Threads:
    """One thread for each kind of work, so that none waits behind another: `await threads.read(work)`.

    storage    one step of the storage
    read       reading from storage while it writes
    market     work that a market waits for
    compute    long work for a caller that changes nothing
    """

    def __init__(self) -> None:
        self._pools = [ThreadPoolExecutor(1, name) for name in ("storage", "reader", "market", "compute")]
        self.storage, self.read, self.market, self._compute = (partial(_run_in, pool) for pool in self._pools)
        self._computations = 0

    async def compute(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        if self._computations >= _MOST_COMPUTATIONS:
            raise Refused(503, "overloaded", "too much long work is waiting; try again a little later")
        self._computations += 1
        try:
            return await self._compute(work)
        finally:
            self._computations -= 1

    def close(self) -> None:
        """Wait for running work; computations that have not begun are dropped."""
        for pool in reversed(self._pools):
            pool.shutdown(cancel_futures=pool is self._pools[-1])


class Checkpoint:
    """The snapshots of one checkpoint, taken in a thread, one market at a time; only that market waits."""

    def __init__(self, markets: ServedMarkets) -> None:
        self.markets, self._names = markets, sorted(markets.changed, reverse=True)
        self.snapshots: dict[int, bytes] = {}
        self.held: str | None = None  # the market that waits for its snapshot
        self.complete = False

    def hold_next(self) -> str | None:
        """Hold the market whose snapshot is taken next, and return its name; called between two groups."""
        while self.held is None and self._names:
            name = self._names.pop()
            if self.markets.snapshot_possible(name):  # else it stays among the changed ones, for the next checkpoint
                self.held = name
                self.markets.held.add(name)
                self.markets.changed.discard(name)
                return name
        self.complete = self.held is None
        return None


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
        self.ready, self._stopping = True, False
        self.groups = self.commands = 0
        self.waits, self.threads = QueueWaits(), Threads()
        self._queue = RoundRobin()
        self._expiring = False  # whether more windows are over than were handled
        self._look_at_all = True  # whether the next group checks the windows of all markets, or only of its own
        self._released: list[tuple[ServedMarkets, str, LiveMarket]] = []  # held until the next group
        self._unreadable: dict[str, Refused] = {}  # markets whose old entries could not be read for this group
        self._checkpoint: Checkpoint | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._beside: set[asyncio.Task[None]] = set()  # ticks, snapshots, reading back

    def start(self) -> None:
        """Start working, in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._watch()
        self._begin(self._tick())
        self._finish_settlements(self.markets.by_name)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def submit(self, command: Command) -> asyncio.Future[Any]:
        """Queue a command; its reply comes when it is durable."""
        if self._stopping or not self.ready:
            raise Refused(503, "unavailable", "the service is starting, stopping or its storage failed; try again")
        future = asyncio.get_running_loop().create_future()
        self._queue.put(command, future)
        self.waits.follow(command.market if command.market in self.markets.by_name else "", future)
        self._wake.set()
        return future

    def _watch(self) -> None:
        self.storage.watch()
        self._watching = asyncio.get_running_loop().call_later(_TICK, self._watch)

    async def _tick(self) -> None:
        """End wait windows also without calls."""
        while True:
            await asyncio.sleep(_TICK)
            self._look_at_all = True
            self._wake.set()

    def _times(self) -> tuple[int, int | None]:
        """The times of the steady clock, which commands get, and of the wall clock."""
        return self._clock(), self._wall()

    def _overdue(self) -> bool:
        """Whether a window is over in any market; asked without calls."""
        now, wall = self._times()
        awaiting = self.markets.awaiting
        self.markets.follow(now, wall, awaiting)
        return any(self.markets.by_name[name].overdue(now) for name in awaiting)

    async def _run(self) -> None:
        while not (self._stopping and not self._queue and not (self._checkpoint and self._checkpoint.held)):
            self._between_groups()
            if not (self._queue or self._expiring or (self._checkpoint and self._checkpoint.complete)):
                self._wake.clear()
                await self._wake.wait()
                self._between_groups()
                if not self._queue and not self._overdue():
                    continue
            group = self._queue.next_group()
            try:
                replies, skipped = await self._write_group(group)
            except Exception as problem:
                _log_failure("storage failed; the markets are read back from it", problem)
                refusal = Refused(503, "storage", f"storage failed ({type(problem).__name__}); try again")
                for call in [*(call for call, _ in group), *self._queue.drain()]:
                    call.enter_reply(refusal)  # before the recovery, which may have to wait for the storage
                await self._recover()
            else:
                self._send_replies(group, replies, skipped)

    def _send_replies(self, group: Group, replies: Sequence[Any], skipped: set[str]) -> None:
        """Send the replies of a durable group; calls and items without one wait for the next group."""
        unfinished: list[tuple[QueuedCall, int]] = []
        done: list[tuple[QueuedCall, Any]] = []
        for (call, part), reply in zip(group, replies, strict=True):
            if reply is LATER:
                unfinished.append((call, part.size))
                continue
            if type(reply) is list and len(reply) < part.size:
                unfinished.append((call, part.size - len(reply)))
            done.append((call, reply))
        self._queue.put_back(unfinished, skipped)
        for call, reply in done:
            call.enter_reply(reply)
        self._finish_settlements({call.command.market for call, _ in unfinished})

    async def _write_group(self, group: Group) -> tuple[list[Any], set[str]]:
        """The replies to a group, when it is durable, and the markets for which there was no time."""
        commands = list(merge([part for _, part in group]))
        known = await self._find_known([command for command, _ in commands])
        replies, skipped = self._do_all(group, commands, known)
        storage, appended = self.storage, self.markets.take()
        if appended:
            await self.threads.storage(lambda: storage.commit(appended))
        self.groups += 1
        self.commands += len(group)
        if self._checkpoint is not None and self._checkpoint.complete:
            snapshots, self._checkpoint = self._checkpoint.snapshots, None
            await self.threads.storage(lambda: storage.checkpoint(snapshots))
        elif self._checkpoint is None and storage.checkpoint_due:
            self._checkpoint = Checkpoint(self.markets)
        return replies, skipped

    def _do_all(
        self, group: Group, commands: Sequence[tuple[Command, list[int]]], known: KnownEntries
    ) -> tuple[list[Any], set[str]]:
        """Run commands in order until the time of a group is over; the rest waits for the next one."""
        names = {command.market for command, _ in commands if command.market in self.markets.by_name}
        if self._look_at_all or self._expiring or not group:
            names |= self.markets.awaiting
        now, wall = self._times()
        self.markets.follow(now, wall, names)
        later = self.markets.expire(now, known, names)  # markets with more windows to end before their commands run
        self._expiring, self._look_at_all = bool(later), False
        replies, faulty, skipped = list[Any]([None] * len(group)), set[str](), set[str]()
        begun = self._stopwatch()
        seconds = SHARE_SECONDS if len({command.market for command, _ in commands}) > 1 else GROUP_SECONDS
        for number, (command, positions) in enumerate(commands):
            if number and command.market not in later and self._stopwatch() - begun > GROUP_SECONDS:
                later.add(command.market)
                skipped.add(command.market)
            reply = LATER if command.market in later else self._do(command, known, now, seconds)
            if isinstance(reply, _Fault) and command.market in self.markets.by_name:
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
        return replies, skipped

    def _do(self, command: Command, known: KnownEntries, now: int, seconds: float) -> Any:  # noqa: ANN401
        """The reply of a command; while a market is being settled, by any process, only its settlement runs."""
        market = self.markets.by_name.get(command.market)
        if market is not None and market.settling and not isinstance(command, Settle):
            return LATER
        if command.market in self._unreadable and not isinstance(command, Do | Settle):
            return self._unreadable[command.market]
        stopwatch, begun = self._stopwatch, self._stopwatch()
        self.markets.out_of_time = lambda: stopwatch() - begun > seconds
        try:
            return command.run(self.markets, known, now)
        except Refused as refusal:
            return refusal
        except Exception as problem:
            log.exception("a command on market %r failed", command.market)
            broken = isinstance(problem, MechanismError)  # an installed rule
            return _Fault(500, "internal", str(problem) if broken else "this is a fault of the service; see its log")
        finally:
            if market is not None and any(rule.source for rule in market.mechanism.rules):
                self._let_rest(command.market, self._stopwatch() - begun)

    def _let_rest(self, name: str, took: float) -> None:
        """Hold the calls of a market whose rule was slow, so that others have nine tenths of the time."""

        def release() -> None:
            if name not in self.markets.held:  # else it is released when it was copied or read back
                self._queue.release(name)
                self._wake.set()

        if took > GROUP_SECONDS:
            self._queue.hold(name)
            asyncio.get_running_loop().call_later(REST * took, release)

    def _finish_settlements(self, names: Iterable[str]) -> None:
        """Finish settlements that another process began or a crash interrupted, before other calls."""
        for name in names:
            market = self.markets.by_name.get(name)
            if market is not None and market.settling and not self._queue.begins_with(name, Settle):
                future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                self._queue.put_first(Settle(name, lambda market: None), future)

    def _read_back_later(self, names: set[str]) -> None:
        """Hold markets in which a command failed half-way until they are read back."""
        for name in names:
            if name not in self.markets.stored:
                raise ServeError(f"the new market {name!r} failed before it was stored; all are read back")
            self.markets.held.add(name)
            self._queue.hold(name)
            self._begin(self._read_back(self.markets, name))

    async def _read_back(self, markets: ServedMarkets, name: str) -> None:
        """Rebuild one market from its ledger, for the next group."""
        market: LiveMarket | None = None
        number = markets.numbers[name]
        while not self._stopping:
            after = 0 if market is None else market.chain.n
            try:
                lines = await self.threads.read(partial(self.storage.lines, number, after, _PAGE))
                if not lines and market is not None:
                    self._released.append((markets, name, market))
                    self._wake.set()
                    return
                market = await self.threads.market(partial(_follow, market, lines, markets.by_name[name].dice.secret))
            except Exception as problem:
                _log_failure("a market cannot be read back; trying again", problem)
                market = None
                await asyncio.sleep(_TICK)

    def _between_groups(self) -> None:
        """Between two groups: release markets that were held, and maybe hold one for its snapshot."""
        for markets, name, market in self._released:
            if markets is self.markets:  # else all of them were read back meanwhile
                self._enter_released(name, market)
                self._queue.release(name)
        self._released.clear()
        if self._checkpoint is not None and self._checkpoint.markets is not self.markets:
            self._checkpoint = None
        if self._checkpoint is not None and not self._stopping and (held := self._checkpoint.hold_next()) is not None:
            self._queue.hold(held)
            self._begin(self._take_snapshot(self._checkpoint, held))

    async def _take_snapshot(self, checkpoint: Checkpoint, name: str) -> None:
        """Take a snapshot in a thread, then release its market."""
        markets = checkpoint.markets
        try:
            taken = await self.threads.market(partial(take_snapshot, markets.by_name[name]))
            checkpoint.snapshots[markets.numbers[name]] = taken
        except Exception as problem:
            _log_failure("a snapshot failed; the next start reads more of the ledger", problem)
            markets.changed.add(name)  # the next checkpoint tries it again
        checkpoint.held = None
        self._released.append((markets, name, markets.by_name[name]))
        self._wake.set()

    def _enter_released(self, name: str, market: LiveMarket) -> None:
        market.ahead = self.markets.by_name[name].ahead  # its time continues
        self.markets.by_name[name] = market
        self.markets.held.discard(name)

    async def _find_known(self, commands: Sequence[Command]) -> KnownEntries:
        """The old entries that commands need."""
        wanted: defaultdict[int, Wanted] = defaultdict(Wanted)
        for command in commands:
            number, asked = self.markets.numbers.get(command.market), command.wanted(self.markets)
            if number is not None and asked is not None:
                wanted[number].requests += asked.requests
                wanted[number].events += asked.events
                wanted[number].decisions += asked.decisions
        known: KnownEntries = defaultdict(Known)
        found = await self.threads.storage(lambda: self.storage.find(wanted)) if wanted else {}
        self._unreadable = {self.markets.names[market]: of for market, of in found.items() if isinstance(of, Refused)}
        known |= {market: of for market, of in found.items() if isinstance(of, Known)}
        return known

    async def checkpoint(self) -> None:
        """Write snapshots of all markets while nothing else runs, so that the next start is short."""
        taken = {} if self._checkpoint is None else self._checkpoint.snapshots
        self._checkpoint = None

        def work() -> None:
            self.storage.checkpoint(taken | self.markets.take_snapshots())

        await self.threads.storage(work)

    async def _recover(self) -> None:
        self.ready = False
        while not (self.ready or self._stopping):
            try:
                recovered = await self.threads.storage(lambda: ServedMarkets.recover(self.storage))
                recovered.keep_time_of(self.markets)
                self.markets = recovered
                self._queue.release_all()
                self.ready = True
            except Exception as problem:
                _log_failure("storage cannot be read; trying again", problem)
                await asyncio.sleep(_TICK)

    async def stop(self) -> None:
        """Finish queued calls, write snapshots, close the storage."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        for task in self._beside:
            task.cancel()
        refusal = Refused(503, "unavailable", "the service is stopping; try again")
        for call in self._queue.drain():
            call.enter_reply(refusal)
        if self.ready:
            try:
                await self.checkpoint()
            except Exception:
                log.exception("no last snapshots; the next start reads the ledger instead")
        await asyncio.get_running_loop().run_in_executor(None, self.threads.close)  # beside `_watch`
        if self._watching is not None:
            self._watching.cancel()
        self.storage.close()


def _follow(market: LiveMarket | None, lines: Sequence[Line], secret: bytes | None) -> LiveMarket:
    """The market after the next lines of its ledger; None stands for no market yet."""
    market = go_on(market, [decode(line.line) for line in lines], secret)
    if market.chain.hash != lines[-1].hash:
        raise ServeError(f"market {market.spec.market!r}: the chain is broken before entry {lines[-1].n}; replay it")
    return market


def _log_failure(what: str, problem: Exception) -> None:
    """Log one line if the database is unreachable, and a traceback for anything else."""
    if isinstance(problem, Refused):
        log.warning("%s (%s)", what, problem)
    else:
        log.exception(what)


class _Fault(Refused):
    """The reply to a command that failed by a fault of the service."""


class SharedWriter(Writer):
    """The one task of this process that changes markets, in turns with those of other processes."""

    storage: SharedStorage

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 (as the writer's)
        super().__init__(*arguments)
        self._missed: list[RemoteBlock] = []  # of markets that are read back at the moment

    def _times(self) -> tuple[int, int | None]:
        """The database's clock, which all processes share, unless another one is given."""
        return self.storage.turn_time if self._clock is steady_milliseconds else self._clock(), None

    def _overdue(self) -> bool:
        """Always true: a process without calls keeps up with the others, so that its next turn is short."""
        return True

    async def _write_group(self, group: Group) -> tuple[list[Any], set[str]]:
        done = await super()._write_group(group)
        if self.storage.has_turn:
            await self.threads.storage(self.storage.release)
        return done

    async def _find_known(self, commands: Sequence[Command]) -> KnownEntries:
        """Old entries from storage, looked up before the turn, and those that the turn begins with."""
        known = await super()._find_known(commands)
        while not self.storage.has_turn:
            for block in await self.threads.storage(self._follow_others):
                known[block.market].add(block.entries)
        return known

    async def _recover(self) -> None:
        await super()._recover()
        self._missed.clear()

    def _follow_others(self) -> list[RemoteBlock]:
        """Apply what others wrote since the last turn; later for a market that is being read back."""
        blocks = self.storage.begin()
        for block in blocks:
            if self.markets.names.get(block.market) in self.markets.held:
                self._missed.append(block)
            else:
                apply_block(self.markets, block)
        return blocks

    def _enter_released(self, name: str, market: LiveMarket) -> None:
        super()._enter_released(name, market)
        number, missed, self._missed = self.markets.numbers[name], self._missed, []
        for block in missed:
            if block.market != number:
                self._missed.append(block)
            elif block.entries[0].n > market.chain.n:
                apply_block(self.markets, block)


def apply_block(markets: ServedMarkets, block: RemoteBlock) -> None:
    """Apply a block that another process wrote to one market, and check that the result is the same."""
    market = markets.by_name.get(markets.names.get(block.market, ""))
    first, expected, ahead = block.entries[0].n, 1, None
    if market is not None:
        expected, ahead, market.ahead = market.chain.n + 1, market.ahead, None  # recorded entries have their own times
    if first != expected:
        raise ServeError(f"market {block.market}: expected entry {expected}, got {first}; read it back")
    market = go_on(market, block.entries, block.secret)
    market.ahead = ahead
    markets.enter(block.market, market)
    if market.chain.hash != block.hash:
        raise ServeError(f"market {market.spec.market!r}: the chain is broken at entry {first}; replay the ledger")


def make_writer(
    storage: Storage, clock: Callable[[], int] | None = None, wall: Callable[[], int] | None = None
) -> Writer:
    """The writer that fits a storage: shared or alone."""
    return (SharedWriter if isinstance(storage, SharedStorage) else Writer)(storage, clock, wall)
