"""The end of a season as a command: rewards that are done after it, in the same group, meet the defaults it enters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.ledger.entries import keys
from cloneproof.serve.market.engine import MarketEngine


@dataclass(frozen=True, slots=True)
class Settle:
    """Settle a market's season; the reply is a view of the market then."""

    market: str
    view: Callable[[MarketEngine], Any]
    size = 1

    def wanted_keys(self, markets: ServedMarkets) -> None:
        """None."""

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        market = markets.market(self.market)
        seen = known[markets.numbers[self.market]]
        while (entry := market.settle_one(now)) is not None:
            seen |= dict.fromkeys(keys(entry), entry)
        market.settle(now)
        return self.view(market)
