"""A copy of a service's file, also while it is served: all of it as it is at one moment, whole or not there."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

from cloneproof._files import check_place
from cloneproof.errors import ServeError
from cloneproof.serve.offline.reading import open_for_reading
from cloneproof.serve.storage import is_postgres


def back_up(place: str, target: str) -> dict[str, int]:
    """Copy the file to a new one; how many entries the ledger of each market has in the copy.

    SQLite's online backup in one step, from a connection that cannot write: writers go on meanwhile. It goes to a
    temporary file beside the target, which is checked, forced to the disk and then renamed. Only its owner may read it.
    """
    if is_postgres(place) or place == ":memory:":
        advice = (
            "use pg_dump --schema=cloneproof, which copies it at one moment as well"
            if is_postgres(place)
            else "a service on :memory: keeps nothing"
        )
        raise ServeError(f"expected the SQLite file of a service to copy, got another place; {advice}")
    check_place(target)
    if os.path.lexists(target):
        raise ServeError(f"expected a new file for the backup, got {target!r}, which exists; name another")
    source = open_for_reading(place)
    folder = os.path.dirname(os.path.abspath(target))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=folder)  # readable by its owner
        os.close(handle)
        try:
            entries = _copy(source, name)
            _force(name)
            os.replace(name, target)
            _force(folder)
        finally:
            Path(name).unlink(missing_ok=True)
    except sqlite3.DatabaseError as problem:
        raise ServeError(f"{place!r} cannot be copied ({problem}); check it with cloneproof replay") from None
    except OSError as problem:
        raise ServeError(
            f"expected to write {target!r}, got: {problem.strerror or problem}; make room, or choose another place"
        ) from None
    finally:
        source.close()
    return entries


def _copy(source: sqlite3.Connection, name: str) -> dict[str, int]:
    copy = sqlite3.connect(name, isolation_level=None)
    try:
        source.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, without a log beside it
        found = copy.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        rows = copy.execute(
            "SELECT name, coalesce(sum(count), 0) FROM markets LEFT JOIN ledger "
            "ON place > number << 40 AND place < (number + 1) << 40 GROUP BY number ORDER BY name"
        )
        return dict(rows.fetchall())
    finally:
        copy.close()


def _force(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
