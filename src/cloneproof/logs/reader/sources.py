"""Where the rows of a log come from: files or a table, as a relation that DuckDB streams.

Headers and keys are read here, before DuckDB sees a file, so that nothing is left to its guesses: every column of a CSV
or JSON-lines file is text, and what is no number is counted as such and not as a change of type.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cloneproof.errors import LogError, brief
from cloneproof.logs.reader.fast.parquet_types import parquet_types
from cloneproof.logs.reader.headers import csv_header, file_kind, json_keys

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SourceKind = Literal["csv", "parquet", "json", "table"]
SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".jsonl", ".ndjson", ".json", ".csv.gz", ".jsonl.gz")
MOST_COLUMNS = 10_000
TWICE = "two columns of this name"
STRICTLY = ", store_rejects = false"
SKIPPING = ", store_rejects = true, rejects_limit = 1000000"
MEMORY = "1GB"  # for DuckDB; beyond it spills to a temporary folder


@dataclass(frozen=True)
class LogColumn:
    """A column as SQL names it, and its type in DuckDB."""

    sql: str
    type: str


class LogDatabase:
    """A DuckDB database that is opened when it is first asked: what needs none does not wait for it."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or _cores()

    @cached_property
    def connection(self) -> DuckDBPyConnection:
        """The one connection to it."""
        return open_connection(self.threads)

    @property
    def part(self) -> float:
        """How far the query that runs is, from 0 to 1."""
        return self.connection.query_progress() / 100 if "connection" in vars(self) else 0.0

    def interrupt(self) -> None:
        """Stop the query that runs, if there is one."""
        if "connection" in vars(self):
            self.connection.interrupt()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class LogSource:
    """A relation: what to select from, its columns by name, and the files behind it.

    numbered is the same with the file's name and the row's number in it, for those who look for one row. `lenient`
    skips lines of CSV files that do not have the header's columns, and remembers them.
    """

    kind: SourceKind
    rows: str
    numbered: str
    columns: Mapping[str, LogColumn]
    files: tuple[Path, ...]
    database: LogDatabase = field(repr=False)
    relation: Any = field(default=None, repr=False)
    lenient: bool = False

    def leniently(self) -> LogSource:
        """The same, where lines that cannot be split are skipped and remembered."""
        rows, numbered = (text.replace(STRICTLY, SKIPPING) for text in (self.rows, self.numbered))
        return replace(self, rows=rows, numbered=numbered, lenient=True)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query; what DuckDB refuses is one sentence."""
        import duckdb

        try:
            if self.relation is not None:
                return list(self.relation.query("log_rows", sql).fetchall())
            return list(self.database.connection.execute(sql).fetchall())
        except duckdb.Error as problem:
            raise LogError(f"expected a log that can be read, got: {first_line(problem)}; mend the file") from None


def first_line(problem: object) -> str:
    """What an error of DuckDB says, without its advice, which is about SQL."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    text = lines[0].rstrip(".;") if lines else type(problem).__name__
    return text if len(text) <= 300 else text[:300] + ".."


def open_connection(threads: int) -> DuckDBPyConnection:
    """A database in memory that spills and fetches nothing."""
    try:
        import duckdb
    except ImportError:
        raise LogError(
            "expected DuckDB to read a log, got no such package; `pip install 'cloneproof[log]'` brings it"
        ) from None
    settings: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    settings |= {"memory_limit": MEMORY, "preserve_insertion_order": False, "threads": threads}
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    return connection


