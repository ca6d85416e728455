"""Faults of a log: every kind, how often, and where it first occurs.

The pass over the rows counts what cannot be used; a second pass, if needed, says why. A log with faults is refused, or
its faulty rows are left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from cloneproof._lib.sources import LogSource, text_literal
from cloneproof.errors import LogError, brief
from cloneproof.logs.statistics import LogRows

MOST_SAID: Final = 4  # kinds of faults named in an error
FIX: Final = "fix them, declare --reward-range LOW:HIGH, or leave them out by --leave-out"
FaultUnit = Literal["row", "line", "arm"]


@dataclass(frozen=True)
class Fault:
    """A kind of fault: how many rows (or arms) have it, and the first one in the order of the log."""

    kind: str
    count: int
    unit: FaultUnit
    first: str
    remedy: str = ""  # what to do about it, if not what is done about most

    def __str__(self) -> str:
        units = self.unit if self.count == 1 else f"{self.unit}s"
        return f"{self.kind} ({self.count:,} {units}, first {self.first})"


def row_faults(log: LogRows) -> list[Fault]:
    """Return why rows cannot be used: for each kind, how many and the first."""
    source = log.source
    cases = [f"WHEN ({check.valid}) IS NOT TRUE THEN {number}" for number, check in enumerate(log.checks)]
    values = [f"CAST({source.columns[check.column].sql} AS VARCHAR)" for check in log.checks]
    seen = [f"WHEN {number} THEN {value}" for number, value in enumerate(values)]
    sql = (
        "SELECT kind, count(*), arg_min({'file': log_file, 'row': log_row, 'text': seen}, (log_file, log_row)) FROM "
        f"(SELECT log_file, log_row, CASE kind {' '.join(seen)} END AS seen, kind FROM "
        f"(SELECT *, CASE {' '.join(cases)} END AS kind FROM {source.numbered})) "
        "WHERE kind IS NOT NULL GROUP BY kind ORDER BY kind"
    )
    source.connection.execute("SET preserve_insertion_order = true")
    return [_row_fault(log.checks[kind].fault, int(count), first, source) for kind, count, first in source.query(sql)]


def _row_fault(kind: str, count: int, first: dict[str, Any], source: LogSource) -> Fault:
    place = f"in row {_row_in_file(first, source):,}"
    place += f" of {Path(first['file']).name}" if source.files else ""
    text = first["text"]
    return Fault(kind, count, "row", place if text is None else f"{brief(text)} {place}")


def _row_in_file(first: dict[str, Any], source: LogSource) -> int:
    """Return the number of the row in its file; rows of CSV and JSON lines are numbered over all files."""
    number = int(first["row"])
    if source.kind not in ("csv", "json") or len(source.files) == 1:
        return number
    name = text_literal(first["file"])
    ((begin,),) = source.query(f"SELECT min(log_row) FROM {source.numbered} WHERE log_file = {name}")
    return number - int(begin) + 1


def skipped_lines(source: LogSource) -> tuple[int, list[Fault]]:
    """Count the lines of CSV files skipped so far, and those that could not be split into the header's columns."""
    if not source.lenient:
        return 0, []
    rejects = "FROM reject_errors e JOIN reject_scans s USING (scan_id, file_id)"
    ((count,),) = source.query(f"SELECT count(DISTINCT (s.file_path, e.line)) {rejects}")
    lines = source.query(
        "SELECT e.error_type, count(DISTINCT (s.file_path, e.line)), "
        f"arg_min({{'file': s.file_path, 'line': e.line}}, (s.file_path, e.line)) {rejects} "
        "WHERE e.error_type <> 'CAST' GROUP BY e.error_type ORDER BY 1"
    )
    return int(count), [
        Fault(f"{str(kind).lower()} in a line", int(count), "line", f"line {at['line']:,} of {Path(at['file']).name}")
        for kind, count, at in lines
    ]


def refuse(faults: Sequence[Fault], rows: int) -> None:
    """Raise one error for everything that is wrong."""
    if not faults:
        return
    kinds = "; ".join(str(fault) for fault in faults[:MOST_SAID])
    more = len(faults) - MOST_SAID
    kinds += f"; and {more} more kinds" if more > 0 else ""
    remedy = faults[0].remedy if len(faults) == 1 else ""
    raise LogError(
        f"expected rows with an agent, an arm and a reward in the declared range, got {kinds}, of {rows:,} rows; "
        f"{remedy or FIX}"
    )
