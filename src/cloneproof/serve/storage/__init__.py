"""Where a service keeps what must not be lost: ledgers, and what is derived from them (snapshots, an index of ids).

A storage is a small interface; there is nothing about markets in it. `open_storage` names one by its place.
"""

from __future__ import annotations

from cloneproof.errors import ServeError
from cloneproof.serve.storage.sql import Storage
from cloneproof.serve.storage.sqlite import SqliteStorage


def is_postgres(place: str) -> bool:
    """Whether a place is the address of a PostgreSQL database."""
    return place.startswith(("postgresql://", "postgres://"))


def display_place(place: str) -> str:
    """A place as it may be printed: without a password."""
    if not is_postgres(place):
        return place
    check_driver()
    from cloneproof.serve.storage.postgres import without_password

    return without_password(place)


def open_storage(place: str) -> Storage:
    """The storage at a place: `:memory:`, the address of a PostgreSQL database, or the path of an SQLite file."""
    if not is_postgres(place):
        return SqliteStorage(place)
    check_driver()
    from cloneproof.serve.storage.postgres import PostgresStorage

    return PostgresStorage(place)


def check_driver() -> None:
    """Say what to install, where the packages for PostgreSQL are not there."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise ServeError(
            "expected the packages for PostgreSQL, got no 'psycopg'; install cloneproof[postgres]"
        ) from None
