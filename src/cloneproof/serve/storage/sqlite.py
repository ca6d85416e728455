"""One SQLite file: write-ahead log, full synchronous commits, one writer.

The file is locked while it is open, since two writers would write different ledgers. A file with several names (hard
links) is refused, because each name would have its own write-ahead log.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.market.entries import Appended, Head, decode
from cloneproof.serve.storage.storage import (
    ENTRIES_PER_CHECKPOINT,
    SHIFT,
    IdRow,
    Storage,
    StoredMarket,
    checked_lines,
    id_rows,
    log,
    new_rows,
)

_held: Final = set[tuple[int, int]]()  # files locked here: opening and closing one again would end SQLite's locks

APPLICATION_ID: Final = 0x636C6F6E  # "clon"
VERSION: Final = 3  # of the schema
SCHEMA: Final = """
    CREATE TABLE markets (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        secret BLOB,                        -- of the dice
        indexed INTEGER NOT NULL DEFAULT 0  -- up to this entry, all are in `ids`
    );
    CREATE TABLE ledger (
        place INTEGER PRIMARY KEY,     -- market * 2^40 + number of the first entry
        count INTEGER NOT NULL,
        hash_before BLOB NOT NULL,
        hash_after BLOB NOT NULL,
        lines TEXT NOT NULL            -- one JSON object a line
    );
    CREATE TABLE snapshots (market INTEGER PRIMARY KEY, entry INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE ids (                 -- derived: the block that has an id
        hash INTEGER, place INTEGER, PRIMARY KEY (hash, place)
    ) WITHOUT ROWID;
    CREATE TABLE api_keys (
        id TEXT PRIMARY KEY, role TEXT NOT NULL, agent TEXT, hash BLOB NOT NULL, created INTEGER NOT NULL,
        revoked INTEGER NOT NULL
    ) WITHOUT ROWID;
"""


class FileLock:
    """Lock of one file, which is created if missing, readable by its owner; refused if another process has it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._others: dict[str, int] = {}
        if os.path.exists(path) and _identity(os.stat(path)) in _held:
            raise _already_served(path)
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise ServeError(
                f"{path!r} cannot be opened for writing ({problem.strerror}); name a file that may be written"
            ) from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(self._handle)
            if isinstance(problem, BlockingIOError):
                raise _already_served(path) from None
            raise ServeError(
                f"{path!r} cannot be locked ({problem.strerror}); name a file on a disk of this machine"
            ) from None
        found = os.fstat(self._handle)
        if found.st_nlink > 1:
            os.close(self._handle)
            raise ServeError(
                f"expected a file with one name, got {path!r}, which has {found.st_nlink} names (hard links); copy it"
            )
        self._identity = _identity(found)
        _held.add(self._identity)

    def close_to_strangers(self) -> None:
        """Let only owner and group read the file: the dice of running seasons are in it, and a restore forgets it."""
        mode = os.fstat(self._handle).st_mode
        if mode & 0o007:
            os.fchmod(self._handle, stat.S_IMODE(mode) & ~0o007)
            log.warning("everybody could read or write %r, which has secrets; now its owner and group can", self._path)

    def watch(self, path: str) -> None:
        """Treat another existing file as part of this one."""
        self._others[path] = os.stat(path).st_ino

    def check(self) -> None:
        """Raise an error if the file was deleted, moved or replaced, since further writes would be lost."""
        try:
            there = _identity(os.stat(self._path)) == self._identity
            there = there and all(os.stat(path).st_ino == number for path, number in self._others.items())
        except OSError:
            there = False
        if not there:
            raise Refused(
                503, "storage", "the database file was deleted, moved or replaced; stop the service and restore it"
            )

    def release(self) -> None:
        """Release the lock, after every connection to the file is closed."""
        _held.discard(self._identity)
        os.close(self._handle)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _already_served(path: str) -> ServeError:
    return ServeError(f"{path!r} is already served by another process; stop it, or name another file")


Connection = Any  # of `sqlite3` or of `apsw`


def is_service_file(connection: Connection) -> bool:
    """Return whether a file was made by the service; raises an error if by another version."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        return False
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != VERSION:
        raise ServeError(
            f"expected a file of schema {VERSION}, got schema {found}; open it with the cloneproof that wrote it"
        )
    return True


class NewIds:
    """Ids of the ledger that are not yet in the table of ids: the block of each by its hash.

    Ids are random, so storing each with its entry would write a page for each: 30 microseconds in a table of three
    million. They are collected here instead. Once there are many, each commit stores twice as many as it adds, in the
    order of their hashes, which touches only a part of the table. A start reads the missing ones from the ledger.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: dict[int, tuple[int, ...]] = {}  # by hash: places
        self._full: dict[int, tuple[int, ...]] = {}  # being stored
        self._left: list[int] = []  # hashes of these that are not stored yet, the largest first
        self._size = 0  # of the slice
        self.indexed: list[tuple[int, int]] = []  # (last entry, market), when all of them are

    def add(self, rows: Iterable[IdRow]) -> None:
        """Add ids of stored entries."""
        new = self._new
        for hash_, place in rows:
            new[hash_] = (*new[hash_], place) if hash_ in new else (place,)

    def find(self, hashes: Iterable[int]) -> list[IdRow]:
        new, full = self._new, self._full
        known = [hash_ for hash_ in hashes if hash_ in new or hash_ in full]
        return [(hash_, place) for hash_ in known for place in (*new.get(hash_, ()), *full.get(hash_, ()))]

    def next_slice(self, count: int, heads: Mapping[int, int]) -> tuple[list[IdRow], bool]:
        """Return the ids that a commit with `count` new ones stores, and whether they are the last of the collected.

        `heads` are the last entries whose ids were added, by market.
        """
        # There are two generations: `_new` collects, and `_full`, once sorted by hash, is stored slice by slice. A
        # slice has more than twice as many ids as the commit adds, so a generation is stored before the next one is
        # full. `_left` falls, so that the next slice is at its end, and only `mark_stored` cuts it there, after the
        # commit: if that fails, the same slice comes again.
        if not self._left and len(self._new) >= self._most:
            self._full, self._new = self._new, {}
            self._left = np.sort(np.fromiter(self._full, np.int64))[::-1].tolist()  # ten times as fast as `sorted`
            self.indexed = [(entry, market) for market, entry in heads.items()]
        self._size = 1 + 2 * count
        slice_ = self._left[: -self._size - 1 : -1]
        return [(hash_, place) for hash_ in slice_ for place in self._full[hash_]], 0 < len(slice_) == len(self._left)

    def mark_stored(self) -> None:
        """Note that the commit of the slice succeeded."""
        del self._left[-self._size :]
        if not self._left:
            self._full = {}


open_connection = partial(sqlite3.connect, isolation_level=None, check_same_thread=False, timeout=30)


class SqliteStorage(Storage):
    """A service's whole storage in one file, which one service at a time may open; `:memory:` is no file."""

    # SQLite loops over a cross join from left to right
    ids_query = "SELECT hash, place FROM json_each(?) CROSS JOIN ids WHERE hash = value"
    has_text = "instr(lines, ?) > 0"
    blocks_query = (
        "SELECT place, hash_before, hash_after, lines FROM json_each(?) CROSS JOIN ledger WHERE place = value"
    )

    def __init__(
        self, path: str, connect: Callable[[str], Connection] = open_connection, interval: int = ENTRIES_PER_CHECKPOINT
    ) -> None:
        super().__init__()
        self._interval, self._since = interval, 0  # entries between checkpoints, and since the last one
        self._ids, self._indexed = NewIds(interval), dict[int, int]()
        self._lock: FileLock | None = None
        if path == ":memory:":
            self._writer = self._reader = connect(path)  # another connection would have a memory of its own
            self._prepare()
            return
        _check_path(path)
        with ExitStack() as undo:  # an error leaves nothing behind
            existed = os.path.exists(path)
            self._lock = FileLock(path)
            undo.callback(self._lock.release)
            if not existed:
                undo.callback(_remove, path)
            try:
                self._writer = connect(path)
                undo.callback(self._writer.close)
                self._prepare()
                self._lock.close_to_strangers()  # not before it is known to be a service's file
                self._reader = connect(path)
                self._lock.watch(os.path.realpath(path) + "-wal")
            except sqlite3.DatabaseError as problem:
                raise ServeError(f"{path!r} cannot be used ({problem}); name another file, or restore a copy") from None
            undo.pop_all()

    def _prepare(self) -> None:
        tables = self._writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables and not is_service_file(self._writer):  # before any setting is changed in a file that is not ours
            raise ServeError("expected a file made by `cloneproof serve`, got another SQLite file; name another path")
        for setting in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-32768", "wal_autocheckpoint=1000"):
            self._writer.execute(f"PRAGMA {setting}").fetchall()
        if not is_service_file(self._writer):  # asked again, as reading makes the log file, which is watched
            with self._transaction():
                for statement in SCHEMA.split(";\n"):
                    if statement.strip():
                        self._writer.execute(statement)
                self._writer.execute(f"PRAGMA user_version = {VERSION}")
                self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield self._writer
            self._writer.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.OperationalError):  # a full disk ends the transaction itself
                self._writer.execute("ROLLBACK")
            raise

    def _rows(self, statement: str, *values: object) -> list[Any]:
        return list(self._writer.execute(statement, values))

    def _read(self, statement: str, *values: object) -> list[Any]:
        return list(self._reader.execute(statement, values))

    def _write(self, statement: str, *values: object) -> None:
        self.check()
        self._writer.execute(statement, values)

    def _list(self, values: Iterable[int]) -> str:
        return msgspec.json.encode([*values]).decode()

    def check(self) -> None:
        if self._lock is not None:
            self._lock.check()

    def probe(self) -> None:
        with self._transaction() as database:
            database.execute(f"PRAGMA user_version = {VERSION}")  # which it has: one page is written

    def watch(self) -> None:
        """Nothing to abort: a file answers, or the whole machine waits."""

    def markets(self) -> list[StoredMarket]:
        self.check()
        self._since, self._ids = 0, NewIds(self._interval)
        self._indexed = dict(self._rows("SELECT number, indexed FROM markets"))
        return super().markets()

    def _tail(self, market: int, head: Head) -> Iterator[bytes]:
        """Yield the lines after the snapshot; then add the ids that are not in the table."""
        yield from super()._tail(market, head)
        self._count(self._heads[market] - head.n)
        for first, before, after, text in self._blocks(market, self._indexed[market] + 1):
            lines, _ = checked_lines(first, before, after, text)
            self._ids.add(id_rows(market, (market << SHIFT) + first, map(decode, lines)))

    def _candidates(self, hashes: Sequence[int]) -> list[IdRow]:
        return self._ids.find(hashes) + super()._candidates(hashes)

    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        self.check()
        rows, ids = new_rows(appended)
        slice_, last = self._ids.next_slice(len(ids), self._heads)
        with self._transaction() as database:
            self._add_markets(database, appended)
            database.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", rows)
            stored = self._store_ids(database, slice_, self._ids.indexed if last else [])
        if stored:
            self._ids.mark_stored()
        self._ids.add(ids)
        self._count(sum(len(new.lines) for _, _, new in appended))
        self._heads |= {market: new.first + len(new.lines) - 1 for market, _, new in appended}

    @staticmethod
    def _store_ids(database: Connection, rows: Sequence[IdRow], indexed: Sequence[tuple[int, int]]) -> bool:
        """Return whether the ids could be stored; if a page of the table is damaged, they stay in memory."""
        database.execute("SAVEPOINT ids")
        try:
            database.executemany("INSERT INTO ids VALUES (?, ?) ON CONFLICT DO NOTHING", rows)
            database.executemany("UPDATE markets SET indexed = ? WHERE number = ?", indexed)
        except sqlite3.DatabaseError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            log.exception("new ids cannot be stored, and are kept in memory")
            database.execute("ROLLBACK TO ids")
            return False
        return True

    def _count(self, entries: int) -> None:
        self._since += entries
        self.checkpoint_due = self._since >= self._interval

    def checkpoint(self, snapshots: Mapping[int, bytes]) -> None:
        super().checkpoint(snapshots)
        self._since = 0

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
        if self._lock is not None:
            self._lock.release()


def _check_path(path: str) -> None:
    if not path or (os.path.exists(path) and not os.path.isfile(path)):
        raise ServeError(f"expected the path of a file, got {path!r}, which is none; name a file, such as market.db")
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise ServeError(f"expected the path of a file in a folder that exists, got {path!r}; make the folder first")


def _remove(path: str) -> None:
    for name in (path, path + "-wal", path + "-shm", path + "-journal"):
        if os.path.exists(name):
            os.unlink(name)
