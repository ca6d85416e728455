"""Long studies whose rows go to a CSV file one by one, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from cloneproof.files import write_whole

Row = TypeVar("Row", bound=Any)
Case = TypeVar("Case", bound=Hashable)


def as_csv(kind: type[Row], rows: Iterable[Row]) -> str:
    """Rows of a dataclass as CSV with a header."""
    text = io.StringIO()
    names = [field.name for field in fields(kind)]
    csv.writer(text, lineterminator="\n").writerows([names, *(astuple(row) for row in rows)])
    return text.getvalue()


def read_csv(kind: type[Row], path: str | Path) -> list[Row]:
    """The rows of such a file up to a line that is not one, as an interruption may leave it; none if there is no file.

    >>> read_csv(object, "no such file")
    []
    """
    if not Path(path).exists():
        return []
    types = get_type_hints(kind)
    rows = []
    with Path(path).open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            try:
                rows.append(kind(**{name: _value(types[name], text) for name, text in line.items()}))
            except (KeyError, TypeError, ValueError):
                break
    return rows


def resumed(
    kind: type[Row],
    path: Path,
    cases: Sequence[Case],
    case_of: Callable[[Row], Case],
    make: Callable[[Case], Row],
    track: Callable[[Sequence[Case]], Iterable[Case]] = iter,
) -> list[Row]:
    """The rows of all cases in their order: those that the file has, and the others made, each written at once."""
    found = {case_of(row): row for row in read_csv(kind, path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, as_csv(kind, found.values()))
    with path.open("a", newline="", encoding="utf-8") as file:
        for case in track([case for case in cases if case not in found]):
            found[case] = make(case)
            csv.writer(file, lineterminator="\n").writerow(astuple(found[case]))
            file.flush()
    rows = [found[case] for case in cases]
    write_whole(path, as_csv(kind, rows))
    return rows


def _value(kind: Any, text: str) -> object:  # noqa: ANN401
    """A cell as its field's type; "True" and "False" are the only words for a boolean."""
    if kind is bool:
        return {"True": True, "False": False}[text]
    return kind(text) if kind in (int, float) else text
