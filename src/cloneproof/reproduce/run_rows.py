"""Run the rows that are not finished yet, then write the page and the results from what is stored.

    DIR/report.html        the page, self-contained
    DIR/results.json       every verdict, check and table as data; scale, seed and versions; no times
    DIR/timings.json       the seconds that each row took, apart from the results, since no two runs take the same
    DIR/rows/              finished rows, from which a second call goes on

The page and the results are made from the stored rows alone, so that a run that was killed and continued yields the
bytes of one that was not. A stored row counts only for the same scale, seed and version of the code.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from cloneproof._checks import one_of
from cloneproof._files import write_whole
from cloneproof._processes import process_pool
from cloneproof._sources import code_version
from cloneproof._version import package_versions
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError
from cloneproof.report import words
from cloneproof.report.page import PACKAGES, render
from cloneproof.reproduce.findings import (
    CheckRole,
    Findings,
    FindingsTable,
    Row,
    RowVerdict,
    Scale,
    Setting,
    TableCell,
    rows,
)

ROLES: dict[CheckRole, str] = {
    "claim": "Claim",
    "reading": "Remark, as we read it",
    "answer": "Answer",
    "detail": "Detail in the paper",
    "ours": "Our statement",
}
ROUNDING = 1e-6  # an error below that part of a number is that of its arithmetic
CSS_CLASSES: dict[RowVerdict, str] = {
    "confirmed": "confirmed",
    "confirmed with corrections": "corrected",
    "refuted on our reading": "reread",
    "refuted as stated": "refuted",
    "answered": "confirmed",
    "undecided": "undecided",
}
SHORT = 10  # letters of a text such as "(100, 1)" that no line break should divide
ANSWERS = {True: "holds", False: "fails", None: "open"}


def page(sections: Mapping[str, tuple[Row, Findings]], scale: str, seed: int) -> str:
    """Return the page as text; equal findings give equal texts."""
    verdicts = [findings.verdict for _, findings in sections.values()]
    context = {
        "sections": [_section(name, *section) for name, section in sections.items()],
        "tally": [
            {"verdict": verdict, "css": css, "count": verdicts.count(verdict)}
            for verdict, css in CSS_CLASSES.items()
            if verdict in verdicts
        ],
        "scale": scale,
        "seed": seed,
        "versions": " · ".join(f"{name} {number}" for name, number in package_versions(*PACKAGES).items()),
    }
    return render("reproduction_page.html", context)


def _section(name: str, row: Row, findings: Findings) -> dict[str, Any]:
    return {
        **_heading(row, findings),
        "name": name,
        "verdict": findings.verdict,
        "css": CSS_CLASSES[findings.verdict],
        "computed": findings.computed,
        "checks": [
            {"role": ROLES[check.role], "answer": ANSWERS[check.holds], "statement": check.statement,
             "evidence": [(what, cell_words(value), _sure(value)) for what, value in check.evidence]}
            for check in findings.checks
        ],
        "methods": _methods(findings),
        "tables": [_table(table) for table in findings.tables],
    }  # fmt: skip


def _heading(row: Row, findings: Findings) -> dict[str, Any]:
    summary = row.summary_of(findings)
    return {"number": row.number, "title": row.title, "claim": row.claim, "summary": summary}


def _sure(value: TableCell) -> str:
    """Return what the error bound means, in a word; the methods in full stand at the end of the section."""
    if not isinstance(value, Estimate):
        return ""
    if value.kind == "exact":
        return "computed"
    return "sampled, the bound holds at its confidence"


def _methods(findings: Findings) -> list[str]:
    """Describe how the numbers of the checks and tables were obtained, each way once."""
    values = [value for check in findings.checks for _, value in check.evidence]
    values += [cell for table in findings.tables for row in table.rows for cell in row]
    return sorted({value.method for value in values if isinstance(value, Estimate) and value.method})


def _table(table: FindingsTable) -> dict[str, Any]:
    """Set a column with text flush left, free to wrap, and one of numbers flush right, unwrapped."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    aligned = ["text" if any(isinstance(cell, str) for cell in column) else "number" for column in columns]
    return {
        "title": table.title,
        "columns": list(zip(table.columns, aligned, strict=True)),
        "rows": [[cell_words(cell) for cell in row] for row in table.rows],
        "note": table.note,
    }


