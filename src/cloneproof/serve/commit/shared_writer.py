"""The writer of one process among several: before each group it takes its turn and does what the others did.

All processes go through the same entries in the same order, so their markets are equal line by line. A process that
comes to another entry or another hash than the one stored stops before it can write anything, and reads all back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cloneproof.serve.commit.commands import Command
from cloneproof.serve.commit.group_writer import Waiting, Writer, milliseconds
from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.ledger.chain import GENESIS, Chain, Head, chained
from cloneproof.serve.ledger.entries import Entry, Opened, keys
from cloneproof.serve.ledger.terms import ServeError
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.ledger_replay import done_again
from cloneproof.serve.storage.interface import News, SharedStorage, Storage


class SharedWriter(Writer):
    """The one task of this process that changes markets, in turns with those of other processes."""

    storage: SharedStorage

    def _overdue(self) -> bool:
        """Always: a process that nobody asks keeps up with the others, so that its next turn is short."""
        return True

    async def _done(self, group: Waiting) -> list[Any]:
        replies = await super()._done(group)
        if self.storage.holds:
            await self.in_turn(self.storage.release)
        return replies

    async def _known(self, commands: Sequence[Command]) -> KnownEntries:
        """What storage has, looked up before the turn, and what came in since then, which the turn begins with."""
        known = await super()._known(commands)
        while not self.storage.holds:
            for news in await self.in_turn(self.storage.begin):
                followed(self.house, news)
                known[news.market] |= {key: entry for entry in news.entries for key in keys(entry)}
        return known


def followed(house: ServedMarkets, news: News) -> None:
    """Do what another process did in one market, and check that it comes to the same."""
    everything = news.entries
    name = next((name for name, number in house.numbers.items() if number == news.market), None)
    before = GENESIS if name is None else house.markets[name].chain.hash
    entries = everything
    if name is None:
        opening, *entries = everything
        if not isinstance(opening, Opened):
            raise ServeError(f"expected the opening of market {news.market}, got {opening!r}; restore the database")
        name = opening.spec.market
        house.markets[name] = MarketEngine.opened(opening.spec, opening.at)
        house.numbers[name] = news.market
    market = house.markets[name]
    if everything[0].n + len(everything) - 1 != market.chain.n + len(entries):
        raise ServeError(f"market {name!r}: expected entry {market.chain.n + 1}, got {everything[0].n}; read it back")
    market.chain = _Numbers(market.chain.n)
    done_again(market, entries)
    market.chain = Chain(Head(market.chain.n, deque(chained(before, news.lines), maxlen=1)[0]))
    house.changed(name)
    if market.chain.hash != news.hash:
        raise ServeError(f"market {name!r}: the chain is broken at entry {everything[0].n}; replay the ledger")


class _Numbers(Chain):
    """A chain that only counts: the lines of another process are there already, and need not be written again."""

    def __init__(self, n: int) -> None:
        super().__init__(Head(n, b""))

    def append(self, entry: Entry) -> None:
        self.n += 1

    def extend(self, entries: Sequence[Entry], names: Iterable[str]) -> None:
        self.n += len(entries)


def writer_over(storage: Storage, clock: Callable[[], int] = milliseconds) -> Writer:
    """The writer that a storage needs."""
    return SharedWriter(storage, clock) if isinstance(storage, SharedStorage) else Writer(storage, clock)
