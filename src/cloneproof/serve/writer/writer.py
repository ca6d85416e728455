"""Writer: gather calls into a group, run them, commit one durable transaction, then send all replies.

Everything that changes a market happens in this one task, so nothing needs a lock. While storage writes in its own
thread, the next group gathers. To follow a call, read `submit`, `_run`, `_write_group` and `_send_replies`; what
happens beside this path is in `checkpoints`, `background`, and `read_all` and `read_market` below.

Storage is right and memory is not. If storage fails, no call of the group was acknowledged: all get a retryable error,
and the markets are read back, again and again until storage answers or the service stops. If a command fails by a fault
of the service, only that call gets a 500; its market is read back while other markets continue, and its other calls
wait. A market with a rule of an installed package that takes longer than a group waits after each command, so that it
uses at most a tenth of this task's time.

Where several processes share a storage, a writer takes its turn before each group and applies what the others wrote.
All apply the same entries in the same order, so their markets are equal line by line. A process that gets another entry
or hash than the stored one writes nothing and reads everything back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.market.entries import by_key, decode
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import go_on
from cloneproof.serve.storage.storage import Line, RemoteBlock, Storage
from cloneproof.serve.writer.background import Background, log_failure
from cloneproof.serve.writer.checkpoints import Checkpoints
from cloneproof.serve.writer.commands import Command, Settle
from cloneproof.serve.writer.group import GroupRun, Joined, merge
from cloneproof.serve.writer.markets import KnownEntries, ServedMarkets
from cloneproof.serve.writer.queue import Group, QueueWaits, RoundRobin

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
        self._background = Background(self._queue, tick)
        self.threads = self._background.threads
        self._checkpoints = Checkpoints(storage, self._background)
        self._expiring = False  # whether more windows are over than were handled
        self._look_at_all = True  # whether the next group checks the windows of all markets, or only of its own
        self._missed: list[RemoteBlock] = []  # what others wrote to markets that are being read back
        self._task: asyncio.Task[None] | None = None

    def submit(self, command: Command) -> asyncio.Future[Any]:
        """Queue a command; its reply comes when it is durable."""
        if self._background.stopping or not self.ready:
            raise Refused(503, "unavailable", "the service is starting, stopping or its storage failed; try again")
        future = asyncio.get_running_loop().create_future()
        self._queue.put(command, future)
        self.waits.follow(command.market if command.market in self.markets.by_name else "", future)
        self._background.wake.set()
        return future

    async def _run(self) -> None:
        """Write one group after the other; wait while there is nothing to do."""
        while not (self._background.stopping and not self._queue and not self._checkpoints.holds_market):
            self._between_groups()
            if not (self._queue or self._expiring or self._checkpoints.complete):
                self._background.wake.clear()
                await self._background.wake.wait()
                self._between_groups()
                if not self._queue and not self._overdue():
                    continue
            group = self._queue.next_group()
            try:
                replies = await self._write_group(group)
            except Exception as problem:
                # Nobody was told anything about this group, so whether its transaction is in storage or not, a caller
                # who tries again gets the one right answer. The refusals go out before the recovery, which may have to
                # wait for storage.
                log_failure("storage failed; the markets are read back from it", problem)
                refusal = Refused(503, "storage", f"storage failed ({type(problem).__name__}); try again")
                for call in [*(call for call, _ in group), *self._queue.drain()]:
                    call.enter_reply(refusal)
                await self._recover()
            else:
                self._send_replies(group, replies)

    async def _write_group(self, group: Group) -> list[Any]:
        """Run a group and commit what it changed; the replies, which may be sent because all of it is durable now."""
        commands = list(merge([part for _, part in group]))
        known, unreadable = await self._find_known([command for command, _ in commands])
        now, waiting = self._end_windows(commands, known)
        run = GroupRun(self.markets, known, unreadable, now, self._stopwatch)
        replies = run.run(group, commands, waiting)
        for name in run.faulty:
            self._read_back(name)  # held from here on, so that nothing of it is committed
        for name, seconds in run.slow.items():
            self._let_rest(name, REST * seconds)
        appended = self.markets.take()
        if appended:
            await self.threads.storage(lambda: self.storage.commit(appended))
        self.groups += 1
        self.commands += len(group)
        await self._checkpoints.store_or_begin(self.markets)
        if self.storage.shared and self.storage.has_turn:
            await self.threads.storage(self.storage.release)
        return replies

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
                apply_block(self.markets, block)
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

    def _send_replies(self, group: Group, replies: Sequence[Any]) -> None:
        """Send the replies of a durable group; what is unfinished waits for the next group."""
        unfinished = self._queue.put_back(group, replies)
        for (call, _), reply in zip(group, replies, strict=True):
            call.enter_reply(reply)
        self._finish_settlements(unfinished)

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

    async def _tick(self) -> None:
        """End wait windows also without calls."""
        while True:
            await asyncio.sleep(self._background.tick)
            self._look_at_all = True
            self._background.wake.set()

    def _between_groups(self) -> None:
        """Release markets that were held, between two groups, and maybe hold one for its snapshot."""
        for name, market in self._background.take_released(self.markets):
            self._enter_released(name, market)
            self._queue.release(name)
        self._checkpoints.take_next(self.markets)

    def _enter_released(self, name: str, market: LiveMarket) -> None:
        market.ahead = self.markets.by_name[name].ahead  # its time continues
        self.markets.by_name[name] = market
        self.markets.held.discard(name)
        number, missed, self._missed = self.markets.numbers[name], self._missed, []
        for block in missed:
            if block.market != number:
                self._missed.append(block)
            elif block.entries[0].n > market.chain.n:
                apply_block(self.markets, block)

    def _let_rest(self, name: str, seconds: float) -> None:
        """Hold the calls of a market whose rule was slow, so that others have nine tenths of the time."""

        def release() -> None:
            if name not in self.markets.held:  # else it is released when it was copied or read back
                self._queue.release(name)
                self._background.wake.set()

        self._queue.hold(name)
        asyncio.get_running_loop().call_later(seconds, release)

    def _read_back(self, name: str) -> None:
        """Hold a market in which a command failed half-way until it is read back."""
        if name not in self.markets.stored:
            raise ServeError(f"the new market {name!r} failed before it was stored; all are read back")
        self._background.hold(self.markets, name, read_market(self.storage, self._background, self.markets, name))

    async def _recover(self) -> None:
        """Read all markets back; calls are refused meanwhile."""
        self.ready = False
        markets = await read_all(self.storage, self._background, self.markets)
        if markets is not None:
            self.markets, self.ready = markets, True
            self._queue.release_all()
        self._missed.clear()

    def start(self) -> None:
        """Start working, in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._background.watch(self.storage.watch)
        self._background.begin(self._tick())
        self._finish_settlements(self.markets.by_name)

    async def checkpoint(self) -> None:
        """Write snapshots of all markets while nothing else runs, so that the next start is short."""
        await self._checkpoints.store_all(self.markets)

    async def stop(self) -> None:
        """Finish queued calls, write snapshots, close the storage."""
        self._background.stopping = True
        self._background.wake.set()
        if self._task is not None:
            await self._task
        self._background.cancel_tasks()
        refusal = Refused(503, "unavailable", "the service is stopping; try again")
        for call in self._queue.drain():
            call.enter_reply(refusal)
        if self.ready:
            try:
                await self.checkpoint()
            except Exception:
                log.exception("no last snapshots; the next start reads the ledger instead")
        await self._background.close()
        self.storage.close()


