"""All rows as one page of HTML that needs nothing else: a table of verdicts, then a section for each row."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from cloneproof.engines.estimate import Estimate
from cloneproof.report.figures.drawing import draw_figure
from cloneproof.report.pages import words
from cloneproof.report.pages.rendering import rendered
from cloneproof.reproduce.findings import Check, CheckRole, Findings, FindingsTable, TableCell

ROLES: dict[CheckRole, str] = {
    "claim": "The claim",
    "detail": "Said on the way",
    "ours": "What we say",
}
ROUNDING = 1e-6  # an error below that part of a number is that of its arithmetic
ANSWERS = {True: "holds", False: "fails", None: "open"}


@dataclass(frozen=True)
class Section:
    """A row and what it found."""

    name: str
    number: int
    title: str
    claim: str
    findings: Findings


def page(
    sections: Sequence[Section], scale: str, seed: int, versions: dict[str, str], map_: Callable[..., Any] = map
) -> str:
    """The page as text: the same findings, the same text; `map_` may draw the figures in several processes."""
    figures = [(one, f"{row.name}-{k}") for row in sections for k, one in enumerate(row.findings.figures)]
    drawings = iter(list(map_(draw_figure, *zip(*figures, strict=True)))) if figures else iter(())
    facts = {
        "sections": [_section(section, drawings) for section in sections],
        "counts": _counts(sections),
        "scale": scale,
        "seed": seed,
        "versions": " · ".join(f"{name} {number}" for name, number in versions.items()),
    }
    return rendered("reproduction_page.html", facts)


def _counts(sections: Sequence[Section]) -> str:
    """How often each verdict occurs, in words."""
    found = [section.findings.verdict for section in sections]
    return ", ".join(f"{found.count(one)} {one}" for one in dict.fromkeys(sorted(found)))


def _section(section: Section, drawings: Iterator[dict[str, str]]) -> dict[str, Any]:
    found = section.findings
    return {
        "name": section.name,
        "number": section.number,
        "title": section.title,
        "claim": section.claim,
        "verdict": found.verdict,
        "css": found.verdict.split()[0] + ("-corrected" if "corrections" in found.verdict else ""),
        "computed": found.computed,
        "checks": [_check(check) for check in found.checks],
        "figures": [
            {"title": figure.title, "caption": figure.caption}
            | {width: Markup(svg) for width, svg in next(drawings).items()}
            for figure in found.figures
        ],
        "methods": _methods(found),
        "tables": [_table(table) for table in found.tables],
        "certificates": [
            {"name": name, "file": f"{section.name}-{name}.json", "verdict": document.get("verdict", ""),
             "data": _data_address(document)}
            for name, document in found.certificates.items()
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
    return {
        "title": table.title,
        "columns": table.columns,
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
        return words.number(value) if rounding else f"{words.number(value)} {words.error_words(value)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", words.MINUS)
    return words.number(value) if isinstance(value, float) else value


def _data_address(document: dict[str, Any]) -> str:
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    return "data:application/json;base64," + base64.b64encode(text.encode()).decode()
