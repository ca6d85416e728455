"""`cloneproof same FILE`: which items of a table are the same, by their titles."""

from __future__ import annotations

import csv
import io
from typing import Annotated

import typer

import cloneproof as cp
from cloneproof._lib.files import write_whole
from cloneproof._lib.findings import read_known
from cloneproof.cli.options import AsJson, Details, HtmlFile, KnownFile, check_files, option
from cloneproof.cli.output import code_with_known, command_progress, deliver
from cloneproof.errors import LogError, brief
from cloneproof.same import FALSE_SHARE


def same(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Items: CSV, Parquet or JSON lines, a row each.")],
    by: Annotated[
        str | None,
        option("COLUMN[=KIND],..", "Columns: text, number, identifier or block.", show_default="title or name"),
    ] = None,
    owner: Annotated[str | None, option("COLUMN", "Whose the items are: shops, sellers.", show_default="one")] = None,
    against: Annotated[str | None, option("FILE", "A catalogue; only rows of FILE are then looked up in it.")] = None,
    rewards: Annotated[str | None, option("CLICKS,VIEWS", "Columns of clicks and views, which may contradict.")] = None,
    false_share: Annotated[float, option("X", "Share of wrong pairs among those named, on average.")] = FALSE_SHARE,
    table: Annotated[str | None, option("FILE", "Write the groups as CSV, a row for each item.", "--csv")] = None,
    known: KnownFile = None,
    html: HtmlFile = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Say which items of a table are the same, and why.

    It also says how many of the pairs named are wrong: how often different items look this much alike is counted in
    the table itself.

    Exit codes: 0 done; with --known 1 if something was found that is not in it; 2 bad input.
    """
    check_files(html, table)
    accepted = read_known(known)
    kinds = {name: kind or "text" for name, _, kind in (one.partition("=") for one in (by or "").split(",") if one)}
    with command_progress() as bar:
        task = bar.add_task("comparing", total=100)
        found = cp.same_items(
            file, by=kinds, owner=owner, against=against, rewards=_two_columns(rewards), false_share=false_share,
            progress=lambda share: bar.update(task, completed=100 * share),
        ).accepting(accepted)  # fmt: skip
    if table is not None:
        columns = found.to_columns()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([list(columns), *zip(*columns.values(), strict=True)])
        write_whole(table, text.getvalue())
    deliver(found, as_json, html, details)
    raise typer.Exit(code_with_known(found, 0))


def _two_columns(rewards: str | None) -> tuple[str, str] | None:
    if rewards is None:
        return None
    clicks, _, views = rewards.partition(",")
    if not clicks or not views:
        raise LogError(f"expected --rewards CLICKS,VIEWS, two columns, got {brief(rewards)}; name both")
    return clicks, views
