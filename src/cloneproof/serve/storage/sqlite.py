"""One SQLite file: write-ahead log, full synchronous commits, one writer.

A commit appends the new lines of each market's ledger in blocks, one row a block; nothing else is written for an entry.
Ids are found through `seen`; snapshots and ids are written at checkpoints.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from typing import Any, Final

import numpy as np

from cloneproof.errors import ServeError
from cloneproof.serve.ledger.chain import EMPTY, Appended, Head, chain_hashes, check_block
from cloneproof.serve.ledger.entries import Entry, decode, keys
from cloneproof.serve.storage.file_lock import FileLock
from cloneproof.serve.storage.id_generations import (
    CHUNKS,
    ENTRIES_PER_GENERATION,
    IdChunk,
    NewGenerations,
    generation_sums,
    make_generations,
)
from cloneproof.serve.storage.ids import SHIFT, Ids
from cloneproof.serve.storage.interface import (
    FoundEntries,
    KeyRecord,
    Line,
    StoredMarket,
    Wanted,
    snapshot_entry,
    usable_head,
)
from cloneproof.serve.storage.sqlite_schema import Connection, check_file, migrate

_BLOCK: Final = 100  # entries a row: an old one is found by reading its row
log = logging.getLogger("cloneproof.serve")


def open_connection(path: str) -> Connection:
    """A connection of the standard library."""
    connection: Any = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    return connection  # type: ignore[no-any-return]


class SqliteStorage:
    """A service's whole storage in one file; a second service on the same file is refused."""

    def __init__(
        self, path: str, connect: Callable[[str], Connection] = open_connection, interval: int = ENTRIES_PER_GENERATION
    ) -> None:
        _check_path(path)
        self._interval = interval
        with ExitStack() as undo:  # what is refused leaves nothing behind
            existed = os.path.exists(path)
            self._lock = FileLock(path)
            undo.callback(self._lock.release)
            if not existed:
                undo.callback(_remove, path)
            try:
                self._writer = connect(path)
                undo.callback(self._writer.close)
                self._prepare()
                self._reader = connect(path)
                self._lock.watch(os.path.realpath(path) + "-wal")
            except sqlite3.DatabaseError as problem:
                raise ServeError(f"{path!r} cannot be used ({problem}); name another file, or restore a copy") from None
            undo.pop_all()

    def _prepare(self) -> None:
        check_file(self._writer)  # before any setting is changed in a file that is not ours
        for setting in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-32768", "wal_autocheckpoint=1000"):
            self._writer.execute(f"PRAGMA {setting}").fetchall()
        migrate(self._writer)
        self._since = 0  # entries since the last checkpoint
        self._prepared: tuple[int, NewGenerations] | None = None  # and how many entries are in it
        self._ids = Ids(self._chunk)

    def _read_ids(self) -> None:
        """The ids before the last checkpoint; where they are not those that it wrote, all is read from the ledger."""
        self._ids, self._prepared = Ids(self._chunk), None
        last = self._writer.execute("SELECT max(chunk) FROM seen").fetchone()[0]
        for generation in range(0 if last is None else last // CHUNKS + 1):
            span = (generation * CHUNKS, (generation + 1) * CHUNKS)
            rows = self._writer.execute(
                "SELECT chunk, hashes, places FROM seen WHERE chunk >= ? AND chunk < ? ORDER BY chunk", span
            )
            pieces = {chunk % CHUNKS: (known, where) for chunk, known, where in rows}
            values = np.frombuffer(b"".join(known for known, _ in pieces.values()), dtype=np.uint64)
            self._ids.generations.add(values, generation_sums(pieces))
        stored = self._writer.execute("SELECT digest FROM seal").fetchone()
        snapshots = self._writer.execute("SELECT count(*) FROM snapshots").fetchone()[0]
        if (snapshots or last is not None) and (stored is None or stored[0] != self._seal()):
            log.warning("snapshots and stored ids do not fit each other; they are made again from the ledger")
            self._writer.execute("BEGIN IMMEDIATE")
            for table in ("snapshots", "seen", "seal"):
                self._writer.execute(f"DELETE FROM {table}")
            self._writer.execute("COMMIT")
            self._ids = Ids(self._chunk)

    def _seal(self) -> bytes:
        """A digest over all stored ids, and over which entries the snapshots were taken at."""
        rows = self._writer.execute("SELECT market, entry FROM snapshots ORDER BY market").fetchall()
        return sha256(self._ids.generations.digest + repr([tuple(row) for row in rows]).encode()).digest()

    def _chunk(self, generation: int, piece: int) -> IdChunk | None:
        row = self._writer.execute(
            "SELECT hashes, places FROM seen WHERE chunk = ?", (generation * CHUNKS + piece,)
        ).fetchone()
        return None if row is None else (row[0], row[1])

    def check(self) -> None:
        self._lock.check()

    def markets(self) -> list[StoredMarket]:
        self.check()
        self._read_ids()
        self._since = 0
        rows = self._writer.execute(
            "SELECT number, name, entry, body, secret FROM markets"
            " LEFT JOIN snapshots ON market = number ORDER BY number"
        ).fetchall()
        markets = []
        for number, name, entry, body, secret in rows:
            head = usable_head(name, body, entry, self._hash_after(number, entry or 0))
            snapshot = None if head is EMPTY else body
            markets.append(StoredMarket(number, name, snapshot, self._tail(number, head), secret))
        return markets

    def _hash_after(self, market: int, entry: int) -> bytes | None:
        """The stored hash after an entry that is the last of its block."""
        place = (market << SHIFT) + entry
        row = self._writer.execute(
            "SELECT place + count - 1, hash_after FROM ledger WHERE place <= ? ORDER BY place DESC LIMIT 1", (place,)
        ).fetchone()
        return None if row is None or row[0] != place else row[1]

    def _tail(self, market: int, head: Head) -> Iterator[bytes]:
        """The lines after the last checkpoint, whose ids are taken into memory on the way."""
        after, expected = head
        for first, before, hash_after, lines in self._blocks(self._writer, market, after):
            if first + len(lines) - 1 <= after:
                continue  # the last one before, which the snapshot is of
            check_block(first, expected, before, hash_after, lines)
            expected = hash_after
            rest = lines[max(0, after + 1 - first) :]
            numbered = enumerate(map(decode, rest), max(first, after + 1))
            self._ids.add(market, [(key, number) for number, entry in numbered for key in keys(entry)])
            self._since += len(rest)
            yield from rest

    @staticmethod
    def _blocks(connection: Connection, market: int, after: int) -> Iterator[tuple[int, bytes, bytes, list[bytes]]]:
        """The stored blocks of a market from the one with entry `after` + 1 on: number, hashes, lines."""
        base = market << SHIFT
        start = connection.execute(
            "SELECT max(place) FROM ledger WHERE place > ? AND place <= ?", (base, base + after + 1)
        ).fetchone()[0]
        rows = connection.execute(
            "SELECT place, hash_before, hash_after, lines FROM ledger WHERE place >= ? AND place < ? ORDER BY place",
            (base if start is None else start, base + (1 << SHIFT)),
        )
        for place, before, after_it, lines in rows:
            yield place - base, before, after_it, lines.encode().split(b"\n")

    def find(self, wanted: Wanted) -> FoundEntries:
        found: FoundEntries = {}
        for market, names in wanted.items():
            entries = found[market] = {}
            for name, number in self._ids.candidates(market, names):
                entry = self._entry(market, number)
                if name in keys(entry):
                    entries[name] = entry
        return found

    def _entry(self, market: int, number: int) -> Entry:
        base = market << SHIFT
        place, lines = self._writer.execute(
            "SELECT place, lines FROM ledger WHERE place <= ? ORDER BY place DESC LIMIT 1", (base + number,)
        ).fetchone()
        at = base + number - place
        entry: Entry = decode(lines.split("\n", at + 1)[at])
        return entry

    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        self.check()
        writer = self._writer
        writer.execute("BEGIN IMMEDIATE")
        try:
            for market, name, new in appended:
                if new.first == 1:
                    writer.execute("INSERT INTO markets VALUES (?, ?, ?)", (market, name, new.secret))
                writer.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", self._rows(market, new))
            writer.execute("COMMIT")
        except BaseException:
            writer.execute("ROLLBACK")
            raise
        for market, _, new in appended:
            self._ids.add(market, new.keys)
            self._since += len(new.lines)

    def _rows(self, market: int, new: Appended) -> Iterator[tuple[int, int, bytes, bytes, str]]:
        before = new.before
        for start in range(0, len(new.lines), _BLOCK):
            lines = new.lines[start : start + _BLOCK]
            after = new.hashes[min(start + _BLOCK, len(new.lines)) - 1]
            yield (market << SHIFT) + new.first + start, len(lines), before, after, b"\n".join(lines).decode()
            before = after

    @property
    def checkpoint_due(self) -> bool:
        return self._since >= self._interval

    def prepare_checkpoint(self) -> Callable[[], None]:
        ids, since = self._ids, self._since
        values, places = ids.freeze()

        def prepare() -> None:
            parts = max(1, len(values) // self._interval)  # filters have room for so many; more after lost snapshots
            halves = zip(np.array_split(values, parts), np.array_split(places, parts), strict=True)
            made = make_generations(ids.generations, [half for half in halves if len(half[0])])
            if ids is self._ids:  # else all was read again meanwhile
                self._prepared = since, made

        return prepare

    def checkpoint(self, snapshots: Mapping[int, bytes]) -> None:
        if self._prepared is None:
            self.prepare_checkpoint()()
        assert self._prepared is not None
        writer, (since, made), self._prepared = self._writer, self._prepared, None
        writer.execute("BEGIN IMMEDIATE")
        try:
            rows = [(market, snapshot_entry(body), body) for market, body in snapshots.items()]
            writer.executemany("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", rows)
            for number, pieces in enumerate(made.pieces, self._ids.generations.count):
                chunks = [(number * CHUNKS + piece, known, where) for piece, known, where in pieces]
                writer.executemany("INSERT INTO seen VALUES (?, ?, ?)", chunks)
            self._ids.generations.install(made.filters, made.sums)
            writer.execute("DELETE FROM seal")
            writer.execute("INSERT INTO seal VALUES (?)", (self._seal(),))
            writer.execute("COMMIT")
        except BaseException:
            writer.execute("ROLLBACK")
            raise
        self._ids.forget_frozen()
        self._since -= since

    def lines(self, market: int, after: int, limit: int) -> list[Line]:
        base, page = market << SHIFT, list[Line]()
        start = self._reader.execute(
            "SELECT max(place) FROM ledger WHERE place > ? AND place <= ?", (base, base + after + 1)
        ).fetchone()[0]
        if start is None:
            return page
        rows = self._reader.execute(
            "SELECT place, hash_before, lines FROM ledger WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
            (start, base + (1 << SHIFT), limit + 1),
        )
        for place, before, text in rows:
            block = text.encode().split(b"\n")
            for number, (line, hash_) in enumerate(zip(block, chain_hashes(before, block), strict=True), place - base):
                if after < number <= after + limit:
                    page.append(Line(number, line, hash_))
            if place - base + len(block) > after + limit:
                break
        return page

    def keys(self) -> list[KeyRecord]:
        rows = self._writer.execute("SELECT id, role, agent, hash, created, revoked FROM api_keys")
        return [
            KeyRecord(number, role, agent, hash_, created, bool(revoked))
            for number, role, agent, hash_, created, revoked in rows
        ]

    def put_key(self, key: KeyRecord) -> None:
        self.check()
        row = (key.id, key.role, key.agent, key.hash, key.created, int(key.revoked))
        self._writer.execute("INSERT OR REPLACE INTO api_keys VALUES (?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
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
