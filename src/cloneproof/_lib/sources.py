"""Where the rows of a log or a board come from: files or a table, as a relation that DuckDB streams.

Headers and keys are read here, so that nothing is left to DuckDB's guesses: every column of a CSV or JSON-lines file is
text, and values that are not numbers are counted.
"""

from __future__ import annotations

import csv
import glob
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from cloneproof.errors import CloneproofError, LogError, brief, did_you_mean

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DELIMITERS: Final = (",", "\t", ";", "|")
FIRST_BYTES: Final = 1 << 20  # bytes of a file that are looked at to tell its kind
LONGEST_HEADER: Final = 1 << 25  # bytes
SAMPLED_LINES: Final = 1000  # lines of a JSON file whose keys become columns
OTHER_ENCODINGS: Final = {
    b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK": "a ZIP or Excel file", b"\x1f\x8b": "gzip",
}  # fmt: skip
FileKind = Literal["csv", "parquet", "json"]
SourceKind = Literal["csv", "parquet", "json", "table"]
SUFFIXES: Final = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".jsonl", ".ndjson", ".json", ".csv.gz", ".jsonl.gz")
MOST_COLUMNS: Final = 10_000  # columns of a file
TWICE: Final = "two columns of this name"  # type of a column that cannot be used
STRICTLY: Final = ", store_rejects = false"
SKIPPING: Final = ", store_rejects = true, rejects_limit = 1000000"
MOST_LISTED: Final = 12  # columns named in an error
MEMORY: Final = "1GB"  # limit for DuckDB, which then spills to a temporary folder


def file_kind(file: Path) -> FileKind:
    """Return the kind of file by its first bytes if they tell, else by its name."""
    start = _first_bytes(file, 64)
    if start[:4] == b"PAR1":
        return "parquet"
    name = file.name.lower().removesuffix(".gz")
    if name.endswith((".parquet", ".pq")):
        raise LogError(f"expected a Parquet file, got {_named(file)}, which does not begin as one does; write it anew")
    if name.endswith((".jsonl", ".ndjson", ".json")) or start.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"{":
        return "json"
    return "csv"


def csv_header(file: Path) -> tuple[tuple[str, ...], str]:
    """Return the names of a CSV file's columns, and the separator that makes the most columns of the first line.

    Empty names become numbers; a duplicate name is refused if it is used.
    """
    start = _first_bytes(file, FIRST_BYTES)
    if not start.strip():
        raise LogError(f"expected a log with a header line, got {_named(file)}, which is empty; write the rows first")
    for mark, kind in OTHER_ENCODINGS.items():
        if start.startswith(mark):
            raise LogError(f"expected text in UTF-8, got {_named(file)}, which is {kind}; export it as CSV in UTF-8")
    if b"\0" in start:
        raise LogError(f"expected text in UTF-8, got {_named(file)}, which is binary; export it as CSV or Parquet")
    if b"\n" not in start and b"\r" not in start and len(start) == FIRST_BYTES:
        start = _first_bytes(file, LONGEST_HEADER)
    line = start.split(b"\n", 1)[0] if start.count(b'"') == 0 else start
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        if problem.start >= len(line) - 4 and line is start:  # the cut went through a letter
            text = line[: problem.start].decode("utf-8-sig")
        else:
            raise LogError(
                f"expected text in UTF-8, got {_named(file)} with other bytes in its first lines; save it in UTF-8"
            ) from None
    headers = {delimiter: _first_record(text, delimiter, file) for delimiter in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda mark: len(headers[mark]))
    names = tuple(name.strip() or f"column {number}" for number, name in enumerate(headers[delimiter], start=1))
    return names, delimiter


