"""Items that are the same, in sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cloneproof._lib.sections import Paragraph, Points, Section, SectionPart, Table
from cloneproof.logs.same import SameItems
from cloneproof.report.words import names_words, not_shown, shorten
from cloneproof.same.links import SameLink

FIRST: Final = 8  # groups on the first screen
MOST_GROUPS: Final = 50  # shown
MOST_ROWS: Final = 8  # items shown of a group
MOST_ALIKE: Final = 30  # pairs shown that are alike and not named
LONGEST: Final = 60  # letters of a title
COMMON_SHOPS: Final = "Two shops that sell the same products look like this as well."


def sections(found: SameItems) -> Iterable[Section]:
    """Return the groups, the owners whose items match, and what is alike."""
    owners = len({item.owner for item in found.items})
    asked = f"{found.rows:,} rows by {', '.join(found.by)}" + (f", {owners:,} owners" if found.owner else "")
    yield Section(_title(found), [*_first(found), *_answer(found)])
    if found.groups:
        yield Section("The same", tuple(_groups(found)), asked)
    if found.accounts:
        yield Section("Owners whose items match one to one", tuple(_accounts(found)))
    if found.alike:
        yield Section("Alike, and not named", tuple(_alike(found)))
    yield Section("Small print", (Points(tuple(map(Paragraph, _small_print(found)))),))


def _title(found: SameItems) -> str:
    if not found.groups:
        return f"No two of the {found.rows:,} rows are one item."
    items, groups = sum(map(len, found.groups)), len(found.groups)
    what = "one item" if groups == 1 else f"{groups:,} items"
    pairs = f"the {len(found.links):,} pairs behind this" if len(found.links) > 1 else "1 pair"
    return f"{items:,} of {found.rows:,} rows are {what}; of {pairs} about {found.expected_wrong:.1f} are wrong."


def _first(found: SameItems) -> Iterator[SectionPart]:
    """Return a row for each of the largest groups."""
    table = found.to_columns()
    why = dict(zip(table["group"], table["why"], strict=True))  # one for each group
    rows = []
    for number, group in enumerate(found.groups[:FIRST], start=1):
        items = [found.items[place] for place in group]
        named = list(dict.fromkeys(item.owner for item in items if item.owner))
        owners = names_words(named, 2, 12) if named else "–"
        text = min((next(iter(item.texts.values()), "") for item in items), key=len)
        rows.append((shorten(text, 30), f"{len(group)}", shorten(owners, 18), shorten(why[number], 24)))
    if rows:
        yield Table.of(("item", "rows", "of", "why"), rows, left=["of", "why"])
        yield from not_shown(len(found.groups) - FIRST, "items")


def _answer(found: SameItems) -> Iterator[SectionPart]:
    across = sum(found.items[link.one].owner != found.items[link.other].owner for link in found.links)
    if found.groups:
        if across:
            yield Paragraph(f"{across:,} of the pairs are of two owners.")
    else:
        yield Paragraph(
            f"{len(found.alike):,} pairs are alike, no more than different items are at a share of errors of "
            f"{found.false_share:g}."
        )
    for note in found.rests_on:
        yield Paragraph(f"{note[0].upper()}{note[1:]}.", role="note")


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
                f"{table['share'][at]:.3f}", table["why"][at], name if k == 0 else "",
            ))  # fmt: skip
        shown += len(group)
    columns = ("item", "row", "owner", "text", "share wrong", "why", "id")
    yield Table.of(columns, rows, left=["row", "owner", "text", "why", "id"])
    if len(found.groups) > MOST_GROUPS:
        yield Paragraph(f"{len(found.groups) - MOST_GROUPS:,} further items; --csv and --json have them.", role="note")


def _accounts(found: SameItems) -> Iterator[SectionPart]:
    rows = [(*one.owners, f"{one.same:,}", f"{one.titles:,}") for one in found.accounts[:MOST_ALIKE]]
    yield Table.of(("owner", "and", "the same", "items of the smaller"), rows, left=["and"])
    yield Paragraph(f"These may be accounts of one owner. {COMMON_SHOPS}", role="note")


def _alike(found: SameItems) -> Iterator[SectionPart]:
    rows = [_row(link, found) for link in found.alike[:MOST_ALIKE]]
    yield Table.of(("rows", "one", "the other", "why"), rows, left=["one", "the other", "why"])
    if len(found.alike) > MOST_ALIKE:
        yield Paragraph(f"{len(found.alike) - MOST_ALIKE:,} further pairs; --json has them.", role="note")


def _row(link: SameLink, found: SameItems) -> tuple[str, ...]:
    pair = found.items[link.one], found.items[link.other]
    texts = (shorten(next(iter(item.texts.values()), ""), LONGEST) for item in pair)
    return " and ".join(f"{item.row:,}" for item in pair), *texts, str(link.why)


def _small_print(found: SameItems) -> Iterator[str]:
    yield (
        f"Pairs are named so that on average at most {found.false_share:.0%} of them are wrong. How often different "
        "items look this much alike is counted in this table, where copies are not: between sellers for pairs inside "
        "one, inside shops for pairs between few shops. Where sellers keep to brands it says less."
    )
    yield "This is a reason to look at the items; it says nothing about anybody's intentions."
