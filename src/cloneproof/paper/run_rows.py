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
from typing import Any, get_args

from cloneproof._lib.checks import one_of
from cloneproof._lib.files import code_version, write_whole
from cloneproof._lib.sections import Paragraph, Points, Section, SectionPart, Table
from cloneproof._lib.sections import report as renderer
from cloneproof._version import package_versions
from cloneproof.errors import CloneproofError
from cloneproof.paper.findings import (
    Check,
    CheckRole,
    Findings,
    Row,
    RowSetting,
    RowVerdict,
    Scale,
    TableCell,
    rows,
)
from cloneproof.runs.deadline import process_pool
from cloneproof.runs.estimate import Estimate

ROLES: dict[CheckRole, str] = {
    "claim": "Claim",
    "reading": "Remark, as we read it",
    "answer": "Answer",
    "detail": "Detail in the paper",
    "ours": "Our statement",
}
ROUNDING = 1e-6  # an error below that part of a number is that of its arithmetic
SHORT = 10  # letters of a text such as "(100, 1)" that no line break should divide
ANSWERS = {True: "Holds", False: "Fails", None: "Open"}
VERDICTS: tuple[RowVerdict, ...] = get_args(RowVerdict)
HOW_IT_IS_READ = (
    "A statement is read with the definitions of the paper; where its words allow several readings, the most "
    "favourable one counts, and so does a restatement elsewhere in the paper. A hypothesis that only a proof uses "
    "is not stated. Refuted as stated: an instance within the statement, so read, contradicts it, however small "
    "the repair. Refuted on our reading: the same of a hedged remark that we had to make precise. Confirmed with "
    "corrections: the statement holds in all that was computed, and something said on the way to it does not. "
    "Confirmed: so does what was checked of the way. Undecided: neither, or nothing is claimed. Verdicts are "
    "computed from the checks, and hold for what was computed."
)


def page(found: Mapping[str, tuple[Row, Findings]], scale: str, seed: int) -> str:
    """Return the page as text; equal findings give equal texts."""
    verdicts = [findings.verdict for _, findings in found.values()]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts]
    rows = [(f"{row.number}. {row.title}", findings.verdict) for row, findings in found.values()]
    first = Section(
        "Every claim, checked",
        [
            Paragraph(f"{len(rows)} statement{'' if len(rows) == 1 else 's'}: {', '.join(counts)}."),
            Table.of(("statement", "verdict"), rows, left=["statement", "verdict"]),
            Paragraph(HOW_IT_IS_READ, role="note"),
        ],
        "Replication-proof Bandit Mechanism Design with Bayesian Agents",
    )
    remarks = [f"scale {scale}, seed {seed}", "the same numbers as data: results.json beside this page"]
    return str(renderer("page").page([first, *(_section(*of_row) for of_row in found.values())], remarks))


def _section(row: Row, findings: Findings) -> Section:
    checks = Points(tuple(_check(check) for check in findings.checks))
    said: list[SectionPart] = [
        Paragraph(row.summary_of(findings), findings.verdict.capitalize()),
        Paragraph(row.claim, "The paper"),
        Paragraph(findings.computed, "What was computed"),
        checks,
    ]
    for table in findings.tables:
        columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
        words = [
            name for name, cells in zip(table.columns, columns, strict=True) if any(isinstance(c, str) for c in cells)
        ]
        said.append(Table.of(table.columns, [[*map(cell_words, cells)] for cells in table.rows], table.title, words))
        said += [Paragraph(table.note, role="note")] if table.note else []
    how = _methods(findings)
    said += [Paragraph(f"{'; '.join(how)}.", "How the numbers were obtained", "note")] if how else []
    return Section(f"{row.number}. {row.title}", said)


def _check(check: Check) -> Paragraph:
    """Return a check with its evidence."""
    evidence = "; ".join(f"{what}: {cell_words(value)}" for what, value in check.evidence)
    said = f"{ROLES[check.role]}: {check.statement}"
    return Paragraph(f"{said} ({evidence})" if evidence else said, ANSWERS[check.holds])


def _heading(row: Row, findings: Findings) -> dict[str, Any]:
    summary = row.summary_of(findings)
    return {"number": row.number, "title": row.title, "claim": row.claim, "summary": summary}


def _methods(findings: Findings) -> list[str]:
    """Describe how the numbers of the checks and tables were obtained, each way once."""
    values = [value for check in findings.checks for _, value in check.evidence]
    values += [cell for table in findings.tables for row in table.rows for cell in row]
    return sorted({value.method for value in values if isinstance(value, Estimate) and value.method})


def cell_words(value: TableCell) -> str:
    """Return a number as a reader wants it: an estimate with its error, unless that is no more than rounding.

    >>> cell_words(Estimate(0.25, 1e-12, "exact", "")), cell_words(7000)
    ('0.25', '7,000')
    """
    words = renderer("words")
    if isinstance(value, Estimate):
        rounding = value.error <= ROUNDING * max(1.0, abs(value.value))
        return str(words.number(value)) if rounding else f"{words.number(value)} {words.error_words(value)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", words.MINUS)
    if isinstance(value, float):
        return str(words.number(value))
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
    folder, setting = _folder(out), RowSetting(scale, seed)
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
        "versions": package_versions(*renderer("page").PACKAGES),
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


def _run(names: Sequence[str], setting: RowSetting, folder: Path, processes: int) -> Iterator[tuple[str, str]]:
    """Run rows in their order, in so many processes; yield the name and the outcome of each when it is stored."""
    if processes == 1:
        yield from (run_row(name, setting, folder) for name in names)
        return
    with process_pool(processes) as pool:
        running = [pool.submit(run_row, name, setting, folder) for name in names]
        yield from (future.result() for future in as_completed(running))


def run_row(name: str, setting: RowSetting, folder: Path) -> tuple[str, str]:
    """Run a row and store it, whole or not at all; return its name, and its verdict and seconds in words."""
    start = time.perf_counter()
    findings = rows()[name].run(setting)
    seconds = time.perf_counter() - start
    data = {"key": key(name, setting), "seconds": seconds, "findings": findings.to_dict()}
    write_whole(folder / f"{name}.json", json.dumps(data, allow_nan=False) + "\n")
    return name, f"{findings.verdict}, {seconds:.0f} s"


def load(folder: Path, name: str, setting: RowSetting) -> dict[str, Any] | None:
    """Return the finished row with its seconds, or None if it is absent, of another setting or code, or unreadable."""
    try:
        data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.get("key") == key(name, setting) else None


def key(name: str, setting: RowSetting) -> dict[str, Any]:
    """Return what a stored row must agree with."""
    return {"row": name, "scale": setting.scale, "seed": setting.seed, "code": code_version()}


def _write_json(path: Path, data: dict[str, Any]) -> None:
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
