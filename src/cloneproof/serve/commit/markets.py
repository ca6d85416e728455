"""All markets of one service: found by name, brought back at a start, and what is new in them collected for storage."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from cloneproof.serve.ledger.chain import Appended
from cloneproof.serve.ledger.entries import Entry, keys
from cloneproof.serve.ledger.terms import MarketSpec, Refused, completed
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.snapshot import recovered, taken
from cloneproof.serve.storage.interface import Storage

KnownEntries = defaultdict[int, dict[str, Entry]]


class ServedMarkets:
    """The markets, by name; each has a number for life, from 1."""

    def __init__(self) -> None:
        self.markets: dict[str, MarketEngine] = {}
        self.numbers: dict[str, int] = {}
        self._changed: set[str] = set()  # since the last checkpoint

    @classmethod
    def recovered(cls, storage: Storage) -> ServedMarkets:
        """The house as storage has it."""
        house = cls()
        for number, name, snapshot, lines in storage.markets():
            house.markets[name] = recovered(snapshot, lines)
            house.numbers[name] = number
            house._changed.add(name)
        return house

    def market(self, name: str) -> MarketEngine:
        """A market by name."""
        found = self.markets.get(name)
        if found is None:
            raise Refused(
                404, "unknown_market", f"expected a market of this service, got {name[:64]!r}; create it first"
            )
        return found

    def number(self, name: str) -> int:
        """The number of a market."""
        self.market(name)
        return self.numbers[name]

    def create(self, spec: MarketSpec, at: int) -> tuple[MarketEngine, bool]:
        """A new market, or the one that was declared in the same words before; whether it is new."""
        known, whole = self.markets.get(spec.market), completed(spec)
        if known is not None:
            if spec.seed is None:
                whole = msgspec.structs.replace(whole, seed=known.spec.seed)
            if whole == known.spec:
                return known, False
            raise Refused(
                409, "exists", f"market {spec.market!r} exists with other terms, which are fixed; name another"
            )
        made = self.markets[spec.market] = MarketEngine.opened(whole, at)
        self.numbers[spec.market] = len(self.numbers) + 1
        return made, True

    def expire(self, at: int, known: KnownEntries) -> None:
        """Enter default rewards wherever a wait window is over."""
        for name, market in self.markets.items():
            for entry in market.expire(at):
                for key in keys(entry):
                    known[self.numbers[name]][key] = entry

    def changed(self, name: str) -> None:
        """A market went on by what another process did, so that a snapshot of it is worth taking."""
        self._changed.add(name)

    def take(self) -> list[tuple[int, str, Appended]]:
        """What is new in any market since the last call."""
        found = []
        for name, market in self.markets.items():
            new = market.chain.take()
            if new is not None:
                self._changed.add(name)
                found.append((self.numbers[name], name, new))
        return found

    def snapshots(self) -> dict[int, bytes]:
        """Snapshots of what changed since the last call."""
        found = {self.numbers[name]: taken(self.markets[name]) for name in sorted(self._changed)}
        self._changed.clear()
        return found
