"""Reading what a service wrote, without a lock and without writing: for replays and audits of past seasons."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from cloneproof.errors import ServeError, did_you_mean
from cloneproof.serve.ledger.chain import GENESIS
from cloneproof.serve.market.ledger_replay import Misfit, replay
from cloneproof.serve.storage import check_driver, display_place, is_postgres
from cloneproof.serve.storage.sqlite_schema import APPLICATION_ID, MIGRATIONS

LedgerLines = Iterator[tuple[bytes, bytes | None]]


@dataclass(frozen=True)
class ReplayResult:
    """What a replay of one market's ledger came to."""

    market: str
    fits: bool
    entries: int
    statement: str
    head: str | None = None
    balances: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.market}: {self.statement}"


def replay_all(place: str, market: str | None = None) -> list[ReplayResult]:
    """Replay one market of a file or a database, or all of them."""
    with ledgers(place) as by_market:
        if market is not None:
            check_market(place, market, by_market)
        return [replay_market(name, by_market[name]) for name in (by_market if market is None else [market])]


def check_market(place: str, market: str, known: Collection[str]) -> None:
    """Refuse a market that is not among those of the place."""
    if market not in known:
        raise ServeError(
            f"no market {market!r} in {display_place(place)!r}; {did_you_mean(market, known)}it has {sorted(known)}"
        )


def replay_market(name: str, lines: LedgerLines) -> ReplayResult:
    """Replay the ledger of one market."""
    try:
        ledger = replay(lines)
    except Misfit as misfit:
        return ReplayResult(name, False, misfit.n - 1, str(misfit))
    balances = {record.agent: record.balance for record in ledger.market.registry.agents.values()}
    head = ledger.market.chain.hash.hex()
    return ReplayResult(name, True, ledger.entries, f"{ledger.entries} entries fit, head {head}", head, balances)


@contextmanager
def ledgers(place: str) -> Iterator[dict[str, LedgerLines]]:
    """The ledgers at a place, by market, all as they are at one moment, also while it is served."""
    if is_postgres(place):
        check_driver()
        from cloneproof.serve.storage.postgres_reading import stored_blocks

        with stored_blocks(place) as blocks:
            yield {name: unpack(rows) for name, rows in blocks.items()}
        return
    connection = open_for_reading(place)
    try:
        connection.execute("BEGIN")
        names = connection.execute("SELECT name, number FROM markets ORDER BY number").fetchall()
        yield {name: stored_lines(connection, number) for name, number in names}
    except sqlite3.DatabaseError as problem:
        raise ServeError(f"{place!r} cannot be read ({problem}); restore it from a copy") from None
    finally:
        connection.close()


def open_for_reading(place: str) -> sqlite3.Connection:
    """A connection that cannot write."""
    if not os.path.isfile(place):
        raise ServeError(f"expected the file of a service, got {place!r}, which is no file; check the path")
    connection = sqlite3.connect(f"file:{_uri_path(place)}?mode=ro", uri=True, isolation_level=None)
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError:
        application = version = 0
    if application != APPLICATION_ID or not 1 <= version <= len(MIGRATIONS):
        connection.close()
        raise ServeError(f"expected a file made by `cloneproof serve`, got {place!r}, which is none; check the path")
    return connection


def _uri_path(path: str) -> str:
    from urllib.parse import quote

    return quote(os.path.abspath(path))


def stored_lines(connection: sqlite3.Connection, number: int) -> LedgerLines:
    """Each line of a market's ledger in a file, with the stored hash where there is one."""
    return unpack(
        connection.execute(
            "SELECT hash_before, hash_after, lines FROM ledger WHERE place > ? AND place < ? ORDER BY place",
            (number << 40, (number + 1) << 40),
        )
    )


def unpack(rows: Iterable[tuple[bytes, bytes, str]]) -> LedgerLines:
    """The lines of stored blocks: hash before, hash after, lines. A hash is stored before and after each block."""
    before = GENESIS
    for hash_before, hash_after, text in rows:
        lines = text.encode().split(b"\n")
        broken = hash_before != before  # then no hash can fit, and the first line of the block is named
        for line in lines[:-1]:
            yield line, b"" if broken else None
        yield lines[-1], b"" if broken else hash_after
        before = hash_after
