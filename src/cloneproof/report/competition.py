"""Submissions of a competition, in sections: what the best of several is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cloneproof._sections import Paragraph, Points, Section, SectionPart, Table
from cloneproof.boards.earned import Competition
from cloneproof.report.board import earned_parts
from cloneproof.report.words import not_shown, sentence

MOST_TEAMS: Final = 20  # in a table


def sections(study: Competition) -> Iterable[Section]:
    """Return what the study says."""
    groups = study.submissions.groups
    asked = f"{len(groups):,} teams, {len(study.submissions.teams):,} submissions"
    pays = any(row.ranks.low > 0 for row in study.earned)
    title = (
        "The best of several submissions is worth ranks" if pays else "No rank gained by several submissions was seen"
    )
    yield Section(title, tuple(_answer(study)), asked, "exploitable" if pays else "undecided")
    yield Section("Who would rank where", tuple(_places(study)))
    if study.earned:
        yield Section("What the best of several is worth", tuple(earned_parts(study.earned, "points", study)))
    notes = ("Higher scores are taken for better.", *map(sentence, study.submissions.notes))
    yield Section("Small print", (Points(tuple(map(Paragraph, notes))),))


def _answer(study: Competition) -> Iterator[SectionPart]:
    luck = "as the table states" if study.stated else "at most: all that a team's scores differ is taken for luck"
    if study.earned:
        most = study.earned[0]
        yield Paragraph(
            f"The best of its {len(most.entries)} submissions stands {most.ranks.value:.1f} ranks (± "
            f"{most.ranks.error:.1f}) and {most.points.value:.3g} points (± {most.points.error:.2g}) above one of them "
            f"alone for {most.owner}, the most of all teams. A score's luck has a standard deviation of "
            f"{study.noise:.3g}, {luck}."
        )
    else:
        yield Paragraph(
            "No team has two submissions with different scores, so what a second one is worth cannot be seen here; "
            "the chance to see it was 0."
        )
    changed = ", ".join(f"{number:,} by {rule}" for rule, number in study.changed.items())
    yield Paragraph(f"Teams whose rank would change: {changed}.", "Other rules")


def _places(study: Competition) -> Iterator[SectionPart]:
    yield Paragraph(
        "Ranks by the scores as they are: by a team's best submission, its last, the mean of all, and the best of its "
        "first three."
    )
    usual, groups = study.places["best-of"], study.submissions.groups
    yield Table.of(("team", "submissions", *study.places), [
        (team, f"{len(groups[team])}", *(f"{ranks[team]}" for ranks in study.places.values()))
        for team in sorted(usual, key=lambda team: usual[team])[:MOST_TEAMS]
    ])  # fmt: skip
    yield from not_shown(len(usual) - MOST_TEAMS, "teams")
