"""Faults of a log: every kind, how often, and where it first occurs.

The pass over the rows counts what cannot be used; a second pass, if needed, says why. A log with faults is refused, or
its faulty rows are left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from cloneproof.errors import LogError, brief
from cloneproof.logs.sources import LogSource, text_literal
from cloneproof.logs.statistics import LogRows
from cloneproof.market.positions import MOST_PLACES

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
    source, columns = log.source, log.columns
    value, low, high = columns.value, float(log.scale.low), float(log.scale.high)
    shown: dict[str, str] = {}
    cases: list[str] = []

    def case(kind: str, condition: str, column: str | None) -> None:
        shown[kind] = "''" if column is None else f"CAST({source.columns[column].sql} AS VARCHAR)"
        cases.append(f"WHEN {condition} THEN {len(shown) - 1}")

    if columns.agent is not None:
        case("no agent", f"({log.agent}) IS NULL", columns.agent)
    case("no arm", f"({log.arm}) IS NULL", columns.arm)
    if columns.segment:
        case("no segment", f"({log.segment}) IS NULL", columns.segment[0])
    case("no reward", f"{source.columns[value].sql} IS NULL", value)
    case("a reward that is no number", f"({log.reward}) IS NULL OR NOT isfinite(CAST({log.reward} AS DOUBLE))", value)
    if columns.count is not None:
        odd = f"{log.count} IS NULL OR NOT ({log.count} >= 0 AND {log.count} <= 1e15)"
        case("a number of rounds that is none", f"{odd} OR {log.count} <> floor({log.count})", columns.count)
    case(f"a reward below {low:g}", f"{log.reward} < {low!r} * {log.count}", value)
    case(f"a reward above {high:g}", f"{log.reward} > {high!r} * {log.count}", value)
    if log.time:
        case("a time that is none", f"({log.time}) IS NULL", columns.time)
    if columns.propensity is not None:
        inside = f"({log.propensity} > 0 AND {log.propensity} <= 1)"
        case("a propensity that is not above 0 and at most 1", f"{inside} IS NOT TRUE", columns.propensity)
    if columns.position is not None:
        valid = f"({log.position} >= 1 AND {log.position} <= {MOST_PLACES} AND {log.position} = floor({log.position}))"
        case(f"a place that is no whole number from 1 to {MOST_PLACES:,}", f"{valid} IS NOT TRUE", columns.position)
    kinds = list(shown)
    text = " ".join(f"WHEN {number} THEN {shown[kind]}" for number, kind in enumerate(kinds))
    sql = (
        "SELECT kind, count(*), arg_min({'file': log_file, 'row': log_row, 'text': seen}, (log_file, log_row)) FROM "
        f"(SELECT log_file, log_row, CASE kind {text} END AS seen, kind FROM "
        f"(SELECT *, CASE {' '.join(cases)} END AS kind FROM {source.numbered})) "
        "WHERE kind IS NOT NULL GROUP BY kind ORDER BY kind"
    )
    source.connection.execute("SET preserve_insertion_order = true")
    return [_row_fault(kinds[kind], int(count), first, source) for kind, count, first in source.query(sql)]


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
    said = "; ".join(str(fault) for fault in faults[:MOST_SAID])
    more = len(faults) - MOST_SAID
    said += f"; and {more} more kinds" if more > 0 else ""
    remedy = faults[0].remedy if len(faults) == 1 else ""
    raise LogError(
        f"expected rows with an agent, an arm and a reward in the declared range, got {said}, of {rows:,} rows; "
        f"{remedy or FIX}"
    )
