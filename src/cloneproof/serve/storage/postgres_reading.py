"""Reading the ledgers of a PostgreSQL database from outside, in one view of it that no writer disturbs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg

from cloneproof.errors import ServeError
from cloneproof.serve.storage.postgres_link import address_error, without_password
from cloneproof.serve.storage.postgres_schema import SECRETS_SINCE, check_version, schema_version

Blocks = Iterator[tuple[bytes, bytes, str]]
StoredRow = tuple[Callable[[], Blocks], bytes | None, tuple[int, bytes] | None]


@contextmanager
def stored_blocks(address: str) -> Iterator[dict[str, StoredRow]]:
    """What is stored of each market: its blocks (hash before, hash after, lines), its secret, its last snapshot."""
    try:
        with psycopg.connect(address, connect_timeout=5) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            version = schema_version(connection)
            if version is None:
                raise ServeError(
                    f"expected a database of `cloneproof serve`, got {without_password(address)}, which is none"
                )
            check_version(version)
            secret = "secret" if version >= SECRETS_SINCE else "NULL"
            rows = connection.execute(
                f"SELECT name, number, {secret}, entry, body FROM cloneproof.markets"
                " LEFT JOIN cloneproof.snapshots ON market = number ORDER BY number".encode()
            ).fetchall()
            yield {
                name: (partial(_blocks, connection, number), secret, _snapshot(version, entry, body))
                for name, number, secret, entry, body in rows
            }
    except psycopg.Error as problem:
        raise address_error(address, problem) from None


def _snapshot(version: int, entry: int | None, body: bytes | None) -> tuple[int, bytes] | None:
    return None if entry is None or body is None or version < SECRETS_SINCE else (entry, body)


def _blocks(connection: psycopg.Connection, market: int) -> Blocks:
    with connection.cursor(f"ledger_{market}") as cursor:  # on the server's side, a page at a time
        cursor.itersize = 500
        cursor.execute(
            "SELECT hash_before, hash_after, lines FROM cloneproof.ledger WHERE market = %s ORDER BY first", (market,)
        )
        yield from cursor