def text_literal(text: object) -> str:
    """A text in SQL.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + str(text).replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name in SQL.

    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def log_source(source: object, threads: int | None = None) -> LogSource:
    """The relation of a path, a glob, a folder, several of them, or a table."""
    database = LogDatabase(threads)
    if isinstance(source, str | PathLike):
        return _from_files(found_files([source]), database)
    if isinstance(source, Sequence) and source and all(isinstance(each, str | PathLike) for each in source):
        return _from_files(found_files(source), database)
    return _from_table(source, database)


def found_files(places: Iterable[str | PathLike[str]]) -> tuple[Path, ...]:
    """The files of paths, globs and folders, in the order of their names within each."""
    files: list[Path] = []
    for place in places:
        path = Path(place)
        if path.is_dir():
            found = sorted(each for each in path.rglob("*") if _is_log(each, path))
        elif path.exists():
            found = [path]
        else:
            found = sorted(Path(each) for each in glob.glob(str(place), recursive=True) if Path(each).is_file())
        if not found:
            what = "a folder with no CSV, Parquet or JSON-lines file" if path.is_dir() else "no such file"
            raise LogError(f"expected a log at {brief(str(place))}, got {what}; check the path")
        files += found
    for file in files:
        if not file.is_file():
            raise LogError(f"expected a file, got {brief(str(file))}, which is none; copy the rows into one first")
    return tuple(dict.fromkeys(files))


def _is_log(file: Path, below: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(below).parts)
    return not hidden and file.is_file() and file.name.lower().endswith(SUFFIXES)


def _from_files(files: tuple[Path, ...], database: LogDatabase) -> LogSource:
    kinds = {file_kind(file) for file in files}
    if len(kinds) > 1:
        raise LogError(f"expected files of one kind, got {' and '.join(sorted(kinds))}; read them one after the other")
    make = {"csv": _from_csv, "parquet": _from_parquet, "json": _from_json}[kinds.pop()]
    return make(files, database)


def _from_csv(files: tuple[Path, ...], database: LogDatabase) -> LogSource:
    """Files of the same header are read together, those of another one apart, and columns meet by name."""
    groups: dict[tuple[tuple[str, ...], str], list[Path]] = {}
    for file in files:
        groups.setdefault(csv_header(file), []).append(file)
    first = next(iter(groups))[0]
    if len(first) > MOST_COLUMNS:
        raise LogError(f"expected at most {MOST_COLUMNS:,} columns, got {len(first):,}; keep those that are needed")
    common = list(dict.fromkeys(name for name in first if all(name in names for names, _ in groups)))
    twice = {name for names, _ in groups for name, count in Counter(names).items() if count > 1}
    columns = {
        name: LogColumn(f"k{number}", TWICE if name in twice else "VARCHAR") for number, name in enumerate(common)
    }
    parts, numbered = [], []
    for (names, delimiter), group in groups.items():
        typed = ", ".join(f"c{number}: 'VARCHAR'" for number in range(len(names)))
        chosen = ", ".join(f"c{names.index(name)} AS k{number}" for number, name in enumerate(common))
        options = (
            f"[{', '.join(text_literal(_plain(file)) for file in group)}], auto_detect = false, header = true, "
            f"delim = {text_literal(delimiter)}, quote = '\"', escape = '\"', columns = {{{typed}}}" + STRICTLY
        )
        parts.append(f"SELECT {chosen} FROM read_csv({options})")
        inner = f"SELECT {chosen}, filename AS log_file FROM read_csv({options}, filename = true)"
        numbered.append(inner)
    rows, with_place = " UNION ALL ".join(parts), " UNION ALL ".join(numbered)
    counted = f"(SELECT *, row_number() OVER () AS log_row FROM ({with_place}))"
    return LogSource("csv", f"({rows})", counted, columns, files, database)


def _from_parquet(files: tuple[Path, ...], database: LogDatabase) -> LogSource:
    partitioned = any("=" in part for file in files for part in file.parts[:-1])
    options = (
        f"[{', '.join(text_literal(_plain(file)) for file in files)}], union_by_name = {str(len(files) > 1).lower()}, "
        f"hive_partitioning = {str(partitioned).lower()}"
    )
    rows = f"read_parquet({options})"
    counted = (
        f"(SELECT *, filename AS log_file, file_row_number + 1 AS log_row "
        f"FROM read_parquet({options}, filename = true, file_row_number = true))"
    )
    made = LogSource("parquet", rows, counted, {}, files, database)
    types = parquet_types(files)
    if types is None:
        types = {str(name): str(kind) for name, kind, *_ in made.query(f"DESCRIBE SELECT * FROM {rows}")}
    columns = {name: LogColumn(identifier(name), kind) for name, kind in types.items()}
    return LogSource("parquet", rows, counted, columns, files, database)


def _from_json(files: tuple[Path, ...], database: LogDatabase) -> LogSource:
    keys = json_keys(files)
    if len(keys) > MOST_COLUMNS:
        raise LogError(f"expected at most {MOST_COLUMNS:,} keys, got {len(keys):,}; keep those that are needed")
    typed = ", ".join(f"{identifier(key)}: 'VARCHAR'" for key in keys)
    options = (
        f"[{', '.join(text_literal(_plain(file)) for file in files)}], columns = {{{typed}}}, "
        "format = 'newline_delimited', maximum_object_size = 16777216"
    )
    rows = f"read_json({options})"
    counted = (
        f"(SELECT *, row_number() OVER () AS log_row FROM (SELECT *, filename AS log_file "
        f"FROM read_json({options}, filename = true)))"
    )
    columns = {key: LogColumn(identifier(key), "VARCHAR") for key in keys}
    return LogSource("json", rows, counted, columns, files, database)


def _from_table(table: object, database: LogDatabase) -> LogSource:
    import duckdb

    counted = "(SELECT *, 'the table' AS log_file, row_number() OVER () AS log_row FROM log_rows)"
    if isinstance(table, duckdb.DuckDBPyRelation):
        columns = {
            name: LogColumn(identifier(name), str(kind)) for name, kind in zip(table.columns, table.types, strict=True)
        }
        return LogSource("table", "log_rows", counted, columns, (), database, table)
    try:
        if isinstance(table, Mapping):
            import pyarrow

            table = pyarrow.table(dict(table))
        database.connection.register("log_rows", table)
        described = database.connection.execute("DESCRIBE SELECT * FROM log_rows").fetchall()
    except Exception:
        raise LogError(
            f"expected the path of a log, or a table of DuckDB, pandas, polars or pyarrow, got {brief(table)}; "
            "give one of these"
        ) from None
    columns = {str(name): LogColumn(identifier(str(name)), str(kind)) for name, kind, *_ in described}
    return LogSource("table", "log_rows", counted, columns, (), database)


def _plain(file: Path) -> str:
    """A path that DuckDB takes as it is: brackets and stars in a name are no pattern."""
    text = str(file)
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)
