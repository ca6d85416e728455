"""Findings of a row: checks with their evidence, tables; and the verdict that follows."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import starmap
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from cloneproof._lib.data import Data
from cloneproof.mechanisms.catalogue import mechanism
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import Estimate

CheckRole = Literal["claim", "reading", "answer", "detail", "ours"]
RowVerdict = Literal[
    "confirmed", "confirmed with corrections", "refuted on our reading", "refuted as stated", "answered", "undecided"
]
TableCell = str | int | float | Estimate

ROWS_PACKAGE = "cloneproof.paper.rows"


class CheckedNumber(NamedTuple):
    """What was computed, and how much it is."""

    what: str
    value: TableCell


@dataclass(frozen=True)
class Check:
    """One statement, whether it holds, and the numbers that say so.

    role       "claim": the statement proper, as the paper has it; "reading": a hedged remark that we had to make
               precise; "detail": something that the paper says on the way (a step or a number of its proof, a
               remark); "ours": the corrected statement, or one that goes with it;
               "answer": what settles a question that the paper leaves open
    holds      computed from the evidence; None where the error bounds leave it open
    evidence   a plain number is exact: a count, or a parameter
    """

    statement: str
    role: CheckRole
    holds: bool | None
    evidence: tuple[CheckedNumber, ...] = ()


def _checks(role: CheckRole) -> Callable[..., Check]:
    def check(statement: str, holds: bool | None, *evidence: tuple[str, TableCell]) -> Check:
        return Check(statement, role, holds, tuple(starmap(CheckedNumber, evidence)))

    return check


claim, reading, answer, detail, ours = map(_checks, get_args(CheckRole))


@dataclass(frozen=True)
class FindingsTable:
    """Numbers in rows; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str = ""


def table(title: str, columns: str, rows: Iterable[Iterable[TableCell]], note: str = "") -> FindingsTable:
    """Return the table; `columns` are their names, with | between them."""
    return FindingsTable(title, tuple(columns.split(" | ")), tuple(map(tuple, rows)), note)


@dataclass(frozen=True)
class Findings(Data):
    """All that a row found. `computed` says in a few sentences what was done, and over what range."""

    keys_of_data = ("verdict", "computed", "checks", "tables")

    computed: str
    checks: tuple[Check, ...]
    tables: tuple[FindingsTable, ...] = ()

    @property
    def verdict(self) -> RowVerdict:
        return verdict(self.checks)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Findings:
        """Invert `to_dict`; the verdict is computed again."""
        checks, tables = [], []
        for check in data["checks"]:
            evidence = tuple(CheckedNumber(pair["what"], _from_json(pair["value"])) for pair in check["evidence"])
            checks.append(Check(**check | {"evidence": evidence}))
        for table in data["tables"]:
            rows = tuple(tuple(map(_from_json, row)) for row in table["rows"])
            tables.append(FindingsTable(**table | {"columns": tuple(table["columns"]), "rows": rows}))
        return cls(data["computed"], tuple(checks), tuple(tables))


def verdict(checks: Sequence[Check]) -> RowVerdict:
    """Derive the verdict, by the rule in docs/reading.md; verdicts are made only here.

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
    """Count the checks that hold, fail and are open.

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


def _from_json(value: Any) -> Any:  # noqa: ANN401
    return Estimate.from_dict(value) if isinstance(value, dict) else value


Scale = Literal["quick", "full"]
Value = TypeVar("Value")


@dataclass(frozen=True)
class RowSetting:
    """Scale and seed of a run, and the maker of mechanisms: a test puts a broken one in a good one's place."""

    scale: Scale = "full"
    seed: int = 0
    make: Callable[..., Mechanism] = mechanism

    def mechanism(self, name: str, **parameters: Any) -> Mechanism:  # noqa: ANN401 (a mechanism's parameters are its own)
        """Return the mechanism of that name; every mechanism of a row is made here."""
        return self.make(name, **parameters)

    def pick(self, quick: Value, full: Value) -> Value:
        return quick if self.scale == "quick" else full


@dataclass(frozen=True)
class Row:
    """A statement of the paper and how it is checked.

    number   its place on the page; no two rows have the same
    title    what it is called there, e.g. "Theorem 1: UCB1"
    claim    the statement, quoted briefly, with its number
    run      a pure function of the setting: the same setting, the same findings
    summary  what was found, in one sentence, for the verdict that it goes with; where the checks come to another
             verdict, the page counts the checks instead
    """

    number: int
    title: str
    claim: str
    run: Callable[[RowSetting], Findings]
    summary: Mapping[RowVerdict, str] = field(default_factory=dict)

    def summary_of(self, findings: Findings) -> str:
        """Describe the finding in one sentence, which never contradicts the verdict."""
        return self.summary.get(findings.verdict) or count_checks(findings.checks)


@cache
def rows() -> dict[str, Row]:
    """Name to row, in the order of their numbers: each module of the package `rows` that has a `ROW`.

    >>> list(rows())[0]
    'introduction'
    """
    by_name = {}
    for module in pkgutil.iter_modules(import_module(ROWS_PACKAGE).__path__):
        row = getattr(import_module(f"{ROWS_PACKAGE}.{module.name}"), "ROW", None)
        if isinstance(row, Row):
            by_name[module.name.replace("_", "-")] = row
    return dict(sorted(by_name.items(), key=lambda pair: pair[1].number))
