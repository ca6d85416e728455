"""All rows as one page of HTML that needs nothing else: a table of verdicts, then a section for each row."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from cloneproof.engines.estimate import Estimate
from cloneproof.report import formatting
from cloneproof.report.figures.drawing import draw_figure
from cloneproof.report.pages.rendering import render
from cloneproof.reproduce.findings import Check, CheckRole, Findings, FindingsTable, RowVerdict, TableCell

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


@dataclass(frozen=True)
class Section:
    """A row and what it found."""

    name: str
    number: int
    title: str
    claim: str
    summary: str
    findings: Findings


def page(
    sections: Sequence[Section], scale: str, seed: int, versions: dict[str, str], map_: Callable[..., Any] = map
) -> str:
    """The page as text: the same findings, the same text; `map_` may draw the figures in several processes."""
    figures = [(figure, f"{row.name}-{k}") for row in sections for k, figure in enumerate(row.findings.figures)]
    drawings = iter(list(map_(draw_figure, *zip(*figures, strict=True)))) if figures else iter(())
    context = {
        "sections": [_section(section, drawings) for section in sections],
        "tally": _tally(sections),
        "scale": scale,
        "seed": seed,
        "versions": " · ".join(f"{name} {number}" for name, number in versions.items()),
    }
    return render("reproduction_page.html", context)


def _tally(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """How often each verdict occurs, those that occur, in the order of `CSS_CLASSES`."""
    verdicts = [section.findings.verdict for section in sections]
    return [
        {"verdict": verdict, "css": css, "count": verdicts.count(verdict)}
        for verdict, css in CSS_CLASSES.items()
        if verdict in verdicts
    ]


def _section(section: Section, drawings: Iterator[dict[str, str]]) -> dict[str, Any]:
    findings = section.findings
    return {
        "name": section.name,
        "number": section.number,
        "title": section.title,
        "claim": section.claim,
        "summary": section.summary,
        "verdict": findings.verdict,
        "css": CSS_CLASSES[findings.verdict],
        "computed": findings.computed,
        "checks": [_check(check) for check in findings.checks],
        "figures": [
            {"title": figure.title, "caption": figure.caption}
            | {width: Markup(svg) for width, svg in next(drawings).items()}
            for figure in findings.figures
        ],
        "methods": _methods(findings),
        "tables": [_table(table) for table in findings.tables],
        "certificates": [
            {"name": name, "file": f"{section.name}-{name}.json", "verdict": document.get("verdict", ""),
             "data": _data_address(document)}
            for name, document in findings.certificates.items()
        ],
    }  # fmt: skip


def _check(check: Check) -> dict[str, Any]:
    return {
        "role": ROLES[check.role],
        "answer": ANSWERS[check.holds],
        "statement": check.statement,
        "evidence": [(what, cell_words(value), _sure(value)) for what, value in check.evidence],
    }


def _sure(value: TableCell) -> str:
    """What the error bound means, in a word; the methods in full stand at the end of the section."""
    if not isinstance(value, Estimate):
        return ""
    if value.kind == "estimated":
        return "computed in floats" if value.error <= ROUNDING * max(1.0, abs(value.value)) else "sampled"
    return "proven" if value.kind == "proven" else "sampled, the bound holds at its confidence"


def _methods(findings: Findings) -> list[str]:
    """How the numbers of the checks and tables were obtained, each way once."""
    values = [value for check in findings.checks for _, value in check.evidence]
    values += [cell for table in findings.tables for row in table.rows for cell in row]
    return sorted({value.method for value in values if isinstance(value, Estimate) and value.method})


def _table(table: FindingsTable) -> dict[str, Any]:
    """A column that has text in it is set flush left and may wrap; one of numbers is set flush right and may not."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    aligned = ["text" if any(isinstance(cell, str) for cell in column) else "number" for column in columns]
    return {
        "title": table.title,
        "columns": list(zip(table.columns, aligned, strict=True)),
        "rows": [[cell_words(cell) for cell in row] for row in table.rows],
        "note": table.note,
    }


def cell_words(value: TableCell) -> str:
    """A number as a reader wants it: an estimate with its error, unless that is no more than rounding.

    >>> cell_words(Estimate(0.25, 1e-12, "proven", "")), cell_words(7000)
    ('0.25', '7,000')
    """
    if isinstance(value, Estimate):
        rounding = value.error <= ROUNDING * max(1.0, abs(value.value))
        return formatting.number(value) if rounding else f"{formatting.number(value)} {formatting.error_words(value)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", formatting.MINUS)
    if isinstance(value, float):
        return formatting.number(value)
    return value.replace(" ", formatting.FIXED) if len(value) <= SHORT else value


def _data_address(document: dict[str, Any]) -> str:
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    return "data:application/json;base64," + base64.b64encode(text.encode()).decode()