def cell_words(value: TableCell) -> str:
    """Return a number as a reader wants it: an estimate with its error, unless that is no more than rounding.

    >>> cell_words(Estimate(0.25, 1e-12, "exact", "")), cell_words(7000)
    ('0.25', '7,000')
    """
    if isinstance(value, Estimate):
        rounding = value.error <= ROUNDING * max(1.0, abs(value.value))
        return words.number(value) if rounding else f"{words.number(value)} {words.error_words(value)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", words.MINUS)
    if isinstance(value, float):
        return words.number(value)
    return value.replace(" ", words.FIXED) if len(value) <= SHORT else value


RowCallback = Callable[[int, int, str], None]  # finished rows, all rows, the rows under way


def reproduce(
    out: str | Path,
    only: Sequence[str] = (),
    scale: Scale = "full",
    seed: int = 0,
    processes: int = 1,
    report: RowCallback = lambda done, total, what: None,
    finish: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Check every statement, or only the rows named, and return what `results.json` holds.

    Rows that are finished in `out` are not run again; with `only`, the page has them as well. `report` is told how far
    it is, `finish` a line about each row.
    """
    for name in only:
        one_of(name, rows(), "a row")
    folder, setting = _folder(out), Setting(scale, seed)
    left = [n for n in rows() if (not only or n in only) and load(folder / "rows", n, setting) is None]
    stored = _run(tuple(left), setting, folder / "rows", processes)
    while left:
        report(len(rows()) - len(left), len(rows()), ", ".join(left[:processes]))
        name, outcome = next(stored)
        left.remove(name)
        finish(f"{name}: {outcome}")
    finished = {name: data for name in rows() if (data := load(folder / "rows", name, setting)) is not None}
    sections = {name: (rows()[name], Findings.from_dict(data["findings"])) for name, data in finished.items()}
    results = {
        "scale": scale,
        "seed": seed,
        "versions": package_versions(*PACKAGES),
        "timings": "timings.json",
        "rows": {name: _heading(*section) | finished[name]["findings"] for name, section in sections.items()},
    }
    _write_json(folder / "timings.json", {"seconds": {n: round(data["seconds"], 3) for n, data in finished.items()}})
    write_whole(folder / "report.html", page(sections, scale, seed))
    _write_json(folder / "results.json", results)  # last: where it is, all is
    return results


def _folder(out: str | Path) -> Path:
    folder = Path(out)
    try:
        (folder / "rows").mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CloneproofError(f"expected a folder to write into, got {out}: {problem}; choose another") from None
    return folder


def _run(names: Sequence[str], setting: Setting, folder: Path, processes: int) -> Iterator[tuple[str, str]]:
    """Run rows in their order, in so many processes; yield the name and the outcome of each when it is stored."""
    if processes == 1:
        yield from (run_row(name, setting, folder) for name in names)
        return
    with process_pool(processes) as pool:
        running = [pool.submit(run_row, name, setting, folder) for name in names]
        yield from (future.result() for future in as_completed(running))


def run_row(name: str, setting: Setting, folder: Path) -> tuple[str, str]:
    """Run a row and store it, whole or not at all; return its name, and its verdict and seconds in words."""
    start = time.perf_counter()
    findings = rows()[name].run(setting)
    seconds = time.perf_counter() - start
    data = {"key": key(name, setting), "seconds": seconds, "findings": findings.to_dict()}
    write_whole(folder / f"{name}.json", json.dumps(data, allow_nan=False) + "\n")
    return name, f"{findings.verdict}, {seconds:.0f} s"


def load(folder: Path, name: str, setting: Setting) -> dict[str, Any] | None:
    """Return the finished row with its seconds, or None if it is absent, of another setting or code, or unreadable."""
    try:
        data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.get("key") == key(name, setting) else None


def key(name: str, setting: Setting) -> dict[str, Any]:
    """Return what a stored row must agree with."""
    return {"row": name, "scale": setting.scale, "seed": setting.seed, "code": code_version()}


def _write_json(path: Path, data: dict[str, Any]) -> None:
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
