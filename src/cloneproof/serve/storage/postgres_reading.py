"""Reading the ledgers of a PostgreSQL database from outside, in one view of it that no writer disturbs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from cloneproof.errors import ServeError
from cloneproof.serve.storage.postgres_link import address_error, without_password
from cloneproof.serve.storage.postgres_schema import check_version, schema_version

Blocks = Iterator[tuple[bytes, bytes, str]]


@contextmanager
def stored_blocks(address: str) -> Iterator[dict[str, Blocks]]:
    """The stored blocks of each market: hash before, hash after, lines."""
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
            rows = connection.execute("SELECT name, number FROM cloneproof.markets ORDER BY number").fetchall()
            yield {name: _blocks(connection, number) for name, number in rows}
    except psycopg.Error as problem:
        raise address_error(address, problem) from None


def _blocks(connection: psycopg.Connection, market: int) -> Blocks:
    with connection.cursor(f"ledger_{market}") as cursor:  # on the server's side, a page at a time
        cursor.itersize = 500
        cursor.execute(
            "SELECT hash_before, hash_after, lines FROM cloneproof.ledger WHERE market = %s ORDER BY first", (market,)
        )
        yield from cursor
