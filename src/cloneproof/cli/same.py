"""`cloneproof same FILE`: which items of a table are the same, by their titles."""

from __future__ import annotations

import csv
import io
from typing import Annotated

import typer

from cloneproof._files import write_whole
from cloneproof.analysis.copying.matching import THRESHOLD
from cloneproof.cli.options import AsJson, check_page, option
from cloneproof.cli.output import print_json, print_result
from cloneproof.report.page import html_page, write_page


def same(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Items: CSV, Parquet or JSON lines, a row each.")],
    by: Annotated[str | None, option("COLUMN,..", "Columns of texts.", show_default="title or name")] = None,
    owner: Annotated[str | None, option("COLUMN", "Whose the items are: shops, sellers.", show_default="one")] = None,
    against: Annotated[str | None, option("FILE", "A catalogue; only rows of FILE are then looked up in it.")] = None,
    threshold: Annotated[float, option("X", "Score from which on titles of two owners may be one item.")] = THRESHOLD,
    table: Annotated[str | None, option("FILE", "Write the groups as CSV, a row for each item.", "--csv")] = None,
    html: Annotated[str | None, option("FILE", "Write the answer as a web page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say which items of a table are the same, and why.

    Weights of words are learnt from the table. It needs no rewards and knows no bandit.
    """
    for path in filter(None, (html, table)):
        check_page(path)
    from cloneproof.logs.same import same_items

    names = [name for name in (by or "").split(",") if name]
    found = same_items(file, by=names, owner=owner, against=against, threshold=threshold)
    if table is not None:
        columns = found.to_columns()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([list(columns), *zip(*columns.values(), strict=True)])
        write_whole(table, text.getvalue())
    if html is not None:
        write_page(html_page(found), html)
    if as_json:
        print_json(found.to_dict())
    else:
        print_result(found)
