"""Terminal output: tables that fit, and progress bars on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cloneproof._sections import Result, Section
from cloneproof.report.text import text
from cloneproof.report.words import printable

PIPED = 10_000  # columns


def print_json(data: Any) -> None:  # noqa: ANN401
    """Print data as JSON; callers replace infinity by None."""
    print(json.dumps(data, indent=2, allow_nan=False))


def print_result(result: Result, question: str = "") -> None:
    """Print what the result says, under the question that it answers."""
    first, *others = result.sections()
    print_sections([replace(first, question=question or first.question), *others])


def print_sections(sections: Iterable[Section]) -> None:
    """Print sections: as wide as the terminal or, if piped, with tables as wide as their cells."""
    terminal = sys.stdout.isatty()
    width = Console().width if terminal or "COLUMNS" in os.environ else None
    print(text(sections, width, bold=terminal and "NO_COLOR" not in os.environ))


class PlainTable(Table):
    """A table whose cells cannot contain control characters."""

    def add_row(self, *cells: Any, **options: Any) -> None:  # noqa: ANN401
        super().add_row(*(printable(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def print_table(table: Table) -> None:
    """Print a table to stdout, as wide as the terminal or, if piped, as its cells."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    if width is not None:
        table.columns[0].max_width = None
        console.width = max(100, console.measure(table).maximum)
    console.print(table)


def new_table(title: str, *columns: str, right: int = 1, rows: Iterable[Sequence[str]] = ()) -> Table:
    """Return a plain table, right-aligned from column `right` on."""
    table = PlainTable(title=printable(title), box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        side: JustifyMethod = "right" if number >= right else "left"
        least = 22 if number == 0 and right else None  # a mechanism's name in one piece; a very long name folds
        table.add_column(column, justify=side, overflow="fold", min_width=least, max_width=40 if least else None)
    for row in rows:
        table.add_row(*row)
    return table


def progress_bar() -> Progress:
    """Return a progress bar on stderr; silent if that is not a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


@contextmanager
def command_progress() -> Iterator[Progress]:
    """Yield the progress bar of a command, which Ctrl-C ends before there is a result."""
    try:
        with progress_bar() as bar:
            yield bar
    except KeyboardInterrupt:
        note("interrupted before anything was known")
        raise typer.Exit(130) from None


@contextmanager
def working(description: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar for one piece of work; yields a callback (done, total, what)."""
    with command_progress() as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total, what: bar.update(task, total=total, completed=done, description=what)


def note(text: str) -> None:
    """Print a remark to stderr."""
    print(f"note: {text}", file=sys.stderr)
