"""The writer of one process among several: before each group it takes its turn and does what the others did.

All processes go through the same entries in the same order, so their markets are equal line by line; the hash after
each block of lines says so, and a process that comes to another one stops before it can write anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloneproof.serve.entries import Entry, Opened, decode
from cloneproof.serve.house import House
from cloneproof.serve.market_engine import MarketEngine
from cloneproof.serve.protocol import ServeError
from cloneproof.serve.replay import follow
from cloneproof.serve.storage.interface import News, SharedStorage, Storage
from cloneproof.serve.writer import Waiting, Writer, milliseconds


class SharedWriter(Writer):
    """The one task of this process that changes markets, in turns with those of other processes."""

    storage: SharedStorage

    def _idle(self) -> bool:
        """Never: a process that nobody asks keeps up with the others, so that its next turn is short."""
        return False

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
    if name is None:
        opening = entries.pop(0)
        if not isinstance(opening, Opened):
            raise ServeError(f"expected the opening of market {news.market}, got {opening!r}; restore the database")
        name = opening.spec.market
        house.markets[name] = MarketEngine.opened(opening.spec, opening.at)
        house.numbers[name] = news.market
    market = house.markets[name]
    for entry in entries:
        follow(market, entry)
    market.chain.take()
    house.changed(name)
    if market.chain.head != (news.first + len(news.lines) - 1, news.hash):
        raise ServeError(f"market {name!r}: entries from {news.first} on come out otherwise here; replay the ledger")


def writer_over(storage: Storage, clock: Callable[[], int] = milliseconds) -> Writer:
    """The writer that a storage needs."""
    return SharedWriter(storage, clock) if isinstance(storage, SharedStorage) else Writer(storage, clock)
