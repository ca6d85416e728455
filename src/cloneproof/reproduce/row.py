"""A row of the reproduction, and the setting in which it is run."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeVar

from cloneproof.mechanisms.catalogue import mechanism
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.reproduce.findings import Findings, RowVerdict, count_checks

ROWS_PACKAGE = "cloneproof.reproduce.rows"
Scale = Literal["quick", "full"]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Setting:
    """How large, with which seed, and by whom mechanisms are made: a test puts a broken one in a good one's place."""

    scale: Scale = "full"
    seed: int = 0
    make: Callable[..., Mechanism] = mechanism

    def mechanism(self, name: str, **parameters: Any) -> Mechanism:  # noqa: ANN401 (a mechanism's parameters are its own)
        """The mechanism of that name; every mechanism of a row is made here."""
        return self.make(name, **parameters)

    def pick(self, quick: Value, full: Value) -> Value:
        """One of two sizes."""
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
    run: Callable[[Setting], Findings]
    summary: Mapping[RowVerdict, str] = field(default_factory=dict)

    def summary_of(self, findings: Findings) -> str:
        """The finding in one sentence, which never contradicts the verdict."""
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
