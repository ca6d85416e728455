"""What a row finds: checks with their evidence, figures as data, tables, certificates; and the verdict they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cloneproof.engines.estimate import Estimate
from cloneproof.report.figures.figure_data import Figure, figure_from_dict, figure_to_dict

CheckRole = Literal["claim", "reading", "answer", "detail", "ours"]
RowVerdict = Literal[
    "confirmed", "confirmed with corrections", "refuted on our reading", "refuted as stated", "answered", "undecided"
]
TableCell = str | int | float | Estimate


@dataclass(frozen=True)
class Check:
    """One statement, whether it holds, and the numbers that say so.

    role       "claim": the statement proper, as the paper has it; "reading": a hedged remark that we had to make
               precise; "detail": something that the paper says on the way (a step or a number of its proof, a
               remark); "ours": the corrected statement, or one that goes with it;
               "answer": what settles a question that the paper leaves open
    holds      computed from the evidence; None where the error bounds leave it open
    evidence   (what, how much) pairs; a plain number is exact: a count, or a parameter
    """

    statement: str
    role: CheckRole
    holds: bool | None
    evidence: tuple[tuple[str, TableCell], ...] = ()


@dataclass(frozen=True)
class FindingsTable:
    """Numbers in rows; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Findings:
    """All that a row found. `computed` says in a few sentences what was done, and over what range."""

    computed: str
    checks: tuple[Check, ...]
    figures: tuple[Figure, ...] = ()
    tables: tuple[FindingsTable, ...] = ()
    certificates: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def verdict(self) -> RowVerdict:
        """What the checks come to."""
        return verdict(self.checks)


def verdict(checks: Sequence[Check]) -> RowVerdict:
    """The one place where a verdict is made, by the rule in docs/principles.md.

    1. A claim that fails is refuted as stated.
    2. Otherwise a hedged remark that fails in the reading that we gave it is refuted on our reading.
    3. Otherwise, where something is open, or one of our own statements fails, nothing is confirmed: undecided.
    4. Otherwise, where a detail fails, the claim is confirmed with corrections; else it is confirmed.

    A question that the paper leaves open is answered where every check holds; else it is undecided.

    >>> claim, slip = Check("copies pay", "claim", True), Check("at the paper's own T", "detail", False)
    >>> verdict([claim]), verdict([claim, slip]), verdict([Check("copies pay", "claim", False), slip])
    ('confirmed', 'confirmed with corrections', 'refuted as stated')
    """
    if any(check.role == "claim" and check.holds is False for check in checks):
        return "refuted as stated"
    if any(check.role == "reading" and check.holds is False for check in checks):
        return "refuted on our reading"
    if any(check.role == "answer" for check in checks) and all(check.holds for check in checks):
        return "answered"
    if not any(check.role in ("claim", "reading") for check in checks):
        return "undecided"
    if any(check.holds is None or (check.role == "ours" and not check.holds) for check in checks):
        return "undecided"
    slips = any(check.holds is False for check in checks)
    return "confirmed with corrections" if slips else "confirmed"


def count_checks(checks: Sequence[Check]) -> str:
    """How many checks hold, fail and are open.

    >>> count_checks([Check("copies pay", "claim", True), Check("at T = 7", "detail", False)])
    '1 of 2 checks holds, 1 fails.'
    """
    holding, failing, undecided = (sum(check.holds is answer for check in checks) for answer in (True, False, None))
    parts = [f"{holding} of {len(checks)} checks hold{'s' if holding == 1 else ''}"]
    if failing:
        parts.append(f"{failing} fail{'s' if failing == 1 else ''}")
    if undecided:
        parts.append(f"{undecided} {'is' if undecided == 1 else 'are'} open")
    return ", ".join(parts) + "."


def all_of(answers: Sequence[bool | None]) -> bool | None:
    """Whether all hold: no where one does not, open where one is open.

    >>> all_of([True, None]), all_of([None, False]), all_of([])
    (None, False, True)
    """
    if any(answer is False for answer in answers):
        return False
    return None if any(answer is None for answer in answers) else True


def above(estimate: Estimate, bound: float = 0.0) -> bool | None:
    """Whether the number is above the bound: open where its interval contains the bound.

    >>> above(Estimate(1.0, 0.5, "proven", "")), above(Estimate(1.0, 2.0, "proven", ""))
    (True, None)
    """
    return True if estimate.low > bound else False if estimate.high <= bound else None


def at_most(estimate: Estimate, bound: float = 0.0, rounding: float = 0.0) -> bool | None:
    """Whether the number is at most the bound; an interval that sticks out by no more than `rounding` counts."""
    return True if estimate.high <= bound + rounding else False if estimate.low > bound else None


def agrees(estimate: Estimate, expected: float, slack: float = 0.0) -> bool:
    """Whether an expected number lies in the interval, widened by the slack that the expectation itself has."""
    return estimate.low - slack <= expected <= estimate.high + slack


def to_dict(findings: Findings) -> dict[str, Any]:
    """The findings as JSON, with the verdict spelled out for whoever reads it."""
    return {
        "verdict": findings.verdict,
        "computed": findings.computed,
        "checks": [
            {
                "statement": check.statement,
                "role": check.role,
                "holds": check.holds,
                "evidence": [{"what": what, "value": _cell_to_json(value)} for what, value in check.evidence],
            }
            for check in findings.checks
        ],
        "tables": [
            {
                "title": table.title,
                "columns": list(table.columns),
                "rows": [[_cell_to_json(cell) for cell in row] for row in table.rows],
                "note": table.note,
            }
            for table in findings.tables
        ],
        "figures": [figure_to_dict(figure) for figure in findings.figures],
        "certificates": findings.certificates,
    }


def from_dict(data: dict[str, Any]) -> Findings:
    """The inverse of `to_dict`; the verdict is computed again."""
    return Findings(
        data["computed"],
        tuple(
            Check(
                check["statement"],
                check["role"],
                check["holds"],
                tuple((pair["what"], _cell_from_json(pair["value"])) for pair in check["evidence"]),
            )
            for check in data["checks"]
        ),
        tuple(figure_from_dict(figure) for figure in data["figures"]),
        tuple(
            FindingsTable(
                table["title"],
                tuple(table["columns"]),
                tuple(tuple(_cell_from_json(cell) for cell in row) for row in table["rows"]),
                table["note"],
            )
            for table in data["tables"]
        ),
        data["certificates"],
    )


def _cell_to_json(value: TableCell) -> Any:  # noqa: ANN401
    return value.to_dict() if isinstance(value, Estimate) else value


def _cell_from_json(value: Any) -> Any:  # noqa: ANN401
    return Estimate(**value) if isinstance(value, dict) else value
