"""Reading what a service wrote, without a lock and without writing: for replays and audits of past seasons."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NamedTuple

from cloneproof.errors import ServeError, did_you_mean
from cloneproof.serve.ledger.chain import GENESIS
from cloneproof.serve.ledger.dice import MarketDice, published_dice
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.ledger_replay import Misfit, checked_entries, replay
from cloneproof.serve.market.snapshot import snapshot_difference
from cloneproof.serve.storage import check_driver, display_place, is_postgres
from cloneproof.serve.storage.sqlite_schema import APPLICATION_ID, MIGRATIONS, SECRETS_SINCE

LedgerLines = Iterator[tuple[bytes, bytes | None]]


class StoredLedger(NamedTuple):
    """A market's ledger, to be read as often as needed; with what is stored beside it, where that is at hand."""

    lines: Callable[[], LedgerLines]
    secret: bytes | None = None
    snapshot: tuple[int, bytes] | None = None


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
    with stored_ledgers(place) as by_market:
        if market is not None:
            check_market(place, market, by_market)
        return [replay_market(name, by_market[name]) for name in (by_market if market is None else [market])]


def check_market(place: str, market: str, known: Collection[str]) -> None:
    """Refuse a market that is not among those of the place."""
    if market not in known:
        raise ServeError(
            f"no market {market!r} in {display_place(place)!r}; {did_you_mean(market, known)}it has {sorted(known)}"
        )


def replay_market(name: str, stored: StoredLedger) -> ReplayResult:
    """Replay the ledger of one market, and compare its snapshot with what comes out.

    Without the market's secret the dice are those that the ledger publishes, so that seasons which are settled can be
    checked by anybody who has its lines.
    """
    problem = list[str]()

    def compare_snapshot(market: MarketEngine) -> None:
        if stored.snapshot is not None and market.chain.n == stored.snapshot[0]:
            difference = snapshot_difference(stored.snapshot[1], market)
            problem.extend(() if difference is None else (difference,))

    try:
        dice = MarketDice(name, stored.secret)
        if stored.secret is None:
            dice = published_dice(name, (entry for _, entry in checked_entries(stored.lines())))
        ledger = replay(stored.lines(), dice, compare_snapshot)
    except Misfit as misfit:
        return ReplayResult(name, False, misfit.n - 1, str(misfit))
    balances = {record.agent: record.balance for record in ledger.market.registry.agents.values()}
    if stored.snapshot is not None and stored.snapshot[0] > ledger.entries:
        problem.append("it is of an entry that the ledger does not have")
    if problem:
        at = stored.snapshot[0] if stored.snapshot is not None else 0
        words = f"entry {at}: the ledger fits, its snapshot does not: {problem[0]}; stop the service and start it anew"
        return ReplayResult(name, False, ledger.entries, words, None, balances)
    head = ledger.market.chain.hash.hex()
    if ledger.unchecked is not None:
        words = (
            f"{ledger.unchecked - 1} of {ledger.entries} entries fit, head {head} there; season "
            f"{ledger.market.season} runs with dice that are published when it is settled; the hash chain holds"
        )
        return ReplayResult(name, True, ledger.unchecked - 1, words, head, balances)
    words = f"{ledger.entries} entries fit, head {head}"
    if ledger.market.spec.seed is not None:
        words += " (an older ledger: the seed is in its first entry, and was not committed to)"
    return ReplayResult(name, True, ledger.entries, words, head, balances)


@contextmanager
def ledgers(place: str) -> Iterator[dict[str, LedgerLines]]:
    """The lines of the ledgers at a place, by market."""
    with stored_ledgers(place) as stored:
        yield {name: ledger.lines() for name, ledger in stored.items()}


@contextmanager
def stored_ledgers(place: str) -> Iterator[dict[str, StoredLedger]]:
    """The ledgers at a place, by market, all as they are at one moment, also while it is served."""
    if is_postgres(place):
        check_driver()
        from cloneproof.serve.storage.postgres_reading import stored_blocks

        with stored_blocks(place) as blocks:
            yield {
                name: StoredLedger(partial(_unpacked, rows), secret, snapshot)
                for name, (rows, secret, snapshot) in blocks.items()
            }
        return
    connection = open_for_reading(place)
    try:
        connection.execute("BEGIN")
        new = connection.execute("PRAGMA user_version").fetchone()[0] >= SECRETS_SINCE
        rows = connection.execute(
            f"SELECT name, number, {'secret' if new else 'NULL'}, entry, body FROM markets"
            " LEFT JOIN snapshots ON market = number ORDER BY number"
        ).fetchall()
        yield {
            name: StoredLedger(
                partial(stored_lines, connection, number), secret, (entry, body) if new and entry is not None else None
            )
            for name, number, secret, entry, body in rows
        }
    except sqlite3.DatabaseError as problem:
        raise ServeError(f"{place!r} cannot be read ({problem}); restore it from a copy") from None
    finally:
        connection.close()


def open_for_reading(place: str) -> sqlite3.Connection:
    """A connection that cannot write."""
    if not os.path.isfile(place):
        raise ServeError(f"expected the file of a service, got {place!r}, which is no file; check the path")
    connection = sqlite3.connect(f"file:{_uri_path(place)}?mode={_mode(place)}", uri=True, isolation_level=None)
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.OperationalError as problem:
        connection.close()
        raise ServeError(f"{place!r} cannot be read ({problem}); copy it to a folder that may be written") from None
    except sqlite3.DatabaseError:
        application = version = 0
    if application != APPLICATION_ID or not 1 <= version <= len(MIGRATIONS):
        connection.close()
        raise ServeError(f"expected a file made by `cloneproof serve`, got {place!r}, which is none; check the path")
    return connection


def _mode(place: str) -> str:
    """How to open it: where its folder cannot be written and there is no log, nobody can be writing it."""
    place = os.path.realpath(place)
    fixed = not os.access(os.path.dirname(place), os.W_OK) and not os.path.exists(f"{place}-wal")
    return "ro&immutable=1" if fixed else "ro"


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


def _unpacked(read: Callable[[], Iterable[tuple[bytes, bytes, str]]]) -> LedgerLines:
    return unpack(read())


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
