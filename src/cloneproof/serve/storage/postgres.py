"""PostgreSQL: several service processes on the same markets, in turns.

A turn is a transaction under one advisory lock. It begins with the entries that other processes appended since this
one's last turn, so that every process has the same markets, line by line, and ends with one durable commit for all
waiting calls. A process that dies in its turn loses the connection, the lock and what it had not committed. The primary
key of the ledger is a second guard: a process that missed an entry cannot append one in its place.

Failures are reported to the caller as "try again" and never retried here: the caller's ids make its retries safe.
Everything is in its own PostgreSQL schema, so a database may be shared with other programs.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

import psycopg

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.market.entries import Appended, Entry, decode
from cloneproof.serve.storage.storage import (
    ENTRIES_PER_CHECKPOINT,
    PAGE,
    RemoteBlock,
    Storage,
    StoredMarket,
    new_rows,
)

SCHEMA_LOCK: Final = 0x636C6F6E_00  # "clon"
TURN_LOCK: Final = 0x636C6F6E_01
_cursors: Final = count()

VERSION: Final = 3  # of the schema

SCHEMA: Final = """
    CREATE SCHEMA cloneproof;
    CREATE TABLE cloneproof.schema (version integer NOT NULL);
    CREATE TABLE cloneproof.markets (
        number integer PRIMARY KEY,
        name text NOT NULL UNIQUE,
        secret bytea                    -- of the dice
    );
    CREATE TABLE cloneproof.ledger (
        place bigint PRIMARY KEY,       -- market * 2^40 + number of the first entry of this block
        count integer NOT NULL,
        hash_before bytea NOT NULL,
        hash_after bytea NOT NULL,
        lines text NOT NULL,            -- one JSON object a line
        seq bigint NOT NULL UNIQUE      -- entries of all markets up to and with this block, in the order of commits
    );
    ALTER TABLE cloneproof.ledger ALTER COLUMN lines SET STORAGE EXTERNAL;  -- compressing costs more than it saves
    CREATE TABLE cloneproof.snapshots (market integer PRIMARY KEY, entry bigint NOT NULL, body bytea NOT NULL);
    CREATE TABLE cloneproof.ids (hash bigint NOT NULL, place bigint NOT NULL);  -- derived: the block that has an id
    CREATE INDEX ids_by_hash ON cloneproof.ids (hash);
    CREATE TABLE cloneproof.api_keys (
        id text PRIMARY KEY, role text NOT NULL, agent text, hash bytea NOT NULL, created bigint NOT NULL,
        revoked boolean NOT NULL
    );
"""
# Every statement is a look-up or an append, so only plans by index are right; each commit waits for the disk.
_SETTINGS: Final = (
    "SET search_path = cloneproof; SET synchronous_commit = on; SET jit = off; SET enable_hashjoin = off; "
    "SET enable_mergejoin = off; SET enable_seqscan = off; SET lock_timeout = '10s'; "
    "SET idle_in_transaction_session_timeout = '5s'"
)


class Patience(NamedTuple):
    """How long a process waits, in seconds.

    connect  for a connection
    turn     for a process that does nothing in its turn, before it is taken away
    answer   for the database, in one step; more than two turns
    """

    connect: int = 5
    turn: float = 5.0
    answer: float = 12.0


PATIENCE: Final = Patience()


def make_tables(connection: psycopg.Connection) -> None:
    """Create the tables of a new database; services that start together take turns."""
    with connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '10s'")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
        if not has_tables(connection):
            connection.execute(SCHEMA.encode())
            connection.execute("INSERT INTO cloneproof.schema VALUES (%s)", (VERSION,))


def has_tables(connection: psycopg.Connection) -> bool:
    """Return whether the database has our tables; raises an error for another program's schema or another version."""
    row = connection.execute("SELECT to_regnamespace('cloneproof'), to_regclass('cloneproof.schema')").fetchone()
    assert row is not None
    if row[0] is None:
        return False
    if row[1] is None:
        raise ServeError(
            "expected a database of `cloneproof serve`, got a foreign schema 'cloneproof'; use another one"
        )
    row = connection.execute("SELECT version FROM cloneproof.schema").fetchone()
    if row != (VERSION,):
        raise ServeError(
            f"expected a database of schema {VERSION}, got {row}; open it with the cloneproof that wrote it"
        )
    return True


log = logging.getLogger("cloneproof.serve")


