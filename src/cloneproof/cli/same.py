"""`cloneproof same FILE`: which items of a table are the same, by their titles."""

from __future__ import annotations

import csv
import io
from typing import Annotated

import typer

from cloneproof._files import write_whole
from cloneproof._findings import read_known
from cloneproof.analysis.copying.matching import THRESHOLD
from cloneproof.cli.options import AsJson, HtmlFile, KnownFile, check_files, option
from cloneproof.cli.output import code_with_known, deliver


def same(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Items: CSV, Parquet or JSON lines, a row each.")],
    by: Annotated[str | None, option("COLUMN,..", "Columns of texts.", show_default="title or name")] = None,
    owner: Annotated[str | None, option("COLUMN", "Whose the items are: shops, sellers.", show_default="one")] = None,
    against: Annotated[str | None, option("FILE", "A catalogue; only rows of FILE are then looked up in it.")] = None,
    threshold: Annotated[float, option("X", "Score from which on titles of two owners may be one item.")] = THRESHOLD,
    table: Annotated[str | None, option("FILE", "Write the groups as CSV, a row for each item.", "--csv")] = None,
    known: KnownFile = None,
    html: HtmlFile = None,
    as_json: AsJson = False,
) -> None:
    """Say which items of a table are the same, and why.

    Weights of words are learnt from the table. It needs no rewards and knows no bandit.

    Exit codes: 0 done; with --known 1 if something was found that is not in it; 2 bad input.
    """
    check_files(html, table)
    accepted = read_known(known)
    from cloneproof.logs.same import same_items

    names = [name for name in (by or "").split(",") if name]
    found = same_items(file, by=names, owner=owner, against=against, threshold=threshold).accepting(accepted)
    if table is not None:
        columns = found.to_columns()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([list(columns), *zip(*columns.values(), strict=True)])
        write_whole(table, text.getvalue())
    deliver(found, as_json, html)
    raise typer.Exit(code_with_known(found, 0))
