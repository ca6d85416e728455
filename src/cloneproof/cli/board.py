"""`cloneproof board FILE`: whether submitting variants pays on this leaderboard, and what stops it."""

from __future__ import annotations

from functools import partial
from typing import Annotated, NoReturn

import typer

import cloneproof as cp
from cloneproof._lib.findings import WithFindings, read_known
from cloneproof.cli.options import (
    UNANSWERED,
    AsJson,
    Details,
    HtmlFile,
    KnownFile,
    Seconds,
    check_files,
    option,
)
from cloneproof.cli.output import code_with_known, deliver, working
from cloneproof.errors import BoardError


def board(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Battles, ratings, win rates, scores: CSV, Parquet, JSON lines."),
    ],
    owners: Annotated[
        str | None, option("FILE", "Who made which model: a file of two columns, or first-word (of the name).")
    ] = None,
    kin: Annotated[
        str | None, option("FILE", "Of scores: models and what each is adapted from.", show_default="a column")
    ] = None,
    column: Annotated[
        list[str] | None, option("MEANING=COLUMN", "Which column means what, such as winner=label; repeatable.")
    ] = None,
    producer: Annotated[str | None, option("NAME", "Study only this producer.")] = None,
    most_models: Annotated[int | None, option("N", "Keep only each producer's N best models.")] = None,
    votes: Annotated[int | None, option("N", "Votes for each model.", show_default="the median of the board's")] = None,
    recommend: Annotated[bool, option(None, "Also tune a reservoir board and compare rules.")] = True,
    listing: Annotated[
        str, option("RULE", "The rule in use, such as cap(3) or fresh-votes(2000, over=10).")
    ] = "best-of",
    seed: Annotated[int, option("N", "The seed.")] = 0,
    seconds: Seconds = None,
    known: KnownFile = None,
    html: HtmlFile = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Say what variants gain on a leaderboard.

    Also says what to run instead; of a table of scores by task, which models look like one.

    Without --seconds all questions are answered, of large boards for fewer producers.

    Exit codes: 1 variants gain on the board as it is, or models look like one; 3 nothing was seen, 2 bad input. With
    --known: 1 if a finding is not in it, 0 if all are.
    """
    from cloneproof.runs.deadline import Deadline

    clock = Deadline(None if seconds is None else cp.Search(seconds=seconds).seconds)
    check_files(html)
    accepted = read_known(known)

    def end(result: WithFindings, found: bool) -> NoReturn:
        marked = result.accepting(accepted)
        deliver(marked, as_json, html, details)
        raise typer.Exit(code_with_known(marked, 1 if found else UNANSWERED))

    from cloneproof.boards.copies import copied_scores
    from cloneproof.boards.reading import holds_scores, read_board
    from cloneproof.boards.study import study_board
    from cloneproof.runs.sampler import FIRST_PATIENCE, by_deadline

    source = files if len(files) > 1 else files[0]
    if holds_scores(source, _pairs(column)):
        with clock.for_engines():
            copies = by_deadline(partial(copied_scores, source, owners=owners, kin=kin, columns=_pairs(column)))
        end(copies, bool(copies.pairs))
    if kin is not None:
        raise BoardError("expected --kin with a table of scores by task, got another table; leave it out")
    patience = None if clock.left is None else clock.left + FIRST_PATIENCE  # without a board nothing can be said
    with Deadline(patience).for_engines():
        read = by_deadline(partial(read_board, source, owners=owners, columns=_pairs(column)))
    kept = read if most_models is None else read.at_most(most_models)
    with working("looking") as tell:
        study = study_board(
            kept, producer=producer, votes=votes, recommend=recommend, listing=listing, seed=seed,
            seconds=clock.left, progress=tell,
        )  # fmt: skip
    end(study, study.verdict == "exploitable")


def _pairs(texts: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts or []]
    if any(not middle for _, middle, _ in pairs):
        raise BoardError("expected --column MEANING=COLUMN such as winner=label, got no '='; write both")
    return {meaning: name for meaning, _, name in pairs}