class StorageLost(Refused):
    """Raised if the database does not answer, or not correctly: a retryable 503."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(503, "storage", f"the database is not available ({type(problem).__name__}); try again")


class Link:
    """One connection, opened when needed and again after it broke."""

    def __init__(self, address: str, patience: Patience) -> None:
        self._address, self._patience = address, patience
        self._connection: psycopg.Connection | None = None
        self._since: float | None = None  # when the present use began

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on a living connection."""
        connection = self._connection
        return connection is not None and connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS

    @contextmanager
    def use(self, renew: bool = True) -> Iterator[psycopg.Connection]:
        """Lend the connection; after any fault it is dropped, and with it an open transaction.

        `renew=False` is for the rest of a transaction, which a new connection would not have.
        """
        self._since = time.monotonic()
        try:
            if renew and (self._connection is None or self._connection.closed):
                self._connection = psycopg.connect(
                    self._address, autocommit=True, connect_timeout=self._patience.connect,
                    application_name="cloneproof", keepalives_idle=10, keepalives_interval=5, keepalives_count=3,
                )  # fmt: skip
                self._connection.prepare_threshold = 2
                self._connection.execute(_SETTINGS)
            if self._connection is None:
                raise psycopg.OperationalError("the connection is gone")
            yield self._connection
        except BaseException as problem:
            self.close()
            if isinstance(problem, psycopg.Error) and not isinstance(problem, psycopg.InternalError):
                raise StorageLost(problem) from problem
            raise  # also InternalError, for a damaged page: other pages are not
        finally:
            self._since = None

    def watch(self) -> None:
        """Cut a connection whose use takes too long, e.g. if the server is stopped; the waiting call gets an error."""
        since, connection = self._since, self._connection
        if since is not None and connection is not None and time.monotonic() - since > self._patience.answer:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as cut:
                cut.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the database undoes an open transaction."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def take_turn(connection: psycopg.Connection, seconds: float) -> None:
    """Begin a transaction that has the turn. A process that hangs in its turn loses its connection.

    PostgreSQL ends a transaction that is idle for too long, but not one whose last step was a pipeline, as a commit is.
    So a process that waits for its turn ends the session of one that stopped there.
    """
    for attempt in range(2):
        try:
            connection.execute(
                f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {round(1000 * seconds)}; "
                f"SELECT pg_advisory_xact_lock({TURN_LOCK})".encode()
            )
            return
        except psycopg.errors.LockNotAvailable:
            connection.execute("ROLLBACK")
            if attempt or not _end_hanging_turn(connection, seconds):
                raise


def _end_hanging_turn(connection: psycopg.Connection, seconds: float) -> bool:
    """End the session that has the turn if its process has done nothing for so long; whether there was one."""
    rows = connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE locktype = 'advisory' AND granted AND pg_locks.database = (SELECT oid FROM pg_database"
        "   WHERE pg_database.datname = current_database())"
        " AND classid::bigint << 32 | objid::bigint = %s AND wait_event_type = 'Client'"
        " AND greatest(query_start, state_change) < clock_timestamp() - make_interval(secs => %s)",
        (TURN_LOCK, seconds),
    ).fetchall()
    if rows:
        log.warning("a process that hung in its turn for %g s has lost it", seconds)
    return bool(rows)


def without_password(address: str) -> str:
    """Return an address as it may be shown and logged.

    >>> without_password("postgresql://ana:secret@db/market?sslmode=require")
    'postgresql://ana@db/market'
    """
    try:
        known = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        return "postgresql://..."
    user, host, port = (known.get(name) for name in ("user", "host", "port"))
    where = f"{host or ''}{f':{port}' if port else ''}"
    return f"postgresql://{f'{user}@' if user else ''}{where}/{known.get('dbname', '')}"


def address_error(address: str, problem: Exception) -> ServeError:
    """Return the error for a database that cannot be opened."""
    reason = str(problem).strip().splitlines()[-1:] or [type(problem).__name__]
    return ServeError(f"cannot open {without_password(address)} ({reason[0]}); check the address and that it runs")


