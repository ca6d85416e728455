"""The SQLite schema, as numbered migrations: `user_version` says how many a file has been through."""

from __future__ import annotations

from typing import Any, Final, Protocol

from cloneproof.errors import ServeError

APPLICATION_ID: Final = 0x636C6F6E  # "clon"

SECRETS_SINCE: Final = 3  # the version since which markets have secrets, and snapshots are sealed

MIGRATIONS: Final = (
    """
    CREATE TABLE markets (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE ledger (
        place INTEGER PRIMARY KEY,     -- market * 2^40 + number of the first entry
        count INTEGER NOT NULL,
        hash_before BLOB NOT NULL,
        hash_after BLOB NOT NULL,
        lines TEXT NOT NULL            -- one JSON object a line
    );
    CREATE TABLE snapshots (market INTEGER PRIMARY KEY, entry INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE seen (                -- derived: ids of entries before the last checkpoint
        chunk INTEGER PRIMARY KEY,     -- generation * 256 + first byte of the hashes
        hashes BLOB NOT NULL,
        places BLOB NOT NULL
    );
    CREATE TABLE api_keys (
        id TEXT PRIMARY KEY, role TEXT NOT NULL, agent TEXT, hash BLOB NOT NULL, created INTEGER NOT NULL,
        revoked INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    "DELETE FROM snapshots;",  # snapshots of version 2
    """
    -- the secret of the dice; none where the seed is in the ledger
    ALTER TABLE markets ADD COLUMN secret BLOB;
    -- over `seen`, and over the entries that snapshots were taken at
    CREATE TABLE seal (digest BLOB NOT NULL);
    -- snapshots of version 3
    DELETE FROM snapshots;
    DELETE FROM seen;
    """,
)


class Connection(Protocol):
    """What is used of a connection: `sqlite3` and `apsw` both have it."""

    def execute(self, statement: str, bindings: Any = ..., /) -> Any:  # noqa: ANN401
        """Run one statement."""

    def executemany(self, statement: str, rows: Any, /) -> Any:  # noqa: ANN401
        """Run one statement for every row."""

    def close(self) -> None:
        """Close it."""


def check_file(connection: Connection) -> None:
    """Refuse another program's file, or one of a later version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise ServeError("expected a file made by `cloneproof serve`, got another SQLite file; name another path")
    if version > len(MIGRATIONS):
        raise ServeError(
            f"expected a file of version {len(MIGRATIONS)} or before, got version {version}; "
            "open it with the cloneproof that wrote it"
        )


def migrate(connection: Connection) -> None:
    """Bring a file that was checked to the newest schema, one transaction a step."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    for number in range(version, len(MIGRATIONS)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in MIGRATIONS[number].split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
