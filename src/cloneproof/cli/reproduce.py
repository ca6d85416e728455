"""`cloneproof reproduce`: the paper's statements."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from cloneproof._lib.sections import Paragraph, Section, Table
from cloneproof.cli.options import AsJson, option
from cloneproof.cli.output import note, print_json, print_sections, working


def reproduce(
    out: Annotated[str, option("DIR", "Write into this folder; an interrupted run resumes there.")],
    only: Annotated[list[str] | None, option("NAME", "Check only this statement; repeatable.")] = None,
    quick: Annotated[bool, option(None, "Use smaller sizes; takes about 2½ CPU minutes.", "--quick")] = False,
    seed: Annotated[int, option("N", "The seed; equal seeds give equal bytes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check every statement of the paper.

    Writes report.html and results.json.
    """
    from cloneproof.mechanisms.streams import checked_seed
    from cloneproof.paper.run_rows import reproduce as run
    from cloneproof.runs.sampler import available_threads

    checked_seed(seed)  # before a folder is made
    with working("reading") as tell:
        finish = (lambda line: None) if sys.stderr.isatty() else note  # a line a row where nobody sees a bar
        results = run(out, only or (), "quick" if quick else "full", seed, available_threads(), tell, finish)
    if as_json:
        print_json(results)
    else:
        rows = [(name, f"{row['number']}. {row['title']}", row["verdict"]) for name, row in results["rows"].items()]
        table = Table.of(("row", "statement", "verdict"), rows, left=["statement", "verdict"])
        page = Paragraph(f"The page is {os.path.join(out, 'report.html')}")
        print_sections([Section(f"{len(rows)} statements, {results['scale']} scale", [table, page])])
