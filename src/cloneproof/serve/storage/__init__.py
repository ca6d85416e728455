"""Where a service keeps its data: ledgers, and what is derived from them (snapshots, an index of ids)."""

from __future__ import annotations

from typing import Any

from cloneproof.errors import ServeError
from cloneproof.serve.storage.sqlite import SqliteStorage
from cloneproof.serve.storage.storage import Storage


def is_postgres(place: str) -> bool:
    """Return whether a place is the address of a PostgreSQL database."""
    return place.startswith(("postgresql://", "postgres://"))


def display_place(place: str) -> str:
    """Return a place without its password, for printing."""
    shown: str = postgres_module().without_password(place) if is_postgres(place) else place
    return shown


def open_storage(place: str) -> Storage:
    """Open the storage at a place: `:memory:`, the address of a PostgreSQL database, or the path of an SQLite file."""
    storage: Storage = postgres_module().PostgresStorage(place) if is_postgres(place) else SqliteStorage(place)
    return storage


def postgres_module() -> Any:  # noqa: ANN401 (the module needs optional packages)
    """Return the module of PostgreSQL, or an error that says what to install."""
    try:
        import psycopg  # noqa: F401

        from cloneproof.serve.storage import postgres as module
    except ImportError:
        raise ServeError(
            "expected the packages for PostgreSQL, got no 'psycopg'; install cloneproof[postgres]"
        ) from None
    return module
