"""A connection to PostgreSQL that comes back: what fails is told to the caller as "try again", never tried again here.

Only the caller may repeat, because its ids make that safe.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.storage.postgres_schema import TURN_LOCK

TURN_SECONDS: Final = 10.0  # how long others wait for a process that does nothing in its turn
log = logging.getLogger("cloneproof.serve")

# Every statement is a look-up or an append: no plan but by index is ever right, and each commit is on disk.
_SETTINGS: Final = (
    "SET synchronous_commit = on; SET jit = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "
    "SET enable_seqscan = off; SET lock_timeout = '30s'; SET idle_in_transaction_session_timeout = '10s'"
)


class StorageLost(Refused):
    """The database does not answer, or not as it should: an answer of 503 that says to try again."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(503, "storage", f"the database is not available ({type(problem).__name__}); try again")


class Link:
    """One connection, made when it is needed and again after it broke."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: psycopg.Connection | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on a living connection."""
        connection = self._connection
        return connection is not None and connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS

    @contextmanager
    def use(self, renew: bool = True) -> Iterator[psycopg.Connection]:
        """The connection; after any fault it is dropped, and with it whatever transaction was open.

        `renew=False` is for the rest of a transaction: a new connection would know nothing of it.
        """
        try:
            if renew and (self._connection is None or self._connection.closed):
                self._connection = open_connection(self._address)
            if self._connection is None:
                raise psycopg.OperationalError("the connection is gone")
            yield self._connection
        except psycopg.Error as problem:
            self.close()
            raise StorageLost(problem) from problem
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close it; an open transaction is undone by the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def open_connection(address: str) -> psycopg.Connection:
    """A connection with the settings that the storage relies on."""
    connection = psycopg.connect(
        address, autocommit=True, connect_timeout=5, application_name="cloneproof", keepalives_idle=10,
        keepalives_interval=5, keepalives_count=3,
    )  # fmt: skip
    connection.prepare_threshold = 2
    connection.execute(_SETTINGS)
    return connection


def take_turn(connection: psycopg.Connection) -> None:
    """Begin a transaction that has the turn. A process that hangs in its turn loses it, and with it its connection.

    PostgreSQL ends a transaction that is idle for too long, but not one in which a pipeline was used last, so there is
    none here. A commit is one: whoever waits for its turn ends the session of a process that stopped in the middle.
    """
    for attempt in range(2):
        try:
            connection.execute(
                f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {round(1000 * TURN_SECONDS)}; "
                f"SELECT pg_advisory_xact_lock({TURN_LOCK})".encode()
            )
            return
        except psycopg.errors.LockNotAvailable:
            connection.execute("ROLLBACK")
            if attempt or not _end_hanging_turn(connection):
                raise


def _end_hanging_turn(connection: psycopg.Connection) -> bool:
    """End the session that has the turn, if it has waited for its own process for so long; whether there was one."""
    rows = connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE locktype = 'advisory' AND granted AND pg_locks.database = (SELECT oid FROM pg_database"
        "   WHERE pg_database.datname = current_database())"
        " AND classid::bigint << 32 | objid::bigint = %s AND wait_event_type = 'Client'"
        " AND greatest(query_start, state_change) < clock_timestamp() - make_interval(secs => %s)",
        (TURN_LOCK, TURN_SECONDS),
    ).fetchall()
    if rows:
        log.warning("a process that hung in its turn for %g s has lost it", TURN_SECONDS)
    return bool(rows)


def without_password(address: str) -> str:
    """An address as it may be shown and logged.

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
    """What is said about a database that cannot be opened at a start."""
    reason = str(problem).strip().splitlines()[-1:] or [type(problem).__name__]
    return ServeError(f"cannot open {without_password(address)} ({reason[0]}); check the address and that it runs")