def sampled_objects(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield the first objects of each JSON-lines file; what is none, but for the first line, is counted as a fault."""
    for file in files:
        number = 0
        with _opened(file) as lines:
            for number, line in enumerate(islice(lines, SAMPLED_LINES), start=1):
                row: object = {}
                try:
                    row = json.loads(line.decode("utf-8-sig")) if line.strip() else {}
                except (ValueError, RecursionError):
                    if number == 1:
                        raise LogError(
                            f"expected one JSON object a line, got {_named(file)}, whose first line is none; write "
                            "JSON lines"
                        ) from None
                if isinstance(row, dict):
                    yield row
                elif number == 1:
                    raise LogError(
                        f"expected one JSON object a line, got {brief(row)} in {_named(file)}; write JSON lines"
                    )
        if number == 0:
            raise LogError(f"expected a log with rows, got {_named(file)}, which is empty; write the rows first")


def _first_record(text: str, delimiter: str, file: Path) -> list[str]:
    csv.field_size_limit(LONGEST_HEADER)
    try:
        return next(iter(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)), [])
    except csv.Error as problem:
        raise LogError(f"expected a header line in {_named(file)}, got: {problem}; check its quotes") from None


def _first_bytes(file: Path, count: int) -> bytes:
    try:
        with _opened(file) as opened:
            return opened.read(count)
    except (OSError, EOFError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise LogError(f"expected a file that can be read, got {_named(file)}: {reason}; check it") from None


def _opened(file: Path) -> IO[bytes]:
    if file.name.lower().endswith(".gz"):
        return gzip.open(file, "rb")  # type: ignore[return-value]
    return file.open("rb")


def _named(file: Path) -> str:
    return brief(file.name)


@dataclass(frozen=True)
class LogColumn:
    """A column as SQL names it, and its type in DuckDB."""

    sql: str
    type: str

    @property
    def kind(self) -> str:
        """Type without its width: DECIMAL of DECIMAL(18,3); lists are not numbers."""
        return "LIST" if self.type.endswith("]") else self.type.partition("(")[0]


@dataclass(frozen=True)
class LogSource:
    """A relation: what to select from, its columns by name, and the files behind it.

    `numbered` adds the file's name and the row's number, to locate a row. `lenient` skips lines of CSV files that do
    not have the header's columns, and remembers them.
    """

    kind: SourceKind
    rows: str
    numbered: str
    columns: Mapping[str, LogColumn]
    files: tuple[Path, ...]
    connection: DuckDBPyConnection = field(repr=False)
    relation: Any = field(default=None, repr=False)
    lenient: bool = False

    def leniently(self) -> LogSource:
        rows, numbered = (text.replace(STRICTLY, SKIPPING) for text in (self.rows, self.numbered))
        return replace(self, rows=rows, numbered=numbered, lenient=True)

    @property
    def part(self) -> float:
        """Progress of the running query, from 0 to 1."""
        return min(max(self.connection.query_progress() / 100, 0.0), 1.0)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query and return its rows; an error of DuckDB becomes one sentence."""
        import duckdb

        try:
            if self.relation is not None:
                return list(self.relation.query("log_rows", sql).fetchall())
            return list(self.connection.execute(sql).fetchall())
        except duckdb.InterruptException:  # handled by the caller
            raise
        except duckdb.Error as problem:
            first = next((line for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
            reason = first.strip().rstrip(".;")[:300]  # what follows is advice about SQL
            raise LogError(f"expected a log that can be read, got: {reason}; fix the file") from None


def open_connection(threads: int | None = None) -> DuckDBPyConnection:
    """Return an in-memory database that neither spills to disk nor downloads anything."""
    try:
        import duckdb
    except ImportError:
        raise LogError(
            "expected DuckDB to read a log, got no such package; `pip install 'cloneproof[log]'` brings it"
        ) from None
    settings: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    settings |= {"memory_limit": MEMORY, "preserve_insertion_order": False}
    settings |= {} if threads is None else {"threads": threads}
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    return connection


def text_literal(text: object) -> str:
    """Quote a text for SQL.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + str(text).replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Quote a name for SQL.

    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _listed(files: Iterable[Path]) -> str:
    """Paths in SQL, with brackets and stars taken literally."""
    plain = ("".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(file)) for file in files)
    return f"[{', '.join(map(text_literal, plain))}]"


def _typed(described: Iterable[tuple[Any, ...]]) -> dict[str, LogColumn]:
    """Columns by name, as DuckDB describes them."""
    return {str(name): LogColumn(identifier(str(name)), str(kind)) for name, kind, *_ in described}


def _numbered(rows: str) -> str:
    return f"(SELECT *, row_number() OVER () AS log_row FROM ({rows}))"


def log_source(source: object, threads: int | None = None) -> LogSource:
    """Return the relation of a path, a glob, a folder, several of them, or a table."""
    connection = open_connection(threads)
    if isinstance(source, str | PathLike):
        return _from_files([source], connection)
    if isinstance(source, Sequence) and source and all(isinstance(path, str | PathLike) for path in source):
        return _from_files(source, connection)
    return _from_table(source, connection)


def found_files(places: Iterable[str | PathLike[str]]) -> tuple[Path, ...]:
    """Return the files of paths, globs and folders, in the order of their names within each."""
    files: list[Path] = []
    for place in places:
        path = Path(place)
        if path.is_dir():
            matches = sorted(file for file in path.rglob("*") if _is_log(file, path))
        elif path.exists():
            matches = [path]
        else:
            matches = sorted(Path(file) for file in glob.glob(str(place), recursive=True) if Path(file).is_file())
        if not matches:
            what = "a folder with no CSV, Parquet or JSON-lines file" if path.is_dir() else "no such file"
            raise LogError(f"expected a log at {brief(str(place))}, got {what}; check the path")
        files += matches
    for file in files:
        if not file.is_file():
            raise LogError(f"expected a file, got {brief(str(file))}, which is none; copy the rows into one first")
    return tuple(dict.fromkeys(files))


def _is_log(file: Path, below: Path) -> bool:
    hidden = any(folder.startswith((".", "_")) for folder in file.relative_to(below).parts)
    return not hidden and file.is_file() and file.name.lower().endswith(SUFFIXES)


def _from_files(places: Iterable[str | PathLike[str]], connection: DuckDBPyConnection) -> LogSource:
    files = found_files(places)
    kinds = {file_kind(file) for file in files}
    if len(kinds) > 1:
        raise LogError(f"expected files of one kind, got {' and '.join(sorted(kinds))}; read them one after the other")
    make = {"csv": _from_csv, "parquet": _from_parquet, "json": _from_json}[kinds.pop()]
    return make(files, connection)


def _from_csv(files: tuple[Path, ...], connection: DuckDBPyConnection) -> LogSource:
    """Files with the same header are read together; columns of different headers are matched by name."""
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
            f"{_listed(group)}, auto_detect = false, header = true, "
            f"delim = {text_literal(delimiter)}, quote = '\"', escape = '\"', columns = {{{typed}}}" + STRICTLY
        )
        parts.append(f"SELECT {chosen} FROM read_csv({options})")
        numbered.append(f"SELECT {chosen}, filename AS log_file FROM read_csv({options}, filename = true)")
    rows, counted = f"({' UNION ALL '.join(parts)})", _numbered(" UNION ALL ".join(numbered))
    return LogSource("csv", rows, counted, columns, files, connection)


def _from_parquet(files: tuple[Path, ...], connection: DuckDBPyConnection) -> LogSource:
    partitioned = any("=" in folder for file in files for folder in file.parts[:-1])
    options = f"{_listed(files)}, union_by_name = {len(files) > 1}, hive_partitioning = {partitioned}"
    rows = f"read_parquet({options})"
    counted = (
        f"(SELECT *, filename AS log_file, file_row_number + 1 AS log_row "
        f"FROM read_parquet({options}, filename = true, file_row_number = true))"
    )
    source = LogSource("parquet", rows, counted, {}, files, connection)
    return replace(source, columns=_typed(source.query(f"DESCRIBE SELECT * FROM {rows}")))


def _from_json(files: tuple[Path, ...], connection: DuckDBPyConnection) -> LogSource:
    keys: dict[str, str] = {}  # without regard to case, as in DuckDB
    for key in chain.from_iterable(sampled_objects(files)):
        keys.setdefault(key.lower(), key)
    if not keys:
        raise LogError("expected JSON objects with keys, got none in the first lines; write one object a line")
    if len(keys) > MOST_COLUMNS:
        raise LogError(f"expected at most {MOST_COLUMNS:,} keys, got {len(keys):,}; keep those that are needed")
    typed = ", ".join(f"{identifier(key)}: 'VARCHAR'" for key in keys.values())
    options = f"{_listed(files)}, columns = {{{typed}}}, format = 'newline_delimited', maximum_object_size = 16777216"
    counted = _numbered(f"SELECT *, filename AS log_file FROM read_json({options}, filename = true)")
    columns = _typed((key, "VARCHAR") for key in keys.values())
    return LogSource("json", f"read_json({options})", counted, columns, files, connection)


def _from_table(table: object, connection: DuckDBPyConnection) -> LogSource:
    import duckdb

    counted = _numbered("SELECT *, 'the table' AS log_file FROM log_rows")
    if isinstance(table, duckdb.DuckDBPyRelation):
        columns = _typed(zip(table.columns, table.types, strict=True))
        return LogSource("table", "log_rows", counted, columns, (), connection, table)
    try:
        if hasattr(table, "get_columns") and find_spec("pyarrow") is None:  # by which DuckDB reads polars
            table = {column.name: column for column in table.get_columns()}
        if isinstance(table, Mapping):
            table = _arrays(table)
            connection.execute(f"SET pandas_analyze_sample = {max(map(len, table.values()), default=0) + 1}")
        connection.register("log_rows", table)
        described = connection.execute("DESCRIBE SELECT * FROM log_rows").fetchall()
    except Exception:
        raise LogError(
            f"expected the path of a log, or a table of DuckDB, pandas, polars or pyarrow, got {brief(table)}; "
            "give one of these"
        ) from None
    return LogSource("table", "log_rows", counted, _typed(described), (), connection)


def _arrays(table: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Columns as DuckDB takes them; texts, vectors and columns with missing values are objects."""
    arrays = {str(name): _array(values) for name, values in table.items()}
    if len({len(array) for array in arrays.values()}) != 1:
        raise ValueError("expected columns of one length")
    return arrays


def _array(values: Any) -> NDArray[Any]:  # noqa: ANN401 (a list, or a column of any package)
    with suppress(ValueError):  # vectors of several lengths
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind in "biufMO":
            return array
    objects = np.empty(len(values), dtype=object)
    objects[:] = list(values)
    return objects


def guessed_column(usual: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column with the first of these usual names, ignoring case and blanks; None if there is none.

    >>> guessed_column(("arena_score", "elo rating"), ["model", "Elo  Rating"])
    'Elo  Rating'
    """
    plain = {" ".join(name.lower().split()): name for name in reversed(names)}
    return next((plain[name.lower()] for name in usual if name.lower() in plain), None)


def named_column(names: Sequence[str], meaning: str, name: str, error: type[CloneproofError] = LogError) -> str:
    """Return the name of a column, or raise an error if there is none of that name."""
    if name in names:
        return name
    near = did_you_mean(str(name), names)
    raise error(
        f"expected the column {brief(name)} for {meaning}, got none of that name; {near}{listed_columns(names)}"
    )


def listed_columns(names: Sequence[str]) -> str:
    shown = ", ".join(brief(name) for name in names[:MOST_LISTED])
    more = len(names) - MOST_LISTED
    return f"the columns are {shown}" + (f" and {more:,} more" if more > 0 else "")
