"""Reading one market back from its ledger, beside everything else that goes on."""

from __future__ import annotations

from collections.abc import Sequence

from cloneproof.errors import ServeError
from cloneproof.serve.ledger.dice import MarketDice
from cloneproof.serve.ledger.entries import Entry, Opened, decode
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.ledger_replay import advance
from cloneproof.serve.storage.interface import Line


def follow(market: MarketEngine | None, lines: Sequence[Line], dice: MarketDice) -> MarketEngine:
    """The market after the next lines of its ledger; None is before the first of them."""
    entries: list[Entry] = [decode(line.line) for line in lines]
    if market is None:
        opening, *entries = entries
        if not isinstance(opening, Opened):
            raise ServeError(f"expected a ledger that begins with the opening of a market, got {opening!r}; replay it")
        market = MarketEngine.open(opening.spec, opening.at, dice)
    advance(market, entries)
    market.chain.take()
    if market.chain.hash != lines[-1].hash:
        raise ServeError(f"market {market.spec.market!r}: the chain is broken before entry {lines[-1].n}; replay it")
    return market
