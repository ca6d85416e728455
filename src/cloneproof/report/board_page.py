"""Page of `cloneproof board`: the board by producer, what variants would have paid, and what to run."""

from __future__ import annotations

from cloneproof._version import __version__
from cloneproof.boards.advice import BoardAdvice
from cloneproof.boards.study import BoardStudy
from cloneproof.boards.variants import VariantGain, signed
from cloneproof.engines.estimate import Estimate
from cloneproof.report.page import render
from cloneproof.report.style import Lines, Series, draw_figure

SHOWN = 12  # producers in a table
LEAST = 0.1  # ranks: gains below that are drawn as small as they are
COLOURS = ("reservoir", "h-etc-r", "holdout-h-etc", "thompson", "ucb1", "etc", "uniform-etc", "epsilon-greedy")


def board_page(study: BoardStudy) -> str:
    """Return the page as text."""
    board, advice = study.board, study.advice
    facts = {
        "title": _title(study), "verdict": study.verdict,
        "question": f"{len(board.models):,} models, {len(board.names):,} producers, {study.votes:,} votes a model",
        "sentence": " ".join(text for text in (study.caveat, _sentence(study)) if text),
        "board": _board_rows(study),
        "variants": draw_figure(_variants_figure(study), "variants") if study.gains else None,
        "figure": None if advice is None else draw_figure(_rules_figure(advice), "rules"),
        "entrants": [
            (gain.sampling, _signed(gain.ranks), _signed(gain.elo), _percent(gain.share), _plain(gain.wrong_pairs))
            for gain in study.entrants
        ],
        "entrant_rules": [
            (gain.rule, _signed(gain.ranks), _signed(gain.elo), _plain(gain.wrong_pairs)) for gain in study.rules
        ],
        "entrant": study.entrants[0].producer if study.entrants else "",
        "private": [
            (f"{each.variants}", f"{each.inflation:.1f}", f"{each.fresh_votes(2):,}", f"{each.explained or 0:.1%}")
            for each in study.private
        ],
        "lead": f"{study.lead:.0f}", "leader": study.producers[0],
        "advice": None if advice is None else {
            "promise": advice.promise, "price": advice.price, "opponents": advice.opponents,
            "battles": f"{advice.battles:,}", "pairs": f"{advice.pairs:,}",
            "numbers": [
                ("slots a producer", advice.rule.slots), ("battles a slot", f"{advice.rule.tests:,}"),
                ("further battles of the champion", f"{advice.rule.fresh:,}"),
                ("weight of a battle in the slot", advice.rule.weight),
                ("opponents of a slot and of the champion", advice.opponents),
            ],
            "rules": [
                (row.rule.name, f"{row.wrong_pairs.value:.1f}", signed(row.gain_best.value),
                 signed(row.gain_random.value), "proven" if row.rule.proven else "no") for row in advice.rows
            ],
        },
        "left": study.left, "notes": board.notes,
        "footer": f"cloneproof {__version__} · {study.seconds:.0f} s",
    }  # fmt: skip
    return render("board_page.html", facts)


def _title(study: BoardStudy) -> str:
    if study.verdict == "exploitable":
        return "Variants pay on this board"
    return "No gain from variants was seen" if study.gains else "There was no time for an answer"


def _sentence(study: BoardStudy) -> str:
    """Describe the largest gain, without a name: it follows from the board's rule; nobody is known to have done it."""
    if study.worst is None:
        return "Give it more seconds."
    gain = study.worst
    if study.verdict != "exploitable":
        return f"Up to {max(each.variants for each in study.gains)} more listings of its best model move nobody up."
    return (
        f"Listing its best model {gain.variants} more times would move a producer up by as much as "
        f"{gain.ranks.value:.1f} ranks on average, with no better model. This follows from the board's rule; it does "
        "not say that anybody did so."
    )


def _board_rows(study: BoardStudy) -> list[tuple[str, ...]]:
    board = study.board
    fives = {gain.producer: gain for gain in study.gains if gain.copied == "best" and gain.variants == 5}
    rows: list[tuple[str, ...]] = []
    for name in board.names[:SHOWN]:
        own = board.models_of(name)
        gain = signed(fives[name].ranks.value) if name in fives else ""
        rating = f"{board.ratings[own[0]]:,.0f}\u00a0±\u00a0{1.96 * board.errors[own[0]]:.0f}"
        rows.append((name, board.models[own[0]], rating, f"{len(own)}", gain))
    return rows


def _variants_figure(study: BoardStudy) -> Lines:
    """Ranks gained by each of the first producers, against the number of variants."""
    curves: dict[str, list[VariantGain]] = {}
    for gain in study.gains:
        if gain.copied == "best":
            curves.setdefault(gain.producer, []).append(gain)
    longest = sorted(curves.items(), key=lambda item: -len(item[1]))[: len(COLOURS)]
    series = tuple(
        Series.of(name, [gain.variants for gain in gains], [gain.ranks for gain in gains], mechanism=colour)
        for (name, gains), colour in zip(longest, COLOURS, strict=False)
    )
    return Lines(
        title="What variants gain each producer",
        caption="Ranks that a producer moves up on average by listing this many more variants of its best model, on a "
        "fixed panel where the best listing counts.",
        x_label="further listings of the best model", y_label="ranks gained", series=series, least_height=LEAST,
    )  # fmt: skip


def _rules_figure(advice: BoardAdvice) -> Lines:
    """Wrong pairs against what five variants gain; the lower left corner is best."""
    series = tuple(
        Series(row.rule.name, (row.wrong_pairs.value,), (row.gain_best.value,), mechanism=colour, style="points")
        for row, colour in zip(advice.rows, COLOURS, strict=False)
    )  # fmt: skip
    return Lines(
        title="Accuracy against gain",
        caption="Each rule with the same battles and opponents: pairs of producers in the wrong order, everybody "
        "honest, and ranks that five variants of the best model gain a producer who knows which is best. Lower left "
        "is better.",
        x_label="pairs in the wrong order", y_label="ranks gained by five variants", series=series,
    )  # fmt: skip


def _signed(estimate: Estimate) -> str:
    return f"{signed(estimate.value)}\u00a0±\u00a0{estimate.error:.2f}"


def _plain(estimate: Estimate) -> str:
    return f"{estimate.value:.1f}\u00a0±\u00a0{estimate.error:.1f}"


def _percent(estimate: Estimate) -> str:
    return f"{100 * estimate.value:+.2f}\u00a0±\u00a0{100 * estimate.error:.2f}\u00a0%"
