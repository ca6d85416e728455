"""The table of a sweep: one row for each estimate of each point, as columns."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cloneproof._lib.checks import one_of
from cloneproof._lib.files import check_place, write_whole
from cloneproof._lib.sections import Paragraph, Section, Table
from cloneproof._lib.tables import Tabular
from cloneproof.errors import SweepError
from cloneproof.sweeps.grid import GridPoint
from cloneproof.sweeps.tasks import Answer

COLUMNS: Final = (
    "point", "question", "market", "mechanism", "parameters", "copies", "horizon", "seed", "engine",
    "quantity", "agent", "value", "low", "high", "error", "kind", "level", "method", "verdict", "scope", "notes",
)  # fmt: skip
_WHOLE, _REAL = ("point", "horizon", "seed"), ("value", "low", "high", "error", "level")
MOST_ROWS = 40  # that are shown


@dataclass(frozen=True)
class SweepSummary:
    """What a sweep did: its points, different ones that were stored, those computed now, and the seconds."""

    points: int
    reused: int
    computed: int
    seconds: float


class SweepTable(Mapping[str, list[Any]], Tabular):
    """Table of a sweep, a mapping of column names to lists. The result of `cp.sweep`.

    Attributes
    ----------
    summary : SweepSummary or None
        What the sweep did: points, those that were stored, those computed now, time.

    Examples
    --------
    >>> table = SweepTable({"quantity": ["payoff", "regret"], "value": [3.0, 1.0]})
    >>> table["value"], len(table.rows), table.where(quantity="regret").rows
    ([3.0, 1.0], 2, [{'quantity': 'regret', 'value': 1.0}])
    """

    keys_of_data = ("rows", "summary")

    summary: SweepSummary | None

    def __init__(self, columns: Mapping[str, list[Any]], summary: SweepSummary | None = None) -> None:
        self._columns = dict(columns)
        self.summary = summary

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"<SweepTable of {len(self.rows)} rows: {', '.join(self)}>"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows, each by column."""
        return [dict(zip(self._columns, values, strict=True)) for values in zip(*self.values(), strict=True)]

    def where(self, **wanted: Any) -> SweepTable:  # noqa: ANN401
        """Return the rows that have these values, by column."""
        for name in wanted:
            one_of(name, self, "a column", SweepError)
        kept = [row for row in self.rows if all(row[name] == value for name, value in wanted.items())]
        return SweepTable({name: [row[name] for row in kept] for name in self}, self.summary)

    def sections(self) -> tuple[Section, ...]:
        """Return the first rows of the columns that tell points apart, and their numbers."""
        if not all(column in self for column in COLUMNS):
            return super().sections()
        rows = self.rows
        columns = ("point", "market", "mechanism", "copies", "T", "quantity", "value", "± error")
        table = Table.of(columns, map(_shown, rows[:MOST_ROWS]), left=["market", "mechanism", "copies", "quantity"])
        words = f"{len(rows) - MOST_ROWS:,} further rows are not shown; `write` (--output FILE.csv) has all of them."
        return (Section("", [table, *([Paragraph(words, role="note")] if len(rows) > MOST_ROWS else [])]),)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table as columns by name."""
        return dict(self._columns)

    def to_csv(self) -> str:
        """Return the table as CSV; numbers are written so that reading them gives the same bits.

        Text that a spreadsheet would take for a formula has an apostrophe before it.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self._columns)
        writer.writerows([_cell(value) for value in row] for row in zip(*self.values(), strict=True))
        return text.getvalue()

    def write(self, path: str | Path) -> None:
        """Write a file, whole or not at all: Parquet if its name ends so (`cloneproof[parquet]`), else CSV."""
        check_output(path)
        content = _parquet(self._columns) if str(path).endswith(".parquet") else self.to_csv()
        write_whole(path, content, SweepError)


def _shown(row: dict[str, Any]) -> tuple[str, ...]:
    what = " ".join(word for word in (row["quantity"], row["agent"]) if word)
    told = [row["verdict"]] if row["verdict"] and row["quantity"] == "gain" else []
    error = "few runs" if row["error"] is None else f"{row['error']:.1e}"
    numbers = ["", ""] if row["value"] is None else [f"{row['value']:.6g}", error]
    where = (str(row["point"]), Path(row["market"]).name, row["mechanism"], _deviations(row["copies"]))
    return *where, str(row["horizon"]), " ".join([what, *told]), *numbers


def _deviations(copies: str) -> str:
    """Return the copies of those who are not honest.

    >>> _deviations("ana 2,1; bo 1; cy 1,1"), _deviations("bo 1")
    ('ana 2,1', 'honest')
    """
    copiers = [own for own in copies.split("; ") if set(own.rpartition(" ")[2].split(",")) != {"1"}]
    return "; ".join(copiers) or "honest"


def _cell(value: Any) -> Any:  # noqa: ANN401 (a cell may hold anything)
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def point_rows(point: GridPoint, answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield the rows of a point, by column; a point that an engine refused has one, without a value."""
    witness = {name: tuple(counts) for name, counts in answer.get("witness", {}).items()}
    shown = {
        "point": point.number,
        "question": point.question,
        "market": point.label,
        "mechanism": point.mechanism.name,
        "parameters": json.dumps(dict(point.mechanism.parameters), default=str),
        "copies": "; ".join(f"{name} {','.join(map(str, own))}" for name, own in {**point.copies, **witness}.items()),
        "horizon": point.market.horizon,
        "seed": point.options["seed"],
        "engine": answer["engine"],
        "verdict": answer.get("verdict", ""),
        "scope": answer.get("scope", ""),
        "notes": "; ".join(answer["notes"]),
    }
    nothing = dict.fromkeys(("value", "low", "high", "error", "level")) | {"kind": "", "method": ""}
    for quantity, agent, estimate in answer["estimates"] or [("refused", "", nothing)]:
        yield shown | {"quantity": quantity, "agent": agent} | {name: estimate[name] for name in nothing}


def check_output(path: str | Path) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    name = str(path)
    if not name.endswith((".csv", ".parquet")):
        raise SweepError(f"expected a name that ends in .csv or .parquet, got {name}; rename the output")
    check_place(path, SweepError)
    if name.endswith(".parquet"):
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise SweepError(
                "expected pyarrow for Parquet, which is not installed; install it with "
                "pip install 'cloneproof[parquet]', or write .csv"
            ) from None


def _parquet(columns: Mapping[str, list[Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {name: pa.int64() if name in _WHOLE else pa.float64() if name in _REAL else pa.string() for name in columns}
    file = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()}), file)
    return file.getvalue()
