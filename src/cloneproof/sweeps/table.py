"""From what is stored to the table of a sweep: one row for each estimate of each point, as columns.

Runs are read from the store instead of being computed, and everything else is `sample` and `gain`: so an answer has
the very bits of `cp.evaluate` and `cp.gain`, whatever the chunks were.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._checks import one_of
from cloneproof._files import check_place, write_whole
from cloneproof._sections import Paragraph, Section, Table
from cloneproof._tables import Tabular
from cloneproof.analysis.deviations import CopiesOf
from cloneproof.analysis.evaluate import with_notes
from cloneproof.analysis.gain import PairedSampling, sampled_gain
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, sample
from cloneproof.errors import SweepError
from cloneproof.sweeps.grid import GridPoint
from cloneproof.sweeps.store import Index, Need
from cloneproof.sweeps.tasks import Chunk

COLUMNS: Final = (
    "point", "question", "market", "mechanism", "parameters", "copies", "horizon", "seed", "engine",
    "quantity", "agent", "value", "error", "kind", "method", "verdict", "scope", "notes",
)  # fmt: skip
_WHOLE, _REAL = ("point", "horizon", "seed"), ("value", "error")
READ = 1 << 14  # runs at a time
MOST_ROWS = 40  # that are shown


class PointAnswer(NamedTuple):
    """Estimates of a point by (quantity, agent), how they were obtained, and what a reader must know."""

    estimates: dict[tuple[str, str], Estimate]
    engine: str
    notes: tuple[str, ...] = ()
    verdict: str = ""
    scope: str = ""
    witness: dict[str, list[int]] = {}  # noqa: RUF012 (never written to)


def answer(point: GridPoint, need: Need, index: Index) -> PointAnswer:
    """Return what is known of a point whose needs are met; `DamagedChunk` if a chunk went bad meanwhile."""
    refusals: list[str] = []
    if need.whole:
        data = json.loads(index.store.read(Chunk(need.whole, 0, 0)))
        refusals = data["refusals"]
        if "evaluation" in data:
            return _evaluation_answer(_evaluation(point, data["evaluation"], refusals))
        if "verdict" in data:
            return _audit_answer(data)
        if not need.sampled:
            return PointAnswer({}, "refused", tuple(refusals))
    stored = [stored_runs(index, key, 2 * len(point.market.agents) + 1) for key in need.sampled]
    confidence = point.options["confidence"]
    if point.question == "evaluate":
        job = Job(point.market, point.mechanism, dict(point.copies), point.seed)
        sampled = sample(
            job, point.runs, confidence=confidence, threads=1, outcomes=stored[0], parallel=False, chunk=READ
        )
        evaluation = with_notes(sampled, point.market, point.mechanism, dict(point.copies), refusals)
        return _evaluation_answer(evaluation)
    honest, agent = point.honest, point.options["agent"]
    sampling = PairedSampling(
        runs=point.runs,
        confidence=confidence,
        seed=point.seed,
        threads=1,
        stop_when_decided=False,
        outcomes=lambda job, first, count: stored[int(job.copies != honest)](job, first, count),
        chunk=READ,
    )
    copies = dict(point.copies)
    deviation = CopiesOf(agent, copies[agent], copies)
    found_gain = sampled_gain(point.market, point.mechanism, deviation, sampling)
    by_name = {"gain": found_gain.estimate, "honest": found_gain.honest, "copied": found_gain.copied}
    return PointAnswer({(name, agent): estimate for name, estimate in by_name.items()}, "monte-carlo")


def stored_runs(index: Index, key: str, columns: int) -> ChunkOutcomes[Job]:
    """Return what reads the outcomes of a part's runs from its chunks, which may overlap; one is kept in memory."""

    @lru_cache(maxsize=1)
    def rows_of(chunk: Chunk) -> FloatArray:
        return np.frombuffer(index.store.read(chunk), dtype="<f8").reshape(chunk.runs, columns)

    def outcomes(job: Job, first: int, count: int) -> Outcomes:
        rows, at = [], first
        while at < first + count:
            chunk = next(own for own in index.chunks[key] if own.first <= at < own.stop)
            rows.append(rows_of(chunk)[at - chunk.first : first + count - chunk.first])
            at += len(rows[-1])
        together, agents = np.concatenate(rows), columns // 2
        return Outcomes(together[:, :agents], together[:, agents], together[:, agents + 1 :])

    return outcomes


def _evaluation(point: GridPoint, data: dict[str, Any], refusals: list[str]) -> Evaluation:
    """Return an exact evaluation as it was stored, with why other engines were passed over."""
    stored = Evaluation.from_dict(data)
    outside = with_notes(replace(stored, notes=()), point.market, point.mechanism, dict(point.copies), []).notes
    return replace(stored, notes=(*outside, *refusals, *stored.notes[len(outside) :]))


def _evaluation_answer(evaluation: Evaluation) -> PointAnswer:
    estimates = {("payoff", name): estimate for name, estimate in evaluation.payoff.items()}
    return PointAnswer(estimates | {("regret", ""): evaluation.regret}, evaluation.engine, evaluation.notes)


def _audit_answer(data: dict[str, Any]) -> PointAnswer:
    worst = data["worst"]
    estimates = {(name, worst["agent"]): Estimate.from_dict(worst[name]) for name in ("gain", "honest", "copied")}
    for name, witness in data["also"].items():
        estimates[f"{name} gain", witness["agent"]] = Estimate.from_dict(witness["gain"])
    copies = {worst["agent"]: worst["copies"]}
    return PointAnswer(estimates, "audit", tuple(data["notes"]), data["verdict"], data["scope"], copies)


@dataclass(frozen=True)
class EstimateSummary:
    """Summary of a sweep: points, chunks that were there, chunks and runs computed now, damaged chunks, time."""

    points: int
    reused: int
    computed: int
    runs: int
    damaged: tuple[str, ...]
    seconds: float
    busy_seconds: float


class SweepTable(Mapping[str, list[Any]], Tabular):
    """Table of a sweep, a mapping of column names to lists. The result of `cp.sweep`.

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

    keys_of_data = ("rows", "summary")

    summary: EstimateSummary | None

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
    numbers = ["", ""] if row["value"] is None else [f"{row['value']:.6g}", f"{row['error']:.1e}"]
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


def point_rows(point: GridPoint, answer: PointAnswer) -> Iterator[dict[str, Any]]:
    """Yield the rows of a point, by column; a point that an engine refused has one, without a value."""
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
        yield shown | {"quantity": quantity, "agent": agent} | numbers | words


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
