"""Items that are the same, in sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cloneproof._sections import Paragraph, Points, Section, SectionPart, Table
from cloneproof.analysis.copying.matching import TitleLink
from cloneproof.logs.same import SameItems
from cloneproof.report.words import shorten

MOST_GROUPS: Final = 50  # shown
MOST_ROWS: Final = 8  # items shown of a group
MOST_NEAR: Final = 30  # pairs shown that were near
LONGEST: Final = 90  # letters of a title
COMMON_SHOPS: Final = "Two shops that sell the same products look like this as well."


def sections(found: SameItems) -> Iterable[Section]:
    """Return the groups, the owners whose titles match, and what was near."""
    owners = len({item.owner for item in found.items})
    asked = f"{found.rows:,} rows by {', '.join(found.by)}" + (f", {owners:,} owners" if found.owner else "")
    yield Section(_title(found), tuple(_answer(found)), asked)
    if found.groups:
        yield Section("The same", tuple(_groups(found)))
    if found.accounts:
        yield Section("Owners whose titles match one to one", tuple(_accounts(found)))
    if found.near:
        yield Section("Near, and not taken for the same", tuple(_near(found)))
    yield Section("Small print", (Points(tuple(map(Paragraph, _small_print(found)))),))


def _title(found: SameItems) -> str:
    if not found.groups:
        return "No two items are the same"
    items = sum(map(len, found.groups))
    groups = f"{len(found.groups):,} item{'s' if len(found.groups) > 1 else ''}"
    return f"{items:,} of {found.rows:,} rows are {groups}"


def _answer(found: SameItems) -> Iterator[SectionPart]:
    across = sum(found.items[link.one].owner != found.items[link.other].owner for link in found.links)
    if found.groups:
        said = f"{len(found.links):,} pairs are the same"
        yield Paragraph(said + (f", {across:,} of them of two owners." if found.owner else "."))
    else:
        yield Paragraph(f"{len(found.near):,} pairs were near.")


def _groups(found: SameItems) -> Iterator[SectionPart]:
    table = found.to_columns()
    rows, shown = [], 0
    for number, group in enumerate(found.groups[:MOST_GROUPS], start=1):
        name = found.label("item", *found.described(group))
        for k, place in enumerate(group[:MOST_ROWS]):
            item, at = found.items[place], shown + k
            rest = f" (and {len(group) - MOST_ROWS:,} more)" if k == MOST_ROWS - 1 < len(group) - 1 else ""
            rows.append((
                str(number), f"{item.row:,}{' of the catalogue' if item.known else ''}",
                shorten(item.owner, LONGEST), shorten(next(iter(item.texts.values()), ""), LONGEST) + rest,
                f"{table['score'][at]:.2f}", table["reason"][at], name if k == 0 else "",
            ))  # fmt: skip
        shown += len(group)
    columns = ("item", "row", "owner", "text", "score", "why", "id")
    yield Table.of(columns, rows, left=["row", "owner", "text", "why", "id"])
    if len(found.groups) > MOST_GROUPS:
        yield Paragraph(f"{len(found.groups) - MOST_GROUPS:,} further items; --csv and --json have them.", role="note")


def _accounts(found: SameItems) -> Iterator[SectionPart]:
    rows = [(*one.owners, f"{one.same:,}", f"{one.near:,}", f"{one.titles:,}") for one in found.accounts[:MOST_NEAR]]
    yield Table.of(("owner", "and", "the same", "near", "titles of the smaller"), rows, left=["and"])
    yield Paragraph(f"These may be accounts of one owner. {COMMON_SHOPS}", role="note")


def _near(found: SameItems) -> Iterator[SectionPart]:
    rows = [_row(link, found) for link in found.near[:MOST_NEAR]]
    yield Table.of(("score", "rows", "one", "the other", "why not"), rows, left=["rows", "one", "the other", "why not"])
    if len(found.near) > MOST_NEAR:
        yield Paragraph(f"{len(found.near) - MOST_NEAR:,} further pairs; --json has them.", role="note")


def _row(link: TitleLink, found: SameItems) -> tuple[str, ...]:
    pair = found.items[link.one], found.items[link.other]
    texts = (shorten(next(iter(item.texts.values()), ""), LONGEST) for item in pair)
    return f"{link.score:.2f}", " and ".join(f"{item.row:,}" for item in pair), *texts, link.reason


def _small_print(found: SameItems) -> Iterator[str]:
    yield (
        "The score is the cosine of the two texts' words, each weighted by how few texts of this table have it: 0 for "
        f"nothing in common, 1 for the same words. From {found.threshold:g} on, texts of two owners are the same if "
        "each is the other's nearest, nothing else fits as well, no number contradicts and what they share is rare. "
        "Texts of one owner are the same if they differ in filler, order, spelling or a numbering only."
    )
    yield "This is a reason to look at the items; it says nothing about anybody's intentions."
