"""Store of a sweep: one SQLite file of chunks, each known to be undamaged before it is used.

    store.sqlite    chunks (key of the part, first run, runs, digest, contents), what each sweep needs, the code version
    sweep.log       one line a minute

Every chunk is a transaction of its own, written ahead: a killed driver loses what was on its way, a power cut perhaps
the last chunks, and neither harms the file. Several drivers of one machine may write to it at the same time.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from cloneproof._files import checked_path
from cloneproof._sections import Paragraph, Result, Section, Table
from cloneproof.errors import SweepError
from cloneproof.sweeps.tasks import Chunk

FILE, LOG = "store.sqlite", "sweep.log"
PATIENCE = 60.0  # seconds until another driver's transaction is over
SCHEMA = """
CREATE TABLE IF NOT EXISTS chunks (key TEXT, first INTEGER, runs INTEGER, digest BLOB, contents BLOB,
                                   PRIMARY KEY (key, first, runs));
CREATE TABLE IF NOT EXISTS sweeps (digest BLOB PRIMARY KEY, grid TEXT, needs TEXT);
CREATE TABLE IF NOT EXISTS writer (one INTEGER PRIMARY KEY CHECK (one = 1), version TEXT);
"""


class DamagedChunk(SweepError):  # noqa: N818 (a finding, not a failure: it is computed again)
    """A chunk whose contents are not what was written."""

    def __init__(self, chunk: Chunk) -> None:
        super().__init__(f"expected an undamaged chunk, got {chunk.name}, whose digest fails; run the sweep again")
        self.chunk = chunk


class Store:
    """Chunks in the file of a folder."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, version: str) -> None:
        self.folder, self._sql, self.version = folder, connection, version

    def _execute(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with _told(self.folder):
            return self._sql.execute(statement, values).fetchall()

    def write(self, chunk: Chunk, contents: bytes) -> None:
        """Store a chunk, whole or not at all."""
        row = (*chunk, _digest(chunk, contents), contents)
        self._execute("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?)", row)

    def read(self, chunk: Chunk) -> bytes:
        """Return the contents of a chunk; `DamagedChunk` where they are not what was written."""
        rows = self._execute("SELECT digest, contents FROM chunks WHERE key = ? AND first = ? AND runs = ?", chunk)
        if not rows or not isinstance(rows[0][1], bytes) or rows[0][0] != _digest(chunk, rows[0][1]):
            raise DamagedChunk(chunk)
        return rows[0][1]

    def discard(self, chunk: Chunk) -> None:
        self._execute("DELETE FROM chunks WHERE key = ? AND first = ? AND runs = ?", chunk)

    def chunks(self) -> list[Chunk]:
        return [Chunk(*row) for row in self._execute("SELECT key, first, runs FROM chunks")]

    def record_sweep(self, grid: str, needs: Sequence[Need]) -> None:
        """Leave in the store what a sweep needs, for `--status`."""
        text = json.dumps(needs, separators=(",", ":"))
        name = blake2b(text.encode(), digest_size=8).digest()
        self._execute("INSERT OR REPLACE INTO sweeps VALUES (?, ?, ?)", (name, grid, text))

    def sweeps(self) -> list[tuple[str, list[Need]]]:
        """Return the name of each sweep that used the store, and its needs."""
        rows = self._execute("SELECT grid, needs FROM sweeps ORDER BY grid, digest")
        return [(grid, [Need(w, tuple(sampled), runs) for w, sampled, runs in json.loads(text)]) for grid, text in rows]


@contextmanager
def open_store(folder: str | Path, version: str) -> Iterator[Store]:
    """Yield the store in the folder, made where there is none; refused where another version wrote it."""
    path = checked_path(folder)
    if not (path / FILE).exists() and path.is_dir() and any(_is_foreign(file) for file in path.iterdir()):
        raise SweepError(f"expected a store or an empty folder, got {folder} with other files in it; choose a new one")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SweepError(f"expected a folder for the store, got {folder}: {problem}; choose another") from None
    with _told(path):
        connection = sqlite3.connect(path / FILE, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    with closing(connection):
        with _told(path):
            _write_ahead(connection)
            connection.executescript(SCHEMA)
            connection.execute("INSERT OR IGNORE INTO writer VALUES (1, ?)", (version,))
            ((writer,),) = connection.execute("SELECT version FROM writer")
        if writer != version:
            raise SweepError(
                f"expected a store of this version ({version}), got {folder}, written by another ({writer}); its "
                "results may differ, so give a new folder, or install the version that wrote it"
            )
        yield Store(path, connection, version)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite refuses a switch that meets another driver's at once, so try again."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _is_foreign(file: Path) -> bool:
    return not file.name.startswith((".", FILE, LOG))  # another driver may be making the store right now


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Return SQLite's complaint in one sentence: no room or no rights, or a file that is damaged."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        raise SweepError(
            f"expected room and rights to use the store {folder}, got: {problem}; see to that and run the same command "
            "again: what is stored is kept, and it goes on from there"
        ) from None
    except (sqlite3.DatabaseError, ValueError) as problem:
        raise SweepError(
            f"expected an undamaged store, got {folder / FILE}: {problem}; restore the file, or move it away and run "
            "the same command again, which computes everything anew"
        ) from None


def _digest(chunk: Chunk, contents: bytes) -> bytes:
    digest = blake2b(chunk.name.encode(), digest_size=16)
    digest.update(contents)
    return digest.digest()


class Need(NamedTuple):
    """Needs of a point: a part that must be stored whole, and a number of runs of others.

    A point that is evaluated by `auto` needs its exact part first, and runs only where that came back as a refusal.
    """

    whole: str
    sampled: tuple[str, ...]
    runs: int

    def by_sampling(self, refused: bool | None) -> bool:
        """Return whether runs are needed, as far as is known: not while the whole part may still make them unnecessary.

        >>> Need("", ("ab",), 100).by_sampling(refused=None)
        True
        """
        return bool(self.sampled) and (not self.whole or bool(refused))


class Index:
    """Contents of a store: the chunks of each key, and of those computed whole whether they were refused."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.chunks: defaultdict[str, list[Chunk]] = defaultdict(list)
        self.refused: dict[str, bool] = {}

    def add(self, chunk: Chunk, contents: bytes) -> None:
        self.chunks[chunk.key].append(chunk)
        if chunk.runs == 0:
            self.refused[chunk.key] = set(json.loads(contents)) == {"refusals"}

    def missing(self, needs: Iterable[Need]) -> list[Chunk]:
        """Return what is missing: parts as a whole, and ranges of runs."""
        runs: dict[str, int] = {}
        missing: dict[Chunk, None] = {}
        for need in needs:
            if need.whole and need.whole not in self.refused:
                missing[Chunk(need.whole, 0, 0)] = None
            if need.by_sampling(self.refused.get(need.whole)):
                for key in need.sampled:
                    runs[key] = max(need.runs, runs.get(key, 0))
        return [*missing, *(gap for key, count in runs.items() for gap in gaps(key, self.chunks.get(key, ()), count))]


def read_index(store: Store, keys: Container[str] | None = None) -> tuple[Index, list[Chunk]]:
    """Return what the store has of these keys (of all), every digest checked, and the chunks that are damaged."""
    index, damaged = Index(store), []
    for chunk in store.chunks():
        if keys is None or chunk.key in keys:
            try:
                index.add(chunk, store.read(chunk))
            except DamagedChunk:
                damaged.append(chunk)
    return index, damaged


def gaps(key: str, chunks: Iterable[Chunk], runs: int) -> list[Chunk]:
    """Return what the chunks of a key leave out of its first runs.

    >>> [gap.name for gap in gaps("ab", [Chunk("ab", 4, 4), Chunk("ab", 0, 2), Chunk("ab", 6, 3)], 12)]
    ['ab-2-2', 'ab-9-3']
    """
    missing, done = [], 0
    for chunk in sorted(chunks):
        if chunk.first > done:
            missing.append(Chunk(key, done, min(chunk.first, runs) - done))
        done = max(done, chunk.stop)
        if done >= runs:
            return missing
    return [*missing, Chunk(key, done, runs - done)]


@dataclass(frozen=True)
class SweepStatus:
    """A sweep: its points, those with all they need, and the results and runs that are missing."""

    grid: str
    points: int
    done: int
    missing_results: int
    missing_runs: int


@dataclass(frozen=True)
class StoreStatus(Result):
    """A store: who wrote it, its chunks, the damaged ones by name, and its sweeps."""

    folder: str
    version: str
    chunks: int
    runs: int
    damaged: tuple[str, ...]
    sweeps: tuple[SweepStatus, ...]

    @property
    def complete(self) -> bool:
        return all(sweep.done == sweep.points for sweep in self.sweeps)

    def sections(self) -> tuple[Section, ...]:
        """Return what each sweep has and misses, and what to do."""
        rows = [
            (sweep.grid, *map(str, (sweep.points, sweep.done, sweep.missing_results, sweep.missing_runs)))
            for sweep in self.sweeps
        ]
        table = Table.of(("sweep", "points", "done", "missing results", "missing runs"), rows)
        rest = "`cloneproof sweep GRID.toml --store DIR` computes the rest."
        damaged = [f"damaged: {path}" for path in self.damaged]
        said = map(Paragraph, [*damaged, "Everything is there." if self.complete else rest])
        title = f"{self.folder}: {self.chunks} chunks, {self.runs} runs, {len(self.damaged)} damaged"
        return (Section(title, [table, *said]),)


def store_status(folder: str | Path) -> StoreStatus:
    """Look at everything in a store, of whichever version; nothing is changed."""
    path = Path(folder)
    if not (path / FILE).is_file():
        raise SweepError(f"expected the folder of a store, got {folder}, which has none; check the path")
    address = f"{(path / FILE).resolve().as_uri()}?mode=ro"
    with _told(path), closing(sqlite3.connect(address, timeout=PATIENCE, uri=True)) as connection:
        ((version,),) = connection.execute("SELECT version FROM writer")
        store = Store(path, connection, version)
        index, damaged = read_index(store)
        sweeps = tuple(_sweep_status(grid, needs, index) for grid, needs in store.sweeps())
    every = [chunk for chunks in index.chunks.values() for chunk in chunks]
    runs = sum(chunk.runs for chunk in every)
    names = tuple(chunk.name for chunk in damaged)
    return StoreStatus(str(folder), version, len(every) + len(damaged), runs, names, sweeps)


def _sweep_status(grid: str, needs: list[Need], index: Index) -> SweepStatus:
    missing = index.missing(needs)
    whole = sum(chunk.runs == 0 for chunk in missing)
    done = sum(not index.missing([need]) for need in needs)
    return SweepStatus(grid, len(needs), done, whole, sum(chunk.runs for chunk in missing))
