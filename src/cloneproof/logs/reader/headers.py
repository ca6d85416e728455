"""What kind of file it is, the header of a CSV file, and the keys of a JSON-lines file."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final, Literal

from cloneproof.errors import LogError, brief

DELIMITERS: Final = (",", "\t", ";", "|")
FIRST_BYTES: Final = 1 << 20
LONGEST_HEADER: Final = 1 << 25
SAMPLED_LINES: Final = 1000
OTHER_ENCODINGS: Final = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"PK": "a ZIP or Excel file",
    b"\x1f\x8b": "gzip",
}
FileKind = Literal["csv", "parquet", "json"]


def file_kind(file: Path) -> FileKind:
    """By its first bytes where they tell, else by its name."""
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
    """The names of a CSV file's columns, and what separates them: what makes most columns of the first line.

    Names that are empty get their number; a name that stands twice is refused where it is asked for.
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
    delimiter = max(DELIMITERS, key=lambda each: len(headers[each]))
    names = tuple(name.strip() or f"column {number}" for number, name in enumerate(headers[delimiter], start=1))
    return names, delimiter


def json_keys(files: Iterable[Path]) -> tuple[str, ...]:
    """The keys of the first objects of each file, in the order in which they come."""
    keys: dict[str, None] = {}
    for file in files:
        number = 0
        with _opened(file) as lines:
            for number, line in enumerate(lines, start=1):
                if number > SAMPLED_LINES:
                    break
                _add_keys(keys, line, number, file)
        if number == 0:
            raise LogError(f"expected a log with rows, got {_named(file)}, which is empty; write the rows first")
    if not keys:
        raise LogError("expected JSON objects with keys, got none in the first lines; write one object a line")
    return tuple(keys)


def _add_keys(keys: dict[str, None], line: bytes, number: int, file: Path) -> None:
    if not line.strip():
        return
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        if number > 1:
            return  # counted as a fault with the others
        raise LogError(
            f"expected one JSON object a line, got {_named(file)}, whose first line is none; write JSON lines"
        ) from None
    if isinstance(row, dict):
        known = {key.lower() for key in keys}
        keys.update({key: None for key in row if key.lower() not in known})
    elif number == 1:
        raise LogError(f"expected one JSON object a line, got {brief(row)} in {_named(file)}; write JSON lines")


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
