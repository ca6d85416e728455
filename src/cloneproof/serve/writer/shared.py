"""Several processes on one database: a writer that takes turns with those of other processes.

A `SharedWriter` takes its turn before each group and applies what the others wrote. All processes apply the same
entries in the same order, so their markets are equal line by line. A process that gets another entry or hash than the
stored one writes nothing and reads everything back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import go_on
from cloneproof.serve.storage.storage import RemoteBlock, SharedStorage, Storage
from cloneproof.serve.writer.commands import Command
from cloneproof.serve.writer.markets import KnownEntries, ServedMarkets
from cloneproof.serve.writer.queue import Group
from cloneproof.serve.writer.writer import TICK, Writer, steady_milliseconds


class SharedWriter(Writer):
    """A process's only task that changes markets, in turns with those of other processes."""

    storage: SharedStorage

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 (as the writer's)
        super().__init__(*arguments)
        self._missed: list[RemoteBlock] = []  # of markets that are read back at the moment

    def _times(self) -> tuple[int, int | None]:
        """Return the database's clock, which all processes share, unless another one is given."""
        return self.storage.turn_time if self._clock is steady_milliseconds else self._clock(), None

    def _overdue(self) -> bool:
        """Always true: a process without calls keeps up with the others, so that its next turn is short."""
        return True

    async def _write_group(self, group: Group) -> list[Any]:
        replies = await super()._write_group(group)
        if self.storage.has_turn:
            await self.threads.storage(self.storage.release)
        return replies

    async def _find_known(self, commands: Sequence[Command]) -> tuple[KnownEntries, dict[str, Refused]]:
        """Find old entries in storage, looked up before the turn, and those that the turn begins with."""
        known, unreadable = await super()._find_known(commands)
        while not self.storage.has_turn:
            for block in await self.threads.storage(self._follow_others):
                known[block.market].add(block.entries)
        return known, unreadable

    async def _recover(self) -> None:
        await super()._recover()
        self._missed.clear()

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
    storage: Storage,
    clock: Callable[[], int] | None = None,
    wall: Callable[[], int] | None = None,
    tick: float = TICK,
) -> Writer:
    """Return the writer that fits a storage: shared or alone."""
    return (SharedWriter if storage.shared else Writer)(storage, clock, wall, tick)
