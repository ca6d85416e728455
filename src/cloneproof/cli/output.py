"""Terminal output: tables that fit, and progress bars on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from cloneproof._lib.files import write_whole
from cloneproof._lib.findings import WithFindings
from cloneproof._lib.sections import Result, Section, Tiles
from cloneproof.cli.options import UNANSWERED

if TYPE_CHECKING:  # it is loaded when a command draws something, not for --help
    from rich.progress import Progress

PAUSE = 10.0  # seconds from one line of progress to the next, where stderr is no terminal


def print_json(data: Any) -> None:  # noqa: ANN401
    """Print data as JSON; callers replace infinity by None."""
    print(json_text(data))


def json_text(data: Any) -> str:  # noqa: ANN401
    """Return data as JSON."""
    return json.dumps(data, indent=2, allow_nan=False)


def print_result(result: Result, question: str = "", details: bool = True) -> None:
    """Print what the result says, under the question that it answers; without details only its first section."""
    first, *others = result.sections()
    print_sections([replace(first, question=question or first.question), *(others if details else ())])
    if others and not details:
        print("More: --details")


def deliver(
    result: Result,
    as_json: bool,
    html: str | None = None,
    details: bool = False,
    to_do: Sequence[tuple[str, str]] = (),
    data: Any = None,  # noqa: ANN401
) -> None:
    """Print the first screen of a result, or all of it, or JSON; and write a page if one was asked for.

    `to_do` are lines for the end of the first screen, each with its name. `data` is written as JSON in place of the
    whole result.
    """
    if as_json:
        print_json(data if data is not None else result.to_dict())
    if as_json and html is None:
        return
    first, *others = result.sections()
    if to_do:
        *parts, last = first.parts or [Tiles(())]
        rows = last.rows if isinstance(last, Tiles) else ()
        said = Tiles((*rows, *((name, words, "") for name, words in to_do)))
        first = replace(first, parts=[*parts, *([] if isinstance(last, Tiles) else [last]), said])
    if html is not None:
        from cloneproof.report.page import html_page

        write_whole(html, html_page(result, (first, *others)))
    if not as_json:
        print_sections([first, *(others if details else ())])
        if others and not details:
            print(f"Page: {html}" if html is not None else "More: --details, or --html FILE for a page")


def code_with_known(result: WithFindings, code: int) -> int:
    """Return the exit code where somebody has said which findings are known: 1 if others were found."""
    if result.known is None or code not in (0, 1, UNANSWERED):
        return code
    if result.new:
        return 1
    return UNANSWERED if code == UNANSWERED or vars(result).get("left") else 0


def print_sections(sections: Iterable[Section]) -> None:
    """Print sections: as wide as the terminal or, if piped, with tables as wide as their cells."""
    from rich.console import Console

    from cloneproof.report.text import text

    terminal = sys.stdout.isatty()
    width = Console().width if terminal or "COLUMNS" in os.environ else None
    print(text(sections, width, bold=terminal and "NO_COLOR" not in os.environ))


def progress_bar() -> Progress:
    """Return a progress bar on stderr; silent if that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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
    """Show a progress bar for one piece of work, or a line now and then; yields a callback (done, total, what)."""
    with command_progress() as bar:
        task, last = bar.add_task(description, total=None), time.monotonic()

        def tell(done: int, total: int, what: str) -> None:
            nonlocal last
            bar.update(task, total=total, completed=done, description=what)
            if bar.disable and time.monotonic() - last >= PAUSE:
                last = time.monotonic()
                note(f"{what}; {done:,} of {total:,} done")

        yield tell


def note(text: str) -> None:
    """Print a remark to stderr."""
    print(f"note: {text}", file=sys.stderr)
