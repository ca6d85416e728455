"""Reading a service's file from outside, without a lock and without writing: for replays and audits of history."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from cloneproof.errors import did_you_mean
from cloneproof.serve.ledger import GENESIS
from cloneproof.serve.protocol import ServeError
from cloneproof.serve.replay import Misfit, replayed
from cloneproof.serve.storage.schema import APPLICATION_ID, MIGRATIONS


@dataclass(frozen=True)
class Finding:
    """What a replay of one market's ledger found."""

    market: str
    fits: bool
    entries: int
    statement: str
    head: str | None = None
    balances: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The finding as data."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.market}: {self.statement}"


def replay_all(place: str, market: str | None = None) -> list[Finding]:
    """Replay one market of a file, or all of them."""
    connection = open_for_reading(place)
    try:
        connection.execute("BEGIN")  # one state of the file, also while it is served
        names = {
            name: number for number, name in connection.execute("SELECT number, name FROM markets ORDER BY number")
        }
        if market is not None and market not in names:
            raise ServeError(f"no market {market!r} in {place!r}; {did_you_mean(market, names)}it has {sorted(names)}")
        return [replay_one(connection, name, names[name]) for name in ([market] if market is not None else names)]
    except sqlite3.DatabaseError as problem:
        raise ServeError(f"{place!r} cannot be read ({problem}); restore it from a copy") from None
    finally:
        connection.close()


def replay_one(connection: sqlite3.Connection, name: str, number: int) -> Finding:
    """Replay the ledger of one market."""
    try:
        done = replayed(stored_lines(connection, number))
    except Misfit as misfit:
        return Finding(name, False, misfit.n - 1, str(misfit))
    balances = {record.agent: record.balance for record in done.market.registry.agents.values()}
    head = done.market.chain.hash.hex()
    return Finding(name, True, done.entries, f"{done.entries} entries fit, head {head}", head, balances)


def open_for_reading(place: str) -> sqlite3.Connection:
    """A connection that cannot write."""
    if not os.path.isfile(place):
        raise ServeError(f"expected the file of a service, got {place!r}, which is no file; check the path")
    connection = sqlite3.connect(f"file:{_quoted(place)}?mode=ro", uri=True, isolation_level=None)
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError:
        application = version = 0
    if application != APPLICATION_ID or not 1 <= version <= len(MIGRATIONS):
        connection.close()
        raise ServeError(f"expected a file made by `cloneproof serve`, got {place!r}, which is none; check the path")
    return connection


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(os.path.abspath(path))


def stored_lines(connection: sqlite3.Connection, number: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Each line of a market's ledger, with the stored hash where there is one: before and after each block."""
    before = GENESIS
    rows = connection.execute(
        "SELECT hash_before, hash_after, lines FROM ledger WHERE place > ? AND place < ? ORDER BY place",
        (number << 40, (number + 1) << 40),
    )
    for hash_before, hash_after, text in rows:
        lines = text.encode().split(b"\n")
        broken = hash_before != before  # then no hash can fit, and the first line of the block is named
        for line in lines[:-1]:
            yield line, b"" if broken else None
        yield lines[-1], b"" if broken else hash_after
        before = hash_after
