"""Models of a board that look like one, in sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cloneproof._lib.sections import Paragraph, Points, Section, SectionPart, Table
from cloneproof.boards.copies import COMMON, LEAST_SHARED, LEAST_TIES, NEAR, BoardCopies, LikePair
from cloneproof.report.words import not_shown, sentence

MOST_FIRST: Final = 6  # pairs on the first screen
MOST_TASKS: Final = 4  # tasks on which two models differ most, named in a table
ALL_CLEAR: Final = 0.7  # chance of being found below which it says little that nothing was
LARGEST: Final = 1e6  # e-value up to which the number is stated


def sections(study: BoardCopies) -> Iterable[Section]:
    """Return what was found."""
    scores = study.scores
    asked = f"{len(scores.models):,} models, {len(set(scores.producers)):,} producers, {len(scores.tasks):,} tasks"
    strange = [pair for pair in study.pairs if pair.kinship == "none declared"]
    first = [(" and ".join(pair.models), pair.kinship, f"{len(pair.tied)} of {pair.shared}") for pair in study.pairs]
    table = [Table.of(("models", "declared", "equal scores"), first[:MOST_FIRST], left=["declared"])] if first else []
    title, more = _title(study, len(strange)), not_shown(len(first) - MOST_FIRST, "pairs")
    yield Section(title, (*table, *more, *_answer(study)), tone="undecided")
    if strange:
        yield Section("Models that look like one, no kinship declared", (_pairs(strange, study),), asked)
    kin = [pair for pair in study.pairs if pair.kinship != "none declared"]
    if kin:
        yield Section("Models that look like one, of one producer or declared kin", (_pairs(kin, study),))
    if study.groups:
        yield Section("What such entries gain on the board", tuple(_gains(study)))
    yield Section("Small print", (Points(tuple(map(Paragraph, _small_print(study)))),))


def _title(study: BoardCopies, strange: int) -> str:
    if study.power is not None:
        low, high = study.power.low, study.power.high
        return f"No models look like one; a copy would be found with chance {low:.2g} to {high:.2g}"
    pairs = f"{len(study.pairs):,} pair{'s' if len(study.pairs) > 1 else ''} of models look like one"
    return f"{pairs}, {strange:,} of them without declared kinship" if strange < len(study.pairs) else pairs


def _answer(study: BoardCopies) -> Iterator[SectionPart]:
    if study.power is not None:
        power = study.power
        yield Paragraph(
            f"Had a model of this board been entered twice, with scores correlated by {min(NEAR):g} to {max(NEAR):g} "
            f"beyond what strength explains, this would have been found with chance {power.chance:.2g} "
            f"({power.low:.2g} to {power.high:.2g}, by {power.draws} planted entries)."
            + (" So this is no all-clear." if power.low < ALL_CLEAR else "")
        )
    yield Paragraph(
        f"{study.hypotheses:,} pairs share {LEAST_SHARED} tasks or more. Of the findings at most "
        f"{study.level:.0%} are expected to be about different models. A finding is a reason to look, and says nothing "
        "about anybody's intentions: an entry may be a new name, a new version, a wrapper, or scores that were entered "
        "twice."
    )


def _pairs(pairs: Sequence[LikePair], study: BoardCopies) -> Table:
    columns = ("models", "producers", "declared", "ties", "nearness", "e-value", "differ most on", "id")
    return Table.of(columns, [
        (" and ".join(pair.models), " and ".join(dict.fromkeys(pair.producers)),
         "" if pair.kinship == "none declared" else pair.kinship,
         f"{len(pair.tied)} of {pair.shared} tasks", f"{pair.nearness:.3f}",
         f"{pair.e_value:,.0f}" if pair.e_value <= LARGEST else f"{pair.e_value:.0e}",
         ", ".join(pair.differ[:MOST_TASKS]), study.label("models", *pair.models))
        for pair in pairs
    ], left=["producers", "declared", *columns[-2:]])  # fmt: skip


def _gains(study: BoardCopies) -> Iterator[SectionPart]:
    yield Paragraph(
        "Places of these entries if models are ranked by strength (one factor of the normal scores of all tasks), each "
        "entry counted. Where the best entry counts, a group gains what its best stands above the average of it, and "
        "all but one of its entries take places from others."
    )
    yield Table.of(("entries", "places", "best above average"), [
        (", ".join(group.models), ", ".join(map(str, group.places)), f"{group.gain:.1f} places")
        for group in study.groups
    ])  # fmt: skip


def _small_print(study: BoardCopies) -> Iterator[str]:
    yield (
        f"Ties count from a share of {LEAST_TIES:g} of the shared tasks on, and not in a score that {COMMON:.0%} of "
        "the unrelated models have. Nearness is the correlation of scores beyond what strength explains; kin are "
        "compared with kin, others with pairs of different producers. --json lists all tasks of a finding."
    )
    if study.scores.producers == study.scores.models:
        yield "No producers were named, so every model is taken for its own producer."
    yield from map(sentence, study.scores.notes)
