"""The writer of one process among several: before each group it takes its turn and does what the others did.

All processes go through the same entries in the same order, so their markets are equal line by line. A process that
comes to another entry or another hash than the one stored stops before it can write anything, and reads all back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cloneproof.errors import ServeError
from cloneproof.serve.commit.commands import Command
from cloneproof.serve.commit.fair_queue import Group
from cloneproof.serve.commit.group_writer import Writer, steady_milliseconds
from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.ledger.chain import GENESIS, Chain, Head, chain_hashes
from cloneproof.serve.ledger.dice import MarketDice
from cloneproof.serve.ledger.entries import Entry, Opened, keys
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.ledger_replay import advance
from cloneproof.serve.storage.interface import RemoteBlock, SharedStorage, Storage


class SharedWriter(Writer):
    """The one task of this process that changes markets, in turns with those of other processes."""

    storage: SharedStorage

    def __init__(
        self, storage: Storage, clock: Callable[[], int] | None = None, wall: Callable[[], int] | None = None
    ) -> None:
        super().__init__(storage, clock, wall)
        self._missed: list[RemoteBlock] = []  # of markets that are read back at the moment

    def _set_time(self) -> int:
        """By the database's clock, which all processes share, unless another one is given."""
        now = self.storage.turn_time if self._clock is steady_milliseconds else self._clock()
        self.markets.follow(now, None)
        return now

    def _overdue(self) -> bool:
        """Always: a process that nobody asks keeps up with the others, so that its next turn is short."""
        return True

    async def _commit_group(self, group: Group) -> list[Any]:
        replies = await super()._commit_group(group)
        if self.storage.has_turn:
            await self.in_writing_thread(self.storage.release)
        return replies

    async def _find_known(self, commands: Sequence[Command]) -> KnownEntries:
        """What storage has, looked up before the turn, and what came in since then, which the turn begins with."""
        known = await super()._find_known(commands)
        while not self.storage.has_turn:
            for block in await self.in_writing_thread(self._follow_others):
                known[block.market] |= {key: entry for entry in block.entries for key in keys(entry)}
        return known

    async def _recover(self) -> None:
        await super()._recover()
        self._missed.clear()

    def _follow_others(self) -> list[RemoteBlock]:
        """What others did since the last turn, done here as well; a market that is read back has it done after that."""
        blocks = self.storage.begin()
        for block in blocks:
            name = next((name for name in self.markets.held if self.markets.numbers[name] == block.market), None)
            if name is None:
                apply_block(self.markets, block)
            else:
                self._missed.append(block)
        return blocks

    def _enter_reread(self, name: str, market: MarketEngine) -> None:
        super()._enter_reread(name, market)
        number, missed, self._missed = self.markets.numbers[name], self._missed, []
        for block in missed:
            if block.market != number:
                self._missed.append(block)
            elif block.entries[0].n > market.chain.n:
                apply_block(self.markets, block)


def apply_block(markets: ServedMarkets, block: RemoteBlock) -> None:
    """Do what another process did in one market, and check that it comes to the same."""
    entries = block.entries
    name = next((name for name, number in markets.numbers.items() if number == block.market), None)
    before = GENESIS if name is None else markets.by_name[name].chain.hash
    if name is None:
        opening, *entries = block.entries
        if not isinstance(opening, Opened):
            raise ServeError(f"expected the opening of market {block.market}, got {opening!r}; restore the database")
        name = opening.spec.market
        dice = MarketDice(name, block.secret)
        markets.by_name[name] = MarketEngine.open(opening.spec, opening.at, dice)
        markets.numbers[name] = block.market
    market = markets.by_name[name]
    if block.entries[0].n + len(block.entries) - 1 != market.chain.n + len(entries):
        raise ServeError(
            f"market {name!r}: expected entry {market.chain.n + 1}, got {block.entries[0].n}; read it back"
        )
    market.chain = _CountingChain(market.chain.n)
    ahead, market.ahead = market.ahead, None  # what was recorded has its times
    advance(market, entries)
    market.ahead = ahead
    market.chain = Chain(Head(market.chain.n, deque(chain_hashes(before, block.lines), maxlen=1)[0]))
    markets.mark_changed(name)
    if market.chain.hash != block.hash:
        raise ServeError(f"market {name!r}: the chain is broken at entry {block.entries[0].n}; replay the ledger")


class _CountingChain(Chain):
    """A chain that only counts: the lines of another process are there already, and need not be written again."""

    def __init__(self, n: int) -> None:
        super().__init__(Head(n, b""))

    def append(self, entry: Entry) -> None:
        self.n += 1

    def extend(self, entries: Sequence[Entry], names: Iterable[str]) -> None:
        self.n += len(entries)


def make_writer(
    storage: Storage, clock: Callable[[], int] | None = None, wall: Callable[[], int] | None = None
) -> Writer:
    """The writer that fits a storage: shared or alone."""
    return (SharedWriter if isinstance(storage, SharedStorage) else Writer)(storage, clock, wall)
