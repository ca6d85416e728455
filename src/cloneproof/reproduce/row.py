"""A row of the reproduction, and the setting in which it is run."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeVar

from cloneproof.mechanisms.catalogue import mechanism
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.reproduce.findings import Findings

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

    number   its place on the page (that of the list in the documentation)
    title    what it is called there, e.g. "Theorem 1: UCB1"
    claim    the statement, quoted briefly, with its number
    run      a pure function of the setting: the same setting, the same findings
    """

    number: int
    title: str
    claim: str
    run: Callable[[Setting], Findings]


@cache
def rows() -> dict[str, Row]:
    """Name to row, in the order of their numbers: each module of the package `rows` that has a `ROW`.

    >>> list(rows())[0]
    'introduction'
    """
    found = {}
    for module in pkgutil.iter_modules(import_module(ROWS_PACKAGE).__path__):
        row = getattr(import_module(f"{ROWS_PACKAGE}.{module.name}"), "ROW", None)
        if isinstance(row, Row):
            found[module.name.replace("_", "-")] = row
    return dict(sorted(found.items(), key=lambda pair: pair[1].number))
