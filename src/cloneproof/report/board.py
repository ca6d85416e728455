"""Study of a leaderboard in sections: what variants gain each producer, and what to run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cloneproof._lib.findings import WithFindings
from cloneproof._lib.sections import Figure, Paragraph, Points, Section, SectionPart, Table, Tiles
from cloneproof.boards.advice import NAMES, SHOWN, BoardAdvice
from cloneproof.boards.study import APART, NEAR_IF_EQUAL, BoardStudy, Earned
from cloneproof.boards.variants import NUMBERS, SPREAD, RuleRow, VariantGain, VariantInflation, signed
from cloneproof.report.style import Series, lines_figure
from cloneproof.report.words import FIXED, not_shown, sentence, shorten, what_to_do
from cloneproof.runs.estimate import Estimate

MOST_FIRST: Final = 6  # producers on the first screen
MOST_PRODUCERS: Final = 12  # in the table: the first of the board, and as many who gain most
LEAST_HEIGHT: Final = 0.1  # ranks that an axis of gains spans at least
COLOURS: Final = (
    "reservoir", "h-etc-r", "thompson", "ucb1", "etc", "uniform-etc", "epsilon-greedy",
    "reservoir-bars", "h-ucb",
)  # fmt: skip
UNEQUAL_COLOURS: Final = ("reservoir", "h-etc-r", "ucb1", "thompson", "etc")  # the ceiling is dotted


def sections(study: BoardStudy) -> Iterable[Section]:
    """Return what the study says."""
    board, advice = study.board, study.advice
    picture = [variants_figure(study)] if study.gains else []
    rows = list(_findings(study))
    to_do = Tiles(tuple((name, words, "") for name, words, *_ in rows))
    said = [Paragraph(study.caveat)] if study.caveat else []
    yield Section(_title(study), [*said, *picture, *_first_producers(study), to_do], tone=study.verdict)
    asked = f"{len(board.models):,} models, {len(board.names):,} producers, {study.votes:,} votes a model"
    yield from what_to_do([(words, name, id_) for name, words, id_ in rows], f"{asked}.")
    if advice is not None:
        promised = Paragraph(advice.promise, "What is proven of it", "promise")
        price = Paragraph(advice.price, "What that costs")
        yield Section("What to run instead: a reservoir board", (promised, price))
    if study.earned:
        yield Section("What near-equal models earn now", tuple(earned_parts(study.earned, "Elo", study)))
    yield Section("The board by producer", tuple(_producers(study)))
    if study.inflation:
        yield Section("Unequal variants", (inflation_figure(study.inflation), *_inflation(study)))
    if advice is not None:
        yield Section("The rules compared", (rules_figure(advice), *_rules(advice)))
        yield Section("The numbers to copy", (_parameters(advice),))
    yield Section("Small print", (Points(tuple(map(Paragraph, _small_print(study)))),))


def _title(study: BoardStudy) -> str:
    gain = study.worst
    if gain is None:
        return "There was no time for an answer; give it more seconds."
    if study.verdict != "exploitable":
        return f"Up to {max(gain.variants for gain in study.gains)} more listings of its best model move nobody up."
    return (
        f"Variants pay on this board: {gain.variants} more listings of its best model move a producer up "
        f"{gain.ranks.value:.1f} ranks, with no better model."
    )


def _first_producers(study: BoardStudy) -> Iterator[Table]:
    """Return the producers who would gain most by variants."""
    board = study.board
    gains = {gain.producer: gain for gain in study.gains if gain.copied == "best" and gain.variants == SHOWN}
    most = sorted(gains, key=lambda name: -gains[name].ranks.value)[:MOST_FIRST]
    rows = [
        (shorten(name, 20), shorten(board.models[board.models_of(name)[0]], 24), f"{len(board.models_of(name))}",
         f"{signed(gains[name].ranks.value)} ranks", f"{gains[name].first.value:+.0%}")
        for name in board.names if name in most
    ]  # fmt: skip
    if rows:
        columns = ("producer", "best model", "models", f"{SHOWN} more listings", "to be first")
        yield Table.of(columns, rows, left=["best model"])


def _findings(study: BoardStudy) -> Iterator[tuple[str, str, str]]:
    """Yield what to do with what was found, and the id under which a person may accept it."""
    advice = study.advice
    if study.left:
        yield "Not answered", f"{'; '.join(study.left)}: give more time (--seconds), or leave the limit out", ""
    seen = bool(study.earned) and study.earned[0].ranks.low > 0
    own = study.label("near-equal", *study.earned[0].about) if seen else ""
    yield "Look at" if study.earned else "Now", _earned(study), own
    if advice is not None:
        ours, used = (next(row for row in advice.rows if chosen(row)) for chosen in (_is_proven, _is_used))
        yield (
            "Instead",
            f"a reservoir board: {SHOWN} copies move up {signed(ours.gain_best.value)} ranks who knows its best model "
            f"(now {signed(used.gain_best.value)}) and nobody else (proven); "
            f"{ours.wrong_pairs.value / ours.pairs:.1%} of the pairs stand in the wrong order "
            f"(now {used.wrong_pairs.value / used.pairs:.1%})",
            study.label("rule", study.listing) if study.verdict == "exploitable" else "",
        )


def _is_proven(row: RuleRow) -> bool:
    return row.rule.proven


def _is_used(row: RuleRow) -> bool:
    return row.in_use


def _earned(study: BoardStudy) -> str:
    """Describe what near-equal models earn now: the largest, or with which chance some would have been seen."""
    if study.earned:
        most = study.earned[0]
        return (
            f"{len(most.entries)} models of {most.owner} that are near in strength: the best of them stands "
            f"{_signed(most.ranks)} ranks above one of them alone (95 %)"
        )
    if not study.board.errors.any():
        return "what near-equal models earn cannot be said without standard errors or votes"
    return (
        f"no producer has a second model within {APART:g} standard errors of its best; two equal models would be so "
        f"near with chance {NEAR_IF_EQUAL:.2g}"
    )


def earned_parts(rows: Sequence[Earned], unit: str, study: WithFindings) -> Iterator[SectionPart]:
    """Return the table of what near-equal entries earn."""
    yield Paragraph(
        "Where the best counts, several near-equal entries earn their owner the luck of the best of them, and its lead "
        f"if their strengths differ. Expected score ({unit}) and rank of the best of them, and of one of them alone; "
        "95 % intervals."
    )
    columns = ("owner", "entries", "best of them", "one alone", "rank", "rank alone", "ranks earned", "points earned",
               "id")  # fmt: skip
    yield Table.of(columns, [
        (row.owner, f"{len(row.entries)}", *map(_number, (row.score, row.alone)),
         *(f"{each.value:.1f}" for each in (row.rank, row.rank_alone)), _signed(row.ranks), _number(row.points),
         study.label("near-equal", *row.about) if row.ranks.low > 0 else "")
        for row in rows[:MOST_PRODUCERS]
    ], left=["id"])  # fmt: skip


def _number(estimate: Estimate) -> str:
    """Return a number in units that are not known: two digits of its error."""
    digits = max(0, 1 - math.floor(math.log10(estimate.error))) if estimate.error > 0 else 3
    return f"{estimate.value:,.{digits}f}{FIXED}±{FIXED}{estimate.error:.{digits}f}"


def _producers(study: BoardStudy) -> Iterator[SectionPart]:
    """Return the first producers of the board and those who gain most, in the order of the board."""
    board = study.board
    gains = {gain.producer: gain for gain in study.gains if gain.copied == "best" and gain.variants == SHOWN}
    most = sorted(gains, key=lambda name: -gains[name].ranks.value)[:MOST_PRODUCERS]
    shown = {*board.names[:MOST_PRODUCERS], *most}
    rows = []
    for name in board.names:
        if name not in shown:
            continue
        own, gain = board.models_of(name), gains.get(name)
        rating = f"{board.ratings[own[0]]:,.0f}{FIXED}±{FIXED}{1.96 * board.errors[own[0]]:.0f}"
        gained = ("", "", "") if gain is None else _gained(gain)
        rows.append((name, board.models[own[0]], rating, f"{len(own)}", *gained))
    if gains:
        yield Paragraph(
            f"Gains are those of {SHOWN} more listings of the best model: ranks, Elo, and the probability to be first."
        )
    columns = ("producer", "best model", "rating", "models", "ranks", "Elo", "first")
    yield Table.of(columns, rows, left=["best model"])
    yield from not_shown(len(board.names) - len(rows), "producers")


def _gained(gain: VariantGain) -> tuple[str, ...]:
    return signed(gain.ranks.value), f"{gain.elo.value:+.1f}", f"{gain.first.value:+.1%}"


def variants_figure(study: BoardStudy) -> Figure:
    """Return the ranks gained by each of the first producers, against the number of variants."""
    curves: dict[str, list[VariantGain]] = {}
    for gain in study.gains:
        if gain.copied == "best":
            curves.setdefault(gain.producer, []).append(gain)
    longest = sorted(curves.items(), key=lambda item: -len(item[1]))[: len(COLOURS)]
    series = tuple(
        Series.of(name, [gain.variants for gain in gains], [gain.ranks for gain in gains], mechanism=colour)
        for (name, gains), colour in zip(longest, COLOURS, strict=False)
    )
    return lines_figure(
        title="What variants gain each producer",
        caption="Ranks that a producer moves up on average by listing this many more variants of its best model, on a "
        "fixed panel where the best listing counts.",
        x_label="further listings of the best model", y_label="ranks gained", series=series, least_height=LEAST_HEIGHT,
    )  # fmt: skip


def inflation_figure(inflations: Sequence[VariantInflation]) -> Figure:
    """Return what variants add to a score on both boards, and the ceiling."""
    spreads = sorted({row.spread for row in inflations})
    colours, series = iter(UNEQUAL_COLOURS), []
    for field, board in (("reservoir", "reservoir board"), ("usual", "best listing")):
        for number in sorted({row.variants for row in inflations}):
            added = [getattr(row, field) for row in inflations if row.variants == number]
            series.append(Series.of(f"{board}, {number} variants", spreads, added, mechanism=next(colours)))
    x, y = zip(*sorted({(row.spread, row.ceiling) for row in inflations}), strict=True)
    series.append(Series("ceiling of the reservoir board", x, y, mechanism=next(colours)))
    return lines_figure(
        title="What unequal variants add to a score",
        caption="Elo points that listing variants of one model adds to its producer's published score, by how much "
        "their strengths differ. Where the best listing counts, even copies (a spread of 0) add what luck does.",
        x_label="spread of the variants, Elo", y_label="Elo points added", series=tuple(series),
    )  # fmt: skip


def _inflation(study: BoardStudy) -> Iterator[SectionPart]:
    yield Paragraph(
        "Elo points that variants of one model add to its producer's score, and by how many the listing that counts is "
        "truly stronger than the model. The model wins half of its battles, opponents are drawn at random, a listing "
        f"has {study.votes:,} votes where the best one counts, and the reservoir board is the one below; there the "
        "score is compared with that of the model listed alone. The spread is the standard deviation of the variants' "
        "strengths, which are uniform. Simulated, with 99 % intervals; the ceiling is proven, for any number of "
        "variants and any weights on them."
    )
    columns = ("variants", "best listing", "leader's lead", "reservoir board", "champion's lead", "ceiling")
    yield Table.of(columns, [
        (f"{row.variants}, spread {row.spread:g} Elo",
         *map(_plain, (row.usual, row.leader, row.reservoir, row.champion)), f"{row.ceiling:.1f}")
        for row in study.inflation
    ])  # fmt: skip


def rules_figure(advice: BoardAdvice) -> Figure:
    """Return wrong pairs against what variants gain; the lower left corner is best."""
    shown = sorted(
        (row for row in advice.rows if row.in_use or row.rule.proven or row.rule.name.startswith(NAMES)),
        key=lambda row: row.in_use,
    )
    series = tuple(
        Series(f"{row.rule.name}{', in use' * row.in_use}", (row.wrong_pairs.value / row.pairs * 100,),
               (row.gain_best.value,), mechanism=colour, style="points")
        for row, colour in zip(shown, COLOURS, strict=False)
    )  # fmt: skip
    return lines_figure(
        title="Accuracy against gain",
        caption="Pairs of producers in the wrong order, everybody "
        f"honest, and ranks that {SHOWN} variants of the best model gain a producer who knows which is best. Lower "
        "left is better.",
        x_label="pairs in the wrong order, %", y_label=f"ranks gained by {SHOWN} variants", series=series,
    )  # fmt: skip


def _rules(advice: BoardAdvice) -> Iterator[SectionPart]:
    yield Paragraph(
        f"Against {advice.opponents}; the rule in use is marked (--listing). Wrong pairs are in percent, everybody "
        f"honest, of {advice.pairs:,}. Battles are those of a producer on "
        f"average. Gains are ranks for {', '.join(map(str, NUMBERS))} variants of the best model, identical or with "
        f"strengths that differ by {SPREAD:g} Elo (standard deviation), and for {SHOWN} of a model drawn at random, "
        f"averaged over producers, {advice.averaged} evenly spaced ones of more. Under cap and last-of "
        "producers are taken to know their best model. Of the rule with a star it is proven that copies pay nobody who "
        "does not know its best model."
    )
    numbers = ", ".join(map(str, NUMBERS))
    columns = ("rule", "wrong", "battles", f"{numbers} copies", f"{numbers} unequal", f"{SHOWN} random")
    yield Table.of(columns, [
        (_rule_name(row), f"{row.wrong_pairs.value / row.pairs:.1%}", f"{row.battles:,.0f}",
         *("/".join(_short(gain.value) for gain in gains) for gains in (row.identical, row.unequal)),
         signed(row.gain_random.value))
        for row in advice.rows
    ])  # fmt: skip


def _rule_name(row: RuleRow) -> str:
    """Return a rule's name, marked if it is in use or proven; what it was tuned to stands below the table."""
    name = row.rule.name.partition("(")[0] + "*" if row.rule.proven else row.rule.name
    return f"▸ {name}" if row.in_use else name


def _short(gain: float) -> str:
    return f"{gain:+.0f}" if abs(gain) >= 10 else signed(gain)


def _parameters(advice: BoardAdvice) -> Tiles:
    rule = advice.rule
    numbers = {
        "slots a producer": f"{rule.slots:,}",
        "battles a slot": f"{rule.tests:,}",
        "fresh battles of the champion": f"{rule.fresh:,}",
        "weight of a battle in a slot": f"{rule.weight}",
        "opponents": advice.opponents,
    }
    return Tiles(tuple((name, value, "") for name, value in numbers.items()))


def _small_print(study: BoardStudy) -> Iterator[str]:
    yield (
        "Ratings are taken as true strengths. On a reservoir board a producer who knows which of its models is best "
        "gains by listing variants of it, but no more than by listing it alone."
    )
    yield from map(sentence, study.board.notes)


def _signed(estimate: Estimate) -> str:
    return f"{signed(estimate.value)}{FIXED}±{FIXED}{estimate.error:.2f}"


def _plain(estimate: Estimate) -> str:
    return f"{round(estimate.value, 1) + 0.0:.1f}{FIXED}±{FIXED}{estimate.error:.1f}"
