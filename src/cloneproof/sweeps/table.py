"""The table of a sweep: one row for each estimate of each point, as columns."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from cloneproof._display import Displayed
from cloneproof._files import write_whole
from cloneproof._tables import Tabular
from cloneproof.errors import SweepError, did_you_mean
from cloneproof.sweeps.answers import PointAnswer
from cloneproof.sweeps.grid_point import GridPoint

COLUMNS: Final = (
    "point", "question", "market", "mechanism", "parameters", "copies", "horizon", "seed", "engine",
    "quantity", "agent", "value", "error", "kind", "method", "verdict", "scope", "notes",
)  # fmt: skip
_WHOLE, _REAL = ("point", "horizon", "seed"), ("value", "error")


@dataclass(frozen=True)
class EstimateSummary:
    """What a sweep did: points, chunks that were there, chunks and runs computed now, damaged chunks, time."""

    points: int
    reused: int
    computed: int
    runs: int
    damaged: tuple[str, ...]
    seconds: float
    busy_seconds: float


class SweepTable(Mapping[str, list[Any]], Displayed, Tabular):
    """The table of a sweep, a mapping of column names to lists. The result of `cp.sweep`.

    Attributes
    ----------
    summary : EstimateSummary or None
        What the sweep did: points, chunks that were there, chunks and runs computed now, damaged chunks, time.

    Examples
    --------
    >>> table = SweepTable({"quantity": ["payoff", "regret"], "value": [3.0, 1.0]})
    >>> table["value"], len(table.rows), table.where(quantity="regret").rows
    ([3.0, 1.0], 2, [{'quantity': 'regret', 'value': 1.0}])
    """

    def __init__(self, columns: Mapping[str, list[Any]], summary: EstimateSummary | None = None) -> None:
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
        """The rows, each by column."""
        return [dict(zip(self._columns, values, strict=True)) for values in zip(*self.values(), strict=True)]

    def where(self, **wanted: Any) -> SweepTable:  # noqa: ANN401
        """The rows that have these values.

        Parameters
        ----------
        **wanted
            A column and the value that it is to have.

        Returns
        -------
        SweepTable
            The same columns, fewer rows.
        """
        for name in wanted:
            if name not in self._columns:
                raise SweepError(
                    f"unknown column {name!r}; {did_you_mean(name, self._columns)}known are {', '.join(self)}"
                )
        kept = [row for row in self.rows if all(row[name] == value for name, value in wanted.items())]
        return SweepTable({name: [row[name] for row in kept] for name in self}, self.summary)

    def to_columns(self) -> dict[str, list[Any]]:
        """The table as columns by name."""
        return dict(self._columns)

    def to_dict(self) -> dict[str, Any]:
        """The table as data for JSON, which has no infinity: None stands in its place.

        Returns
        -------
        dict
            rows (a list of dicts) and summary.
        """
        rows = [{name: _finite(value) for name, value in row.items()} for row in self.rows]
        return {"rows": rows, "summary": None if self.summary is None else asdict(self.summary)}

    def to_csv(self) -> str:
        """The table as CSV; numbers are written so that reading them gives the same bits.

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
        try:
            if str(path).endswith(".parquet"):
                _write_parquet(self._columns, Path(path))
            else:
                write_whole(path, self.to_csv())
        except OSError as problem:
            raise SweepError(f"expected to write {path}, got: {problem}; choose another place") from None


def _cell(value: Any) -> Any:  # noqa: ANN401 (a cell may hold anything)
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _finite(value: Any) -> Any:  # noqa: ANN401 (a cell may hold anything)
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass
class TableBuilder:
    """Collects the rows of points."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in COLUMNS})

    def add(self, point: GridPoint, answer: PointAnswer) -> None:
        """The rows of a point; a point that an engine refused has one, without a value."""
        estimates: Iterable[tuple[tuple[str, str], Any]] = answer.estimates.items() or [(("refused", ""), None)]
        copies = {**point.copies, **{name: tuple(counts) for name, counts in answer.witness.items()}}
        shown = {
            "point": point.number,
            "question": point.question,
            "market": point.label,
            "mechanism": point.mechanism.name,
            "parameters": json.dumps(dict(point.mechanism.parameters), default=str),
            "copies": "; ".join(f"{name} {','.join(map(str, counts))}" for name, counts in copies.items()),
            "horizon": point.market.horizon,
            "seed": point.seed,
            "engine": answer.engine,
            "verdict": answer.verdict,
            "scope": answer.scope,
            "notes": "; ".join(answer.notes),
        }
        for (quantity, agent), estimate in estimates:
            numbers = {name: getattr(estimate, name, None) for name in ("value", "error")}
            words = {name: getattr(estimate, name, "") for name in ("kind", "method")}
            row = shown | {"quantity": quantity, "agent": agent} | numbers | words
            for name in COLUMNS:
                self.columns[name].append(row[name])


def check_output(path: str | Path) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    name = str(path)
    if not name.endswith((".csv", ".parquet")):
        raise SweepError(f"expected a name that ends in .csv or .parquet, got {name}; rename the output")
    if not Path(name).resolve().parent.is_dir():
        raise SweepError(f"expected a folder to write {name} into, got none; make it first")
    if name.endswith(".parquet"):
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise SweepError(
                "expected pyarrow for Parquet, which is not installed; install it with "
                "pip install 'cloneproof[parquet]', or write .csv"
            ) from None


def _write_parquet(columns: Mapping[str, list[Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {name: pa.int64() if name in _WHOLE else pa.float64() if name in _REAL else pa.string() for name in columns}
    table = pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})
    temporary = path.with_name(f".{path.name}.partial")
    try:
        pq.write_table(table, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
