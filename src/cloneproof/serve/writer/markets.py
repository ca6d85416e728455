"""All markets of one service by name: recovered at the start, their new entries collected for storage."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.market.dice import make_secret
from cloneproof.serve.market.entries import Appended, Known, by_key, decode
from cloneproof.serve.market.limits import declared_market
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import SnapshotError, go_on, recover, take_snapshot
from cloneproof.serve.market.terms import MarketSpec
from cloneproof.serve.storage.storage import Line, RemoteBlock, Storage

log = logging.getLogger("cloneproof.serve")
KnownEntries = defaultdict[int, Known]  # by the number of a market


class ServedMarkets:
    """Markets by name; each has a permanent number, from 1."""

    def __init__(self) -> None:
        self.by_name: dict[str, LiveMarket] = {}
        self.numbers: dict[str, int] = {}
        self.names: dict[int, str] = {}  # by number
        self.out_of_time: Callable[[], bool] | None = None  # whether the running command has used up its time
        self.stored: set[str] = set()  # those whose opening is stored
        self.unreadable: dict[str, Refused] = {}  # those whose ledger is damaged
        self.held: set[str] = set()  # those that are being read back or copied, and must not change
        self.changed: set[str] = set()  # since their last snapshot
        self._touched: set[str] = set()  # since entries were taken
        self._clocks: tuple[int, int | None] | None = None  # as they were shown last

    @classmethod
    def recover(cls, storage: Storage) -> ServedMarkets:
        """Read all markets back; one that is damaged is set aside, unless no other is left to serve."""
        markets = cls()
        for number, name, read, secret in storage.markets():
            try:
                try:
                    market = recover(*read(), secret)
                except SnapshotError as problem:
                    log.warning("market %r: %s; it is rebuilt now", name, problem)
                    market = recover(*read(whole=True), secret)
                markets.enter(number, market)
            except (ServeError, msgspec.MsgspecError) as damage:
                storage.set_aside(number)
                markets.numbers[name], markets.names[number] = number, name
                markets.unreadable[name] = Refused(503, "storage", f"market {name!r} cannot be read: {damage}")
        for refusal in markets.unreadable.values():
            if not markets.by_name:
                raise ServeError(refusal.message)
            log.error(refusal.message)
        return markets

    def enter(self, number: int, market: LiveMarket) -> None:
        name = market.spec.market
        self.by_name[name], self.numbers[name], self.names[number] = market, number, name
        self.mark_changed(name)

    def apply(self, block: RemoteBlock) -> None:
        """Apply a block that another process wrote to one market, and check that the result is the same."""
        market = self.by_name.get(self.names.get(block.market, ""))
        first, expected, ahead = block.entries[0].n, 1, None
        if market is not None:
            expected, ahead, market.ahead = market.chain.n + 1, market.ahead, None  # recorded entries have their times
        if first != expected:
            raise ServeError(f"market {block.market}: expected entry {expected}, got {first}; read it back")
        market = go_on(market, block.entries, block.secret)
        market.ahead = ahead
        self.enter(block.market, market)
        _check_head(market, block.hash)

    @property
    def awaiting(self) -> set[str]:
        """Those that run, so that wait windows may end."""
        return {name for name, market in self.by_name.items() if market.session is not None}

    def market(self, name: str, agent: str | None = None) -> LiveMarket:
        """Find a market by name, which the caller may change; an agent's key only where the agent is registered."""
        market = self.by_name.get(name)
        if name in self.unreadable:
            raise self.unreadable[name]
        if market is None or (agent is not None and agent not in market.registry):
            raise Refused(
                404, "unknown_market", f"expected a market of this service, got {name[:64]!r}; create it first"
            )
        self._touched.add(name)
        return market

    def number(self, name: str, agent: str | None = None) -> int:
        self.market(name, agent)
        return self.numbers[name]

    def create(self, spec: MarketSpec, at: int, declared: LiveMarket | None = None) -> tuple[LiveMarket, bool]:
        """Create a market, or return an existing one with the same terms; and whether it is new.

        `declared` is the result of `declared_market` for the spec.
        """
        if spec.market in self.unreadable:
            raise self.unreadable[spec.market]
        known = self.by_name.get(spec.market)
        market = declared or declared_market(spec)
        if known is not None:
            if market.spec == known.spec and (spec.seed is None or make_secret(spec.seed) == known.dice.secret):
                return known, False
            fields = (name for name in spec.__struct_fields__ if name != "seed")
            other = [name for name in fields if getattr(market.spec, name) != getattr(known.spec, name)] or ["seed"]
            raise Refused(
                409,
                "exists",
                f"market {spec.market!r} exists with other terms ({', '.join(other)}), which are fixed; name another",
            )
        if self._clocks is not None:
            market.follow(*self._clocks)
        market.enter_opening(at)
        self.by_name[spec.market] = market
        number = self.numbers[spec.market] = len(self.numbers) + 1
        self.names[number] = spec.market
        self._touched.add(spec.market)
        return market, True

    def follow(self, steady: int, wall: int | None, names: Iterable[str]) -> None:
        """Set the time of these markets; the others follow when they are needed."""
        self._clocks = steady, wall
        for name in names:
            self.by_name[name].follow(steady, wall)

    def keep_time_of(self, others: ServedMarkets) -> None:
        """Continue the time of the same markets from before they were read back."""
        for name, market in self.by_name.items():
            if name in others.by_name:
                market.ahead = others.by_name[name].ahead

    def expire(self, at: int, known: KnownEntries, names: Iterable[str], most: int = 1000) -> set[str]:
        """Enter at most `most` default rewards in markets with an overdue window; return those that may have more."""
        overdue = [name for name in names if self.by_name[name].first_overdue(at) and name not in self.held]
        more, share = set[str](), max(1, most // max(1, len(overdue)))
        for name in overdue:
            entries = self.market(name).expire(at, share)
            known[self.numbers[name]] |= by_key(entries)
            if len(entries) == share:
                more.add(name)
        return more

    def mark_changed(self, name: str) -> None:
        """Note that a market has new entries in storage, so that the next checkpoint takes a snapshot of it."""
        self.changed.add(name)
        self.stored.add(name)

    def take(self) -> list[tuple[int, str, Appended]]:
        """Return the new entries of all markets since the last call."""
        appended, touched = [], sorted(self._touched & self.by_name.keys())
        self._touched.clear()
        for name in touched:
            market = self.by_name[name]
            new = None if name in self.held else market.chain.take()
            if new is not None:
                self.mark_changed(name)
                if new.first == 1:
                    new = new._replace(secret=market.dice.secret)
                appended.append((self.numbers[name], name, new))
        return appended

    def snapshot_possible(self, name: str) -> bool:
        """Whether a snapshot can be taken: not while a market is being settled or read back."""
        return name not in self.held and not self.by_name[name].settling

    def take_snapshots(self) -> dict[int, bytes]:
        """Take snapshots of the markets that changed since the last call, if possible now."""
        taken = [name for name in self.changed if self.snapshot_possible(name)]
        self.changed.difference_update(taken)
        return {self.numbers[name]: take_snapshot(self.by_name[name]) for name in taken}


def follow_lines(market: LiveMarket | None, lines: Sequence[Line], secret: bytes | None) -> LiveMarket:
    """Return the market after the next lines of its ledger; None stands for no market yet."""
    market = go_on(market, [decode(line.line) for line in lines], secret)
    _check_head(market, lines[-1].hash)
    return market


def _check_head(market: LiveMarket, stored: bytes) -> None:
    """Refuse a market whose last hash is not the stored one."""
    if market.chain.hash != stored:
        raise ServeError(f"market {market.spec.market!r}: the chain is broken before entry {market.chain.n}; replay it")
