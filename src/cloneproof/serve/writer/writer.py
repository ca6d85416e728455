"""Writer: gather calls into a group, run them, commit one durable transaction, then send all replies.

Everything that changes a market happens in this one task, so nothing needs a lock. While storage writes in its own
thread, the next group gathers. To follow a call, read `submit`, `_run`, `_write_group` and `_send_replies`.

Storage is right and memory is not. If storage fails, no call of the group was acknowledged: all get a retryable error,
and the markets are read back, again and again until storage answers or the service stops. If a command fails by a fault
of the service, only that call gets a 500; its market is read back while other markets continue, and its other calls
wait. A market with a rule of an installed package that takes longer than a group waits after each command, so that it
uses at most a tenth of this task's time.

A market that is read back, or whose snapshot is being taken, is held: it does not change and its calls wait, while all
other markets go on. Markets are held and released between two groups only, so no group sees a change.

Where several processes share a storage, a writer takes its turn before each group and applies what the others wrote.
All apply the same entries in the same order, so their markets are equal line by line. A process that gets another entry
or hash than the stored one writes nothing and reads everything back.
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

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.market.entries import by_key
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import take_snapshot
from cloneproof.serve.market.terms import MarketSpec
from cloneproof.serve.storage.storage import RemoteBlock, Storage
from cloneproof.serve.writer.commands import Command, Settle
from cloneproof.serve.writer.group import GroupRun, Joined, merge
from cloneproof.serve.writer.markets import KnownEntries, ServedMarkets, follow_lines
from cloneproof.serve.writer.queue import QueuedCall, QueueWaits, RoundRobin

MOST_COMPUTATIONS: Final = 100  # that wait for their thread

log = logging.getLogger("cloneproof.serve")


def log_failure(what: str, problem: Exception) -> None:
    """Log one line if the database is unreachable, and a traceback for anything else."""
    if isinstance(problem, Refused):
        log.warning("%s (%s)", what, problem)
    else:
        log.exception(what)


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
        if self._computations >= MOST_COMPUTATIONS:
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


REST: Final = 9  # how many times as long a market waits as a slow command of its installed rule took
PAGE: Final = 1000  # lines that are read back at a time
TICK: Final = 1.0  # seconds between checks of wait windows without calls, and before storage is tried again

log = logging.getLogger("cloneproof.serve")


def milliseconds() -> int:
    """Return the wall clock's time, which may be set."""
    return time.time_ns() // 1_000_000


def steady_milliseconds() -> int:
    """Return the time of a clock that cannot be set."""
    return time.monotonic_ns() // 1_000_000


def refuse(calls: Iterable[QueuedCall], refusal: Refused) -> None:
    """Send the same refusal to all callers."""
    for call in calls:
        call.reply = refusal
        call.send()