def _dialect(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


class _Transaction:
    """Statements of a transaction."""

    def __init__(self, cursor: psycopg.Cursor) -> None:
        self._cursor = cursor

    def execute(self, statement: str, values: Sequence[object] = ()) -> None:
        self._cursor.execute(_dialect(statement), values)

    def executemany(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        self._cursor.executemany(_dialect(statement), rows)


class PostgresStorage(Storage):
    """A service's storage in a database that other processes of the service use at the same time."""

    shared = True
    ids_query = "SELECT hash, place FROM ids WHERE hash = ANY(?::bigint[])"
    has_text = "strpos(lines, ?) > 0"
    blocks_query = "SELECT place, hash_before, hash_after, lines FROM ledger WHERE place = ANY(?::bigint[])"

    def __init__(self, address: str, interval: int = ENTRIES_PER_CHECKPOINT, patience: Patience = PATIENCE) -> None:
        super().__init__()
        self._seq = 0  # entries of all markets that this process has seen
        self._interval, self._patience = interval, patience
        self._writer, self._reader, self._key_link = (Link(address, patience) for _ in range(3))
        try:
            with psycopg.connect(address, autocommit=True, connect_timeout=patience.connect) as connection:
                make_tables(connection)
        except psycopg.Error as problem:
            raise address_error(address, problem) from None

    def check(self) -> None:
        """Do nothing: an unreachable database fails the next call, and `probe`."""

    def probe(self) -> None:
        self._write("UPDATE schema SET version = version")

    def watch(self) -> None:
        for link in (self._key_link, self._reader, self._writer):
            link.watch()

    def _rows(self, statement: str, *values: object) -> list[Any]:
        with self._writer.use() as connection:
            return connection.execute(_dialect(statement), values).fetchall()

    def _read(self, statement: str, *values: object) -> list[Any]:
        with self._reader.use() as connection:
            return connection.execute(_dialect(statement), values).fetchall()

    def _write(self, statement: str, *values: object) -> None:
        with self._key_link.use() as connection:  # not in a turn, which may be rolled back
            connection.execute(_dialect(statement), values)

    @contextmanager
    def _transaction(self) -> Iterator[_Transaction]:
        self.release()  # a turn without new entries is rolled back
        with self._writer.use() as connection, connection.cursor() as cursor, connection.transaction():
            yield _Transaction(cursor)

    def _list(self, values: Iterable[int]) -> str:
        return "{" + ",".join(map(str, values)) + "}"  # a list of Python is written a number at a time

    def markets(self) -> list[StoredMarket]:
        self.release()
        self._seq = self._rows("SELECT coalesce(max(seq), 0) FROM ledger")[0][0]  # first: newer blocks come again
        return super().markets()

    @property
    def has_turn(self) -> bool:
        return self._writer.in_transaction

    def begin(self) -> list[RemoteBlock]:
        with self._writer.use() as connection:
            take_turn(connection, self._patience.turn)
            clock = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
            self.turn_time = int(clock.fetchall()[0][0])
            rows = connection.execute(  # READ COMMITTED, so that it sees everything up to the lock
                "SELECT number, place & ((1::bigint << 40) - 1), seq, hash_after, lines, secret FROM ledger"
                " JOIN markets ON number = place >> 40 WHERE seq > %s ORDER BY seq LIMIT %s",
                (self._seq, PAGE),
            ).fetchall()
            if len(rows) == PAGE:
                connection.execute("ROLLBACK")  # others should not wait while this process catches up
        found = []
        for market, first, seq, hash_, text, secret in rows:
            lines = text.encode().split(b"\n")
            last = first + len(lines) - 1
            if last > self._heads.get(market, 0):  # else it was read when this process started
                entries: list[Entry] = [decode(line) for line in lines]
                found.append(RemoteBlock(market, entries, hash_, secret))
                self._heads[market] = last
            self._seq = seq
        return found

    def release(self) -> None:
        if self.has_turn:
            with self._writer.use(renew=False) as connection:
                connection.execute("ROLLBACK")

    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        seq, (rows, ids) = self._seq, new_rows(appended)
        numbered = [(*row, seq := seq + row[1]) for row in rows]
        with self._writer.use(renew=False) as connection:
            if not self.has_turn:
                raise psycopg.OperationalError("the turn is over")
            with connection.pipeline(), connection.cursor() as cursor:
                self._add_markets(_Transaction(cursor), appended)
                cursor.executemany("INSERT INTO ledger VALUES (%s, %s, %s, %s, %s, %s)", numbered)
                if ids:
                    columns = [self._list(column) for column in zip(*sorted(set(ids)), strict=True)]
                    cursor.execute("INSERT INTO ids SELECT * FROM unnest(%s::bigint[], %s::bigint[])", columns)
                cursor.execute("COMMIT")
        self.checkpoint_due |= seq // self._interval > self._seq // self._interval
        self._seq = seq
        self._heads |= {market: new.first + len(new.lines) - 1 for market, _, new in appended}

    def close(self) -> None:
        for link in (self._key_link, self._reader, self._writer):
            link.close()


@contextmanager
def reading(address: str) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a function that runs queries in one consistent view and reads their rows a page at a time."""
    try:
        with psycopg.connect(address, connect_timeout=PATIENCE.connect) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            if not has_tables(connection):
                raise ServeError(
                    f"expected a database of `cloneproof serve`, got {without_password(address)}, which is none"
                )
            connection.execute("SET LOCAL search_path = cloneproof")
            yield partial(_rows, connection)
    except psycopg.Error as problem:
        raise address_error(address, problem) from None


def _rows(connection: psycopg.Connection, statement: str, *values: object) -> Iterator[Any]:
    with connection.cursor(f"rows_{next(_cursors)}") as cursor:  # on the server's side
        cursor.itersize = PAGE
        cursor.execute(_dialect(statement), values)
        yield from cursor
