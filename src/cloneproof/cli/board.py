"""`cloneproof board FILE`: whether submitting variants pays on this leaderboard, and what stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cloneproof.analysis.search import Search
from cloneproof.cli.options import UNANSWERED, AsJson, Seconds, check_page, option
from cloneproof.cli.output import new_table, note, print_json, print_table, print_wrapped, working
from cloneproof.engines.deadline import Deadline
from cloneproof.errors import BoardError
from cloneproof.report.page import write_page
from cloneproof.report.words import printable

if TYPE_CHECKING:
    from cloneproof.boards.study import BoardStudy

SHOWN = 10


def board(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Battles, ratings or win rates: CSV, Parquet, JSON lines.")
    ],
    owners: Annotated[
        str | None, option("FILE", "Who made which model: a file of two columns, or first-word (of the name).")
    ] = None,
    column: Annotated[
        list[str] | None, option("MEANING=COLUMN", "Which column means what, such as winner=label; repeatable.")
    ] = None,
    rating: Annotated[str, option("RULE", "Rate battles by bradley-terry, elo or borda.")] = "bradley-terry",
    producer: Annotated[str | None, option("NAME", "Study only this producer.")] = None,
    most_models: Annotated[int | None, option("N", "Keep only each producer's N best models.")] = None,
    votes: Annotated[int | None, option("N", "Votes for each model.", show_default="the median of the board's")] = None,
    recommend: Annotated[bool, option(None, "Also tune a reservoir board and compare rules.")] = True,
    runs: Annotated[int, option("N", "Simulated boards.")] = 50,
    seed: Annotated[int, option("N", "The seed.")] = 0,
    seconds: Seconds = None,
    html: Annotated[str | None, option("FILE", "Write the answers as a web page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what variants gain on a leaderboard.

    Also says what to run instead.

    Without --seconds all questions are answered. Reading counts, drawing the page does not.

    Exit codes: 1 variants gain on the board as it is, 3 no gain was seen, 2 bad input.
    """
    clock = Deadline(None if seconds is None else Search(seconds=seconds).seconds)
    if html is not None:
        check_page(html)
    from cloneproof.boards.reading import read_board
    from cloneproof.boards.study import study_board

    read = read_board(files if len(files) > 1 else files[0], owners=owners, columns=_pairs(column), method=rating)
    kept = read if most_models is None else read.at_most(most_models)
    with working("looking") as tell:
        study = study_board(
            kept, producer=producer, votes=votes, recommend=recommend, runs=runs, seed=seed,
            seconds=clock.left, progress=tell,
        )  # fmt: skip
    if as_json:
        print_json(study.to_dict())
    else:
        show_board(study)
    if html is not None:
        from cloneproof.report.board_page import board_page  # late: drawing takes a second to load

        write_page(board_page(study), html)
    for question in study.left:
        note(f"time was out ({clock.words}): not answered is {question}")
    raise typer.Exit(1 if study.verdict == "exploitable" else UNANSWERED)


def _pairs(texts: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts or []]
    if any(not middle for _, middle, _ in pairs):
        raise BoardError("expected --column MEANING=COLUMN such as winner=label, got no '='; write both")
    return {meaning: name for meaning, _, name in pairs}


def show_board(study: BoardStudy) -> None:
    """Print the study as tables."""
    from cloneproof.boards.variants import signed

    board = study.board
    if study.caveat:
        print(study.caveat)
    title = f"{len(board.models):,} models of {len(board.names):,} producers: what 5 variants of the best model gain"
    table = new_table(title, "producer", "rating", "models", "ranks up", "Elo", "chance to be first")
    fives = [gain for gain in study.gains if gain.copied == "best" and gain.variants == 5]
    for gain in sorted(fives, key=lambda each: -each.ranks.value)[:SHOWN]:
        own = board.models_of(gain.producer)
        table.add_row(
            gain.producer, f"{board.ratings[own[0]]:,.0f}", f"{len(own)}", signed(gain.ranks.value),
            f"{gain.elo.value:+.1f}", f"{gain.first.value:+.1%}",
        )  # fmt: skip
    print_table(table)
    for each in study.private:
        print(
            f"{each.variants} private variants with {each.votes:,} votes each add {each.inflation:.1f} Elo to a listed "
            f"score; {each.fresh_votes(2):,} fresh votes bring that under 2."
        )
    advice = study.advice
    if advice is not None:
        title = (
            f"{advice.battles:,} battles a producer against {advice.opponents}: wrong pairs of {advice.pairs:,}, ranks "
            "that 5 variants gain"
        )
        rules = new_table(title, "rule", "wrong pairs", "best copied", "random copied", "proven")
        for row in advice.rows:
            gains = (signed(row.gain_best.value), signed(row.gain_random.value))
            rules.add_row(row.rule.name, f"{row.wrong_pairs.value:.1f}", *gains, "yes" if row.rule.proven else "no")
        print_table(rules)
        rule = advice.rule
        print_wrapped(
            f"Run a reservoir board: slots a producer: {rule.slots:,}, battles a slot: {rule.tests:,}, {rule.fresh:,} "
            f"further battles of the champion, weight {rule.weight}; opponents: {advice.opponents}."
        )
        print_wrapped(advice.promise)
        print_wrapped(advice.price)
    for text in board.notes:
        note(printable(text))
