"""All markets of one service, by name: recovered at a start, and what is new in them collected for storage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import islice

import msgspec

from cloneproof.errors import Refused
from cloneproof.serve.ledger.chain import Appended
from cloneproof.serve.ledger.dice import make_secret
from cloneproof.serve.ledger.entries import Entry, keys
from cloneproof.serve.ledger.terms import MarketSpec
from cloneproof.serve.market.declaration import declared_market
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.snapshot import recover, take_snapshot
from cloneproof.serve.storage.interface import Storage

KnownEntries = defaultdict[int, dict[str, Entry]]


class ServedMarkets:
    """The markets, by name; each has a number for life, from 1."""

    def __init__(self) -> None:
        self.by_name: dict[str, MarketEngine] = {}
        self.numbers: dict[str, int] = {}
        self.out_of_time: Callable[[], bool] | None = None  # whether the command that runs has had its time
        self.stored: set[str] = set()  # those whose opening is
        self.held: set[str] = set()  # read back from storage at the moment, and not to be touched
        self._changed: set[str] = set()  # since the last checkpoint

    @classmethod
    def recover(cls, storage: Storage) -> ServedMarkets:
        """The markets as storage has them."""
        markets = cls()
        for number, name, snapshot, lines, secret in storage.markets():
            markets.by_name[name] = recover(snapshot, lines, secret)
            markets.numbers[name] = number
            markets.mark_changed(name)
        return markets

    def market(self, name: str) -> MarketEngine:
        """A market by name."""
        market = self.by_name.get(name)
        if market is None:
            raise Refused(
                404, "unknown_market", f"expected a market of this service, got {name[:64]!r}; create it first"
            )
        return market

    def number(self, name: str) -> int:
        """The number of a market."""
        self.market(name)
        return self.numbers[name]

    def create(self, spec: MarketSpec, at: int, declared: MarketEngine | None = None) -> tuple[MarketEngine, bool]:
        """A new market, or the one that was declared in the same words before; whether it is new.

        `declared` is what `declared_market` made of the spec beforehand.
        """
        known = self.by_name.get(spec.market)
        market = declared or declared_market(spec)
        if known is not None:
            if market.spec == msgspec.structs.replace(known.spec, seed=None) and _seed_fits(spec.seed, known):
                return known, False
            raise Refused(
                409, "exists", f"market {spec.market!r} exists with other terms, which are fixed; name another"
            )
        market.enter_opening(at)
        self.by_name[spec.market] = market
        self.numbers[spec.market] = len(self.numbers) + 1
        return market, True

    def follow(self, steady: int, wall: int | None) -> None:
        """Set the time of every market."""
        for market in self.by_name.values():
            market.follow(steady, wall)

    def keep_time_of(self, others: ServedMarkets) -> None:
        """Go on with the time of the same markets as they were before they were read back."""
        for name, market in self.by_name.items():
            if name in others.by_name:
                market.ahead = others.by_name[name].ahead

    def expire(self, at: int, known: KnownEntries, most: int = 1000) -> set[str]:
        """Enter default rewards where a wait window is over, so many in all; the markets that may have more of them."""
        overdue = [name for name, market in self.by_name.items() if market.overdue(at) and name not in self.held]
        more, share = set[str](), max(1, most // max(1, len(overdue)))
        for name in overdue:
            entries = list(islice(self.by_name[name].expire(at), share))
            known[self.numbers[name]] |= {key: entry for entry in entries for key in keys(entry)}
            if len(entries) == share:
                more.add(name)
        return more

    def mark_changed(self, name: str) -> None:
        """A market has entries that are stored, or are about to be, so that a snapshot of it is worth taking."""
        self._changed.add(name)
        self.stored.add(name)

    def take(self) -> list[tuple[int, str, Appended]]:
        """What is new in any market since the last call."""
        appended = []
        for name, market in self.by_name.items():
            new = None if name in self.held else market.chain.take()
            if new is not None:
                self.mark_changed(name)
                if new.first == 1:
                    new = new._replace(secret=market.dice.secret)
                appended.append((self.numbers[name], name, new))
        return appended

    def mark_unchanged(self, name: str) -> None:
        """A snapshot of a market is about to be taken."""
        self._changed.discard(name)

    def changed(self) -> list[str]:
        """The markets that changed since their last snapshot."""
        return sorted(self._changed, reverse=True)

    def snapshot_possible(self, name: str) -> bool:
        """Not of a market that is just being settled or read back."""
        return name not in self.held and not self.by_name[name].settling

    def take_snapshots(self) -> dict[int, bytes]:
        """Snapshots of what changed since the last call; of a market that is just being settled, the next time."""
        taken = [name for name in self.changed() if self.snapshot_possible(name)]
        self._changed.difference_update(taken)
        return {self.numbers[name]: take_snapshot(self.by_name[name]) for name in taken}


def _seed_fits(seed: int | None, market: MarketEngine) -> bool:
    """Whether a seed, if one is named, is the one that a market was declared with."""
    if seed is None or market.spec.seed is not None:
        return seed is None or seed == market.spec.seed
    return make_secret(seed) == market.dice.secret
