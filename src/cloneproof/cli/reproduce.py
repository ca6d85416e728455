"""`cloneproof reproduce`: check every statement of the paper, and write a page about it."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from cloneproof.cli.display.output import new_table, print_json, print_table, progress_bar
from cloneproof.cli.options import AsJson


def reproduce(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder to write into; a stopped run goes on there.")],
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this row; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes, the same rows.")] = False,
    seed: Annotated[int, typer.Option(help="One seed, the same bytes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check every statement of the paper and its predecessor. Writes report.html, results.json and certificates."""
    from cloneproof.mechanisms.online.opening import checked_seed
    from cloneproof.reproduce.run_rows import reproduce as run

    checked_seed(seed)  # before a folder is made
    with progress_bar() as bar:
        task = bar.add_task("reading", total=None)
        results = run(
            out,
            only or (),
            "quick" if quick else "full",
            seed,
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            lambda done, total, what: bar.update(task, completed=done, total=total, description=what),
        )
    if as_json:
        print_json(results)
    else:
        _show(results, out)


def _show(results: dict[str, Any], out: str) -> None:
    table = new_table(
        f"{len(results['rows'])} statements, {results['scale']} scale", "row", "statement", "verdict", right=3
    )
    for name, row in results["rows"].items():
        table.add_row(name, f"{row['number']}. {row['title']}", row["verdict"])
    print_table(table)
    print(f"The page is {os.path.join(out, 'report.html')}")
