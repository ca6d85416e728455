"""The PostgreSQL schema, as numbered migrations: `cloneproof.schema` says how many a database has been through.

Everything is in a PostgreSQL schema of its own, `cloneproof`, so a database may be shared with other programs.
"""

from __future__ import annotations

from typing import Final

import psycopg

from cloneproof.errors import ServeError

MIGRATION_LOCK: Final = 0x636C6F6E_00  # "clon"
TURN_LOCK: Final = 0x636C6F6E_01

SECRETS_SINCE: Final = 4  # the version since which markets have secrets, and snapshots are sealed

MIGRATIONS: Final = (
    """
    CREATE TABLE cloneproof.markets (number integer PRIMARY KEY, name text NOT NULL UNIQUE);
    CREATE TABLE cloneproof.ledger (
        market integer NOT NULL,
        first bigint NOT NULL,          -- number of the first entry of this block
        seq bigint NOT NULL UNIQUE,     -- entries of all markets up to and with this block, in the order of commits
        hash_before bytea NOT NULL,
        hash_after bytea NOT NULL,
        lines text NOT NULL,            -- one JSON object a line
        PRIMARY KEY (market, first)
    );
    ALTER TABLE cloneproof.ledger ALTER COLUMN lines SET STORAGE EXTERNAL;  -- compressing costs more than it saves
    CREATE TABLE cloneproof.ids (
        market integer NOT NULL,
        key uuid PRIMARY KEY,           -- 128 bits of BLAKE2 over market and key
        block bigint NOT NULL,          -- `first` of the block with the entry
        at integer NOT NULL             -- which line of it, from 1
    );
    CREATE TABLE cloneproof.snapshots (market integer PRIMARY KEY, entry bigint NOT NULL, body bytea NOT NULL);
    CREATE TABLE cloneproof.api_keys (
        id text PRIMARY KEY, role text NOT NULL, agent text, hash bytea NOT NULL, created bigint NOT NULL,
        revoked boolean NOT NULL
    );
    """,
    "DELETE FROM cloneproof.snapshots;",  # snapshots of version 2
    """
    DROP TABLE cloneproof.ids;          -- a page for every random id was most of what was written
    CREATE TABLE cloneproof.generations (
        number integer PRIMARY KEY,
        ends bigint NOT NULL            -- `seq` of the last entry that may be in it
    );
    CREATE TABLE cloneproof.seen (      -- derived: ids of the entries of a generation, sorted by hash
        generation integer NOT NULL,
        piece integer NOT NULL,         -- first byte of the hashes
        hashes bytea NOT NULL,
        places bytea NOT NULL,
        PRIMARY KEY (generation, piece)
    );
    ALTER TABLE cloneproof.seen ALTER COLUMN hashes SET STORAGE EXTERNAL;
    ALTER TABLE cloneproof.seen ALTER COLUMN places SET STORAGE EXTERNAL;
    """,
    """
    ALTER TABLE cloneproof.markets ADD COLUMN secret bytea;  -- of the dice; none where the seed is in the ledger
    DELETE FROM cloneproof.snapshots;   -- snapshots of version 3
    DELETE FROM cloneproof.seen;
    DELETE FROM cloneproof.generations;
    ALTER TABLE cloneproof.generations ADD COLUMN digest bytea NOT NULL;  -- over what is in cloneproof.seen
    """,
)


def migrate(connection: psycopg.Connection) -> None:
    """Bring a database to the newest schema, one transaction a step; services that start together take turns."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        version = schema_version(connection)
        if version is None:
            connection.execute("CREATE SCHEMA cloneproof")
            connection.execute("CREATE TABLE cloneproof.schema (version integer NOT NULL)")
            connection.execute("INSERT INTO cloneproof.schema VALUES (0)")
            version = 0
        check_version(version)
        for number in range(version, len(MIGRATIONS)):
            connection.execute(MIGRATIONS[number].encode())
            connection.execute("UPDATE cloneproof.schema SET version = %s", (number + 1,))


def check_version(version: int) -> None:
    """Refuse a database that a later cloneproof wrote."""
    if version > len(MIGRATIONS):
        raise ServeError(
            f"expected a database of version {len(MIGRATIONS)} or before, got version {version}; "
            "open it with the cloneproof that wrote it"
        )


def schema_version(connection: psycopg.Connection) -> int | None:
    """How many migrations a database has been through; None where no service ever was."""
    row = connection.execute("SELECT to_regnamespace('cloneproof'), to_regclass('cloneproof.schema')").fetchone()
    assert row is not None
    if row[0] is None:
        return None
    if row[1] is None:
        raise ServeError(
            "expected a database of `cloneproof serve`, got a foreign schema 'cloneproof'; use another one"
        )
    row = connection.execute("SELECT version FROM cloneproof.schema").fetchone()
    assert row is not None
    return int(row[0])
