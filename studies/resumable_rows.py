"""What long studies share: rows that go to a CSV file one by one, so that an interrupted run goes on; shares found."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from scipy.stats import beta

from cloneproof._lib.files import write_whole
from cloneproof.cli.output import progress_bar

StudyRow = TypeVar("StudyRow", bound=Any)
StudyCase = TypeVar("StudyCase", bound=Hashable)


def as_csv(kind: type[StudyRow], rows: Iterable[StudyRow]) -> str:
    """Rows of a dataclass as CSV with a header."""
    text = io.StringIO()
    names = [field.name for field in fields(kind)]
    csv.writer(text, lineterminator="\n").writerows([names, *(astuple(row) for row in rows)])
    return text.getvalue()


def read_csv(kind: type[StudyRow], path: str | Path) -> list[StudyRow]:
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


def resume_rows(
    kind: type[StudyRow],
    path: Path,
    cases: Sequence[StudyCase],
    case_of: Callable[[StudyRow], StudyCase],
    make: Callable[[StudyCase], StudyRow],
    track: Callable[[Sequence[StudyCase]], Iterable[StudyCase]] | None = None,
    title: str = "",
) -> list[StudyRow]:
    """The rows of all cases in their order: those that the file has, and the others made, each written at once.

    `track` goes through the cases that are left; a bar of that title, if it is not given.
    """
    done = {case_of(row): row for row in read_csv(kind, path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, as_csv(kind, done.values()))
    left = [case for case in cases if case not in done]
    with path.open("a", newline="", encoding="utf-8") as file, nullcontext() if track else progress_bar() as bar:
        for case in bar.track(left, description=title) if bar else track(left):
            done[case] = make(case)
            csv.writer(file, lineterminator="\n").writerow(astuple(done[case]))
            file.flush()
    rows = [done[case] for case in cases]
    write_whole(path, as_csv(kind, rows))
    return rows


def until(seconds: float) -> Callable[[Sequence[StudyCase]], Iterable[StudyCase]]:
    """Go through the cases that are left for so many seconds from now."""
    end = time.monotonic() + seconds

    def track(left: Sequence[StudyCase]) -> Iterable[StudyCase]:
        for number, case in enumerate(left):
            if time.monotonic() > end:
                raise SystemExit(f"time is over with {len(left) - number} cases left; run it again to go on")
            yield case

    return track


def interval(found: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's confidence interval of a share."""
    tail = (1 - confidence) / 2
    low = 0.0 if found == 0 else float(beta.ppf(tail, found, of - found + 1))
    return low, 1.0 if found == of else float(beta.isf(tail, found + 1, of - found))


def _value(kind: Any, text: str) -> object:
    """A cell as its field's type; "True" and "False" are the only words for a boolean."""
    if kind is bool:
        return {"True": True, "False": False}[text]
    return kind(text) if kind in (int, float) else text
