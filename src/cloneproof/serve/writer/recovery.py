"""Recovery: markets from what storage has recorded, after a fault in one of them or a failure of storage.

Storage is right and memory is not: what a failed group did to a market was never acknowledged. All of this tries again
until storage answers, or the service stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from cloneproof.errors import ServeError
from cloneproof.serve.market.entries import decode
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import go_on
from cloneproof.serve.storage.storage import Line, Storage
from cloneproof.serve.writer.background import Background, log_failure
from cloneproof.serve.writer.markets import ServedMarkets

PAGE: Final = 1000  # lines that are read back at a time


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
    market = go_on(market, [decode(line.line) for line in lines], secret)
    if market.chain.hash != lines[-1].hash:
        raise ServeError(f"market {market.spec.market!r}: the chain is broken before entry {lines[-1].n}; replay it")
    return market