async def read_all(storage: Storage, background: Background, before: ServedMarkets) -> ServedMarkets | None:
    """Read all markets as storage has them, with the time of those before; None if the service stops first."""
    while not background.stopping:
        try:
            markets = await background.threads.storage(partial(ServedMarkets.recover, storage))
            markets.keep_time_of(before)
            return markets  # type: ignore[no-any-return]
        except Exception as problem:
            log_failure("storage cannot be read; trying again", problem)
            await asyncio.sleep(background.tick)
    return None


async def read_market(storage: Storage, background: Background, markets: ServedMarkets, name: str) -> LiveMarket | None:
    """Rebuild one market from its whole ledger, in pages; None if the service stops first."""
    market: LiveMarket | None = None
    number, secret = markets.numbers[name], markets.by_name[name].dice.secret
    while not background.stopping:
        after = 0 if market is None else market.chain.n
        try:
            lines = await background.threads.read(partial(storage.lines, number, after, PAGE))
            if not lines and market is not None:
                return market
            market = await background.threads.market(partial(_follow, market, lines, secret))
        except Exception as problem:
            log_failure("a market cannot be read back; trying again", problem)
            market = None
            await asyncio.sleep(background.tick)
    return None


def _follow(market: LiveMarket | None, lines: Sequence[Line], secret: bytes | None) -> LiveMarket:
    """Return the market after the next lines of its ledger; None stands for no market yet."""
    return _checked(go_on(market, [decode(line.line) for line in lines], secret), lines[-1].hash)


def _checked(market: LiveMarket, stored: bytes) -> LiveMarket:
    """Return a market whose last hash is the stored one."""
    if market.chain.hash != stored:
        raise ServeError(f"market {market.spec.market!r}: the chain is broken before entry {market.chain.n}; replay it")
    return market


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
    _checked(market, block.hash)
