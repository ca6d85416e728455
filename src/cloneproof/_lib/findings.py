"""Names of findings, and which of them a person has accepted.

A finding of a log, of a table of items or of a board has an id that follows from what it is about alone: the same when
the data are read again, in another order or with more rows, and another one as soon as an arm joins.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from cloneproof._lib.checks import is_one_line, toml_tables
from cloneproof._lib.sections import Result, Section, report
from cloneproof.errors import FileError, brief

DIGITS: Final = 10  # of an id: of 10,000 findings, one would have the id of one of 200 known ones by chance of 2e-6
FORM: Final = '[3f9a2c1b07], reason = "one brand, two warehouses" and date = 2026-03-02'


class NamedFinding(NamedTuple):
    """A finding: its kind ("item", "models", "variants", ..) and the arms, items, models or rule that it is about."""

    kind: str
    about: tuple[Any, ...]

    @property
    def id(self) -> str:
        """Its name, whatever the order of what it is about.

        >>> NamedFinding("item", (("ana", "a2"), ("ana", "a1"))).id
        '6ea9d5b474'
        """
        about = sorted(json.dumps(one, ensure_ascii=False) for one in self.about)
        return sha256(json.dumps([self.kind, *about]).encode()).hexdigest()[:DIGITS]


class Accepted(NamedTuple):
    """Why a person has accepted a finding, and when."""

    reason: str
    date: dt.date


@dataclass(frozen=True)
class WithFindings(Result):
    """A result whose findings have ids; `known` has those that a person has accepted, and is None if nobody was asked.

    `result.accepting(read_known("known.toml"))` marks them.
    """

    known: Mapping[str, Accepted] | None = field(default=None, kw_only=True, repr=False)

    def accepting(self, known: Mapping[str, Accepted] | None) -> Self:
        """Return the same result, in which these findings are known."""
        return replace(self, known=known)

    @property
    def named(self) -> tuple[NamedFinding, ...]:
        """All that was found."""
        raise NotImplementedError

    @property
    def new(self) -> tuple[NamedFinding, ...]:
        """Findings that nobody has accepted."""
        return tuple(one for one in self.named if one.id not in (self.known or {}))

    @property
    def finding_rows(self) -> list[dict[str, Any]]:
        """Findings as data."""
        why = {name: {"reason": own.reason, "date": f"{own.date}"} for name, own in (self.known or {}).items()}
        return [
            {"id": one.id, "kind": one.kind, "about": sorted(one.about), "known": why.get(one.id)} for one in self.named
        ]

    def label(self, kind: str, *about: object) -> str:
        """Return the id of a finding as tables show it: those that are known are marked."""
        name = NamedFinding(kind, about).id
        return f"{name}, known" if name in (self.known or {}) else name

    def sections(self) -> tuple[Section, ...]:
        answer, *others = super().sections()
        return (*report("known").sections(self, answer), *others)


def read_known(path: str | Path | None) -> dict[str, Accepted] | None:
    """Read the findings that a person has accepted: TOML, a table for each id with a reason and a date."""
    if path is None:
        return None
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise FileError(f"expected a readable file of known findings, got {path}: {problem}; check the path") from None
    return {name: _accepted(name, entry, path) for name, entry in toml_tables(text, str(path), FileError).items()}


def _accepted(name: str, entry: object, path: str | Path) -> Accepted:
    if not re.fullmatch(f"[0-9a-f]{{{DIGITS}}}", name) or not isinstance(entry, dict):
        raise FileError(f"{path}: expected a table for each id of a finding, got {brief(name)}; write {FORM}")
    reason, date = entry.get("reason"), entry.get("date")
    if not isinstance(reason, str) or not reason.strip() or not is_one_line(reason) or type(date) is not dt.date:
        raise FileError(
            f"{path}: expected a reason on one line and a date for {name}, got {brief(entry)}; write {FORM}"
        )
    if more := sorted(entry.keys() - {"reason", "date"}):
        raise FileError(f"{path}: expected a reason and a date for {name}, got {more[0]!r} too; leave it out")
    return Accepted(reason, date)
