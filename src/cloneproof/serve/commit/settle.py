"""The end of a season as a command: rewards that are done after it, in the same group, meet the defaults it enters.

A season with many rewards missing is settled over several groups, so that other markets go on meanwhile. Its own calls
wait; after a crash in between, the next start goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cloneproof.serve.commit.commands import LATER
from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.ledger.entries import keys
from cloneproof.serve.market.engine import MarketEngine

DEFAULTS_AT_ONCE: Final = 200  # in one group


@dataclass(frozen=True, slots=True)
class Settle:
    """Settle a market's season; the reply is a view of the market then."""

    market: str
    view: Callable[[MarketEngine], Any]
    size = 1

    def part(self, start: int, most: int) -> Settle:
        return self

    def wanted_keys(self, markets: ServedMarkets) -> None:
        """None."""

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        market = markets.market(self.market)
        seen = known[markets.numbers[self.market]]
        entries = market.settle_some(now, DEFAULTS_AT_ONCE)
        seen |= {key: entry for entry in entries for key in keys(entry)}
        if len(entries) == DEFAULTS_AT_ONCE:
            return LATER
        market.settle(now)
        return self.view(market)