class Writer:
    """A service's only task that changes markets."""

    def __init__(
        self,
        storage: Storage,
        clock: Callable[[], int] | None = None,
        wall: Callable[[], int] | None = None,
        tick: float = TICK,
    ) -> None:
        self.storage, self._clock, self._wall = storage, clock or steady_milliseconds, wall or clock or milliseconds
        self._stopwatch: Callable[[], float] = time.perf_counter
        self.markets = ServedMarkets.recover(storage)
        self.ready = True
        self.groups = self.commands = 0
        self.waits, self._queue = QueueWaits(), RoundRobin()
        self.threads, self.tick = Threads(), tick
        self.stopping = self._ending = False
        self._wake, self._between_groups = asyncio.Event(), asyncio.Lock()
        self._expiring = False  # whether more windows are over than were handled
        self._look_at_all = True  # whether the next group checks the windows of all markets, or only of its own
        self._missed: list[RemoteBlock] = []  # what others wrote to markets that are being read back
        self._task: asyncio.Task[None] | None = None
        self._checkpointing: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # that end with the service, or when all markets are read back

    def declare(self, spec: MarketSpec) -> bool:
        """Declare a market before the service starts; whether it is new. Refuses other terms than those that it has."""
        while self.storage.shared and not self.storage.has_turn:
            self._follow_others()
        try:
            now, wall = self._times()
            self.markets.follow(now, wall, ())
            _, new = self.markets.create(spec, now)
            if appended := self.markets.take():
                self.storage.commit(appended)
        finally:
            if self.storage.shared and self.storage.has_turn:
                self.storage.release()
        return new

    def submit(self, command: Command) -> asyncio.Future[Any]:
        """Queue a command; its reply comes when it is durable."""
        if self.stopping or not self.ready:
            raise Refused(503, "unavailable", "the service is starting, stopping or its storage failed; try again")
        future = asyncio.get_running_loop().create_future()
        self._queue.put(command, future)
        self.waits.follow(command.market if command.market in self.markets.by_name else "", future)
        self._wake.set()
        return future

    async def _run(self) -> None:
        """Write one group after the other; wait while there is nothing to do."""
        while self._queue or not self._ending:
            if not (self._queue or self._expiring):
                self._wake.clear()
                await self._wake.wait()
                if not self._queue and not self._overdue():
                    continue
            async with self._between_groups:
                await self._run_group(self._queue.next_group())

    async def _run_group(self, group: list[QueuedCall]) -> None:
        """Write a group and send its replies, or read everything back if that fails."""
        try:
            await self._write_group(group)
        except Exception as problem:
            # Nobody was told anything about this group, so whether its transaction is in storage or not, a caller who
            # tries again gets the one right answer. The refusals go out before the recovery, which may have to wait
            # for storage.
            log_failure("storage failed; the markets are read back from it", problem)
            refusal = Refused(503, "storage", f"storage failed ({type(problem).__name__}); try again")
            refuse([*group, *self._queue.drain()], refusal)
            await self._recover()
        else:
            self._send_replies(group)

    async def _write_group(self, group: list[QueuedCall]) -> None:
        """Run a group and commit what it changed; its replies may be sent then, because all of it is durable."""
        commands = list(merge(group))
        known, unreadable = await self._find_known([command for command, _ in commands])
        now, waiting = self._end_windows(commands, known)
        run = GroupRun(self.markets, known, unreadable, now, self._stopwatch)
        run.run(commands, waiting)
        for name in run.faulty:
            if name not in self.markets.stored:
                raise ServeError(f"the new market {name!r} failed before it was stored; all are read back")
            self._hold(name)  # from here on, so that nothing of it is committed
            self._begin(self._read_back(name))
        for name, seconds in run.slow.items():
            self._let_rest(name, REST * seconds)
        appended = self.markets.take()
        if appended:
            await self.threads.storage(lambda: self.storage.commit(appended))
        self.groups += 1
        self.commands += len(group)
        if self.storage.checkpoint_due and (self._checkpointing is None or self._checkpointing.done()):
            self._checkpointing = self._begin(self._checkpoint())
        if self.storage.shared and self.storage.has_turn:
            await self.threads.storage(self.storage.release)

    async def _find_known(self, commands: Sequence[Command]) -> tuple[KnownEntries, dict[str, Refused]]:
        """Return the old entries that commands need, and the markets whose entries cannot be read.

        Storage is asked before the turn, which then begins with what others have written.
        """
        wanted = defaultdict[int, list[str]](list)
        for command in commands:
            if command.market in self.markets.by_name and (keys := command.wanted(self.markets)):
                wanted[self.markets.numbers[command.market]] += keys
        known: KnownEntries = defaultdict(dict)
        found = await self.threads.storage(lambda: self.storage.find(wanted)) if wanted else {}
        known |= {market: of for market, of in found.items() if not isinstance(of, Refused)}
        while self.storage.shared and not self.storage.has_turn:
            for block in await self.threads.storage(self._follow_others):
                known[block.market] |= by_key(block.entries)
        return known, {self.markets.names[market]: of for market, of in found.items() if isinstance(of, Refused)}

    def _follow_others(self) -> list[RemoteBlock]:
        """Apply what others wrote since the last turn; later for a market that is being read back."""
        blocks = self.storage.begin()
        for block in blocks:
            name = self.markets.names.get(block.market)
            if name in self.markets.held:
                self._missed.append(block)
            elif name not in self.markets.unreadable:
                self.markets.apply(block)
        return blocks

    def _end_windows(self, commands: Joined, known: KnownEntries) -> tuple[int, set[str]]:
        """End wait windows that are over; return (now, markets with expired windows left)."""
        names = {command.market for command, _ in commands if command.market in self.markets.by_name}
        if self._look_at_all or self._expiring or not commands:
            names |= self.markets.awaiting
        now, wall = self._times()
        self.markets.follow(now, wall, names)
        waiting = self.markets.expire(now, known, names)
        self._expiring, self._look_at_all = bool(waiting), False
        return now, waiting

    def _send_replies(self, group: Sequence[QueuedCall]) -> None:
        """Send the replies of a durable group; what is unfinished waits for the next group."""
        for call in group:
            call.send()
        self._finish_settlements(self._queue.put_back(group))

    def _finish_settlements(self, names: Iterable[str]) -> None:
        """Finish settlements that another process began or a crash interrupted, before other calls."""
        for name in names:
            market = self.markets.by_name.get(name)
            if market is not None and market.settling and not self._queue.begins_with(name, Settle):
                future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                self._queue.put_first(Settle(name, lambda market: None), future)

    def _times(self) -> tuple[int, int | None]:
        """Return the times of the steady clock, which commands get, and of the wall clock.

        Processes that share a storage have its clock instead of both, unless another one is given.
        """
        if self.storage.shared:
            return self.storage.turn_time if self._clock is steady_milliseconds else self._clock(), None
        return self._clock(), self._wall()

    def _overdue(self) -> bool:
        """Whether a window is over in any market, or others may have written; asked without calls."""
        if self.storage.shared:
            return True  # so that the next turn is short
        now, wall = self._times()
        awaiting = self.markets.awaiting
        self.markets.follow(now, wall, awaiting)
        return any(self.markets.by_name[name].first_overdue(now) for name in awaiting)

    async def _end_windows_without_calls(self) -> None:
        """Look for wait windows that are over, each tick."""
        while True:
            await asyncio.sleep(self.tick)
            self._look_at_all = True
            self._wake.set()

    async def _watch_storage(self) -> None:
        while True:
            self.storage.watch()
            await asyncio.sleep(self.tick)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin work beside the groups."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _hold(self, name: str) -> None:
        """Let a market wait until it is released; between two groups, or by the group in which it failed."""
        self.markets.held.add(name)
        self._queue.hold(name)

    async def _release(self, name: str, read_back: LiveMarket | None = None) -> None:
        """Go on with a held market between two groups, and with what others wrote meanwhile; or with one read back."""
        async with self._between_groups:
            if read_back is not None:
                read_back.ahead = self.markets.by_name[name].ahead  # its time continues
                self.markets.by_name[name] = read_back
            number, missed = self.markets.numbers[name], self._missed
            self._missed = [block for block in missed if block.market != number]
            try:
                for block in missed:
                    if block.market == number and block.entries[0].n > self.markets.by_name[name].chain.n:
                        self.markets.apply(block)
            except Exception as problem:
                log_failure("a market does not fit what others wrote; it is read back", problem)
                self._begin(self._read_back(name))
                return
            self.markets.held.discard(name)
            self._queue.release(name)
            self._wake.set()

    def _let_rest(self, name: str, seconds: float) -> None:
        """Hold the calls of a market whose rule was slow, so that others have nine tenths of the time."""

        def release() -> None:
            if name not in self.markets.held:  # else it is released when it was copied or read back
                self._queue.release(name)
                self._wake.set()

        self._queue.hold(name)
        asyncio.get_running_loop().call_later(seconds, release)

    async def _read_back(self, name: str) -> None:
        """Rebuild a held market from its whole ledger, in pages, and release it."""
        number, secret = self.markets.numbers[name], self.markets.by_name[name].dice.secret
        market: LiveMarket | None = None
        while not self.stopping:
            after = 0 if market is None else market.chain.n
            try:
                lines = await self.threads.read(partial(self.storage.lines, number, after, PAGE))
                if not lines and market is not None:
                    await self._release(name, market)
                    return
                market = await self.threads.market(partial(follow_lines, market, lines, secret))
            except Exception as problem:
                log_failure("a market cannot be read back; trying again", problem)
                market = None
                await asyncio.sleep(self.tick)

    async def _recover(self) -> None:
        """Read all markets back, until storage answers or the service stops; calls are refused meanwhile."""
        self.ready = False
        for task in self._tasks:
            task.cancel()
        self._missed.clear()
        while not (self.ready or self.stopping):
            try:
                markets = await self.threads.storage(partial(ServedMarkets.recover, self.storage))
                markets.keep_time_of(self.markets)
                self.markets, self.ready = markets, True
                self._queue.release_all()
            except Exception as problem:
                log_failure("storage cannot be read; trying again", problem)
                await asyncio.sleep(self.tick)

    async def _checkpoint(self) -> None:
        """Store snapshots of the markets that have changed, so that the next start reads only the end of each ledger.

        Each is taken in a thread; only its own market waits. A checkpoint is never needed: where a snapshot fails, the
        next start reads more of the ledger.
        """
        taken = dict[str, bytes]()
        try:
            for name in sorted(self.markets.changed):
                async with self._between_groups:
                    if self.stopping or not self.markets.snapshot_possible(name):
                        continue  # it stays among the changed ones
                    self._hold(name)
                try:
                    taken[name] = await self.threads.market(partial(take_snapshot, self.markets.by_name[name]))
                    self.markets.changed.discard(name)
                except Exception as problem:
                    log_failure("a snapshot failed; the next start reads more of the ledger", problem)
                await self._release(name)
            numbered = {self.markets.numbers[name]: snapshot for name, snapshot in taken.items()}
            async with self._between_groups:
                await self.threads.storage(lambda: self.storage.checkpoint(numbered))
        except Exception as problem:
            log_failure("a checkpoint failed; the next start reads more of the ledgers", problem)
            self.markets.changed.update(taken)  # the next checkpoint tries them again

    def start(self) -> None:
        """Start working, in the running event loop."""
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run())
        self._watching = loop.create_task(self._watch_storage())
        self._ticking = loop.create_task(self._end_windows_without_calls())
        self._finish_settlements(self.markets.by_name)

    async def checkpoint(self) -> None:
        """Write snapshots of all markets while nothing else runs, so that the next start is short."""
        await self.threads.storage(lambda: self.storage.checkpoint(self.markets.take_snapshots()))

    async def stop(self) -> None:
        """Finish queued calls, write snapshots, close the storage."""
        self.stopping = True
        if self._checkpointing is not None:
            await asyncio.wait({self._checkpointing})  # which ends after the market that it holds
        self._ending = True
        self._wake.set()
        if self._task is not None:
            await self._task
            self._ticking.cancel()
        for task in self._tasks:
            task.cancel()
        refuse(self._queue.drain(), Refused(503, "unavailable", "the service is stopping; try again"))
        if self.ready:
            try:
                await self.checkpoint()
            except Exception:
                log.exception("no last snapshots; the next start reads the ledger instead")
        await asyncio.to_thread(self.threads.close)  # while the storage is watched, which aborts what takes too long
        if self._task is not None:
            self._watching.cancel()
        self.storage.close()
