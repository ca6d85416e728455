"""The writer of one process among several: before each group it takes its turn and does what the others did.

All processes go through the same entries in the same order, so their markets are equal line by line. A process that
comes to another entry or another hash than the one stored stops before it can write anything, and reads all back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from cloneproof.serve.entries import Entry, Opened, decode
from cloneproof.serve.house import House
from cloneproof.serve.ledger import GENESIS, Chain, Head, chained
from cloneproof.serve.market_engine import MarketEngine
from cloneproof.serve.protocol import ServeError
from cloneproof.serve.replay import follow
from cloneproof.serve.storage.interface import News, SharedStorage, Storage
from cloneproof.serve.writer import Waiting, Writer, milliseconds


class SharedWriter(Writer):
    """The one task of this process that changes markets, in turns with those of other processes."""

    storage: SharedStorage

    def _overdue(self) -> bool:
        """Always: a process that nobody asks keeps up with the others, so that its next turn is short."""
        return True

    async def _done(self, group: Waiting) -> list[Any]:
        storage = self.storage
        while not storage.holds:
            for news in await self.in_turn(storage.begin):
                followed(self.house, news)
        replies = await super()._done(group)
        if storage.holds:
            await self.in_turn(storage.release)
        return replies


def followed(house: House, news: News) -> None:
    """Do what another process did in one market, and check that it comes to the same."""
    entries: list[Entry] = [decode(line) for line in news.lines]
    name = next((name for name, number in house.numbers.items() if number == news.market), None)
    before = GENESIS if name is None else house.markets[name].chain.hash
    if name is None:
        opening = entries.pop(0)
        if not isinstance(opening, Opened):
            raise ServeError(f"expected the opening of market {news.market}, got {opening!r}; restore the database")
        name = opening.spec.market
        house.markets[name] = MarketEngine.opened(opening.spec, opening.at)
        house.numbers[name] = news.market
    market = house.markets[name]
    if market.chain.n + len(entries) != news.first + len(news.lines) - 1:
        raise ServeError(f"market {name!r}: expected entry {market.chain.n + 1}, got {news.first}; read it back")
    market.chain = _Numbers(market.chain.n)
    for entry in entries:
        if follow(market, entry) != entry:
            raise ServeError(f"market {name!r}: entry {entry.n} comes out otherwise here; replay the ledger")
    market.chain = Chain(Head(market.chain.n, deque(chained(before, news.lines), maxlen=1)[0]))
    house.changed(name)
    if market.chain.hash != news.hash:
        raise ServeError(f"market {name!r}: the chain is broken at entry {news.first}; replay the ledger")


class _Numbers(Chain):
    """A chain that only counts: the lines of another process are there already, and need not be written again."""

    def __init__(self, n: int) -> None:
        super().__init__(Head(n, b""))

    def append(self, entry: Entry) -> None:
        self.n += 1


def writer_over(storage: Storage, clock: Callable[[], int] = milliseconds) -> Writer:
    """The writer that a storage needs."""
    return SharedWriter(storage, clock) if isinstance(storage, SharedStorage) else Writer(storage, clock)
