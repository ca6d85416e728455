"""Sections as plain text, for terminals and `print`: lines of at most 80 columns, tables that fit."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from rich.cells import cell_len

from cloneproof._lib.sections import Figure, Paragraph, Points, Section, SectionPart, Table, Tiles, Verbatim
from cloneproof.report.words import FIXED, NARROW, printable

WIDTH = 80  # of a line of words, at most
GAP = "  "  # between columns
SPACES = str.maketrans(NARROW + FIXED, "  ")  # once lines are broken, spaces are spaces
LONGEST_WORD = 40  # in a column, before it is broken


def text(sections: Iterable[Section], width: int | None = WIDTH, bold: bool = False) -> str:
    """Return the sections as text; with a width of None, tables are as wide as their cells."""
    blocks = []
    for place, section in enumerate(sections):
        shown = [_part(part, width, bold) for part in section.parts if not isinstance(part, Figure)]
        if section.parts and not shown:
            continue
        title = [_strong(_wrapped(section.title, width), bold)] if section.title else []
        question = [_wrapped(section.question, width)] if section.question else []
        blocks.append(("\n\n" if place == 0 else "\n").join(["\n".join([*question, *title]), *shown]).strip("\n"))
    return "\n\n".join(blocks).translate(SPACES)


def _part(part: SectionPart, width: int | None, bold: bool) -> str:
    match part:
        case Paragraph():
            return _wrapped(_led(part), width)
        case Points():
            marks = [f"{k}. " if part.numbered else "- " for k in range(1, 1 + len(part.items))]
            return "\n".join(_wrapped(_led(item), width, mark) for mark, item in zip(marks, part.items, strict=True))
        case Tiles():
            return facts_text(part, width)
        case Table():
            return table_text(part, width, bold)
        case Verbatim():
            return "\n".join(map(printable, part.text.splitlines()))
    raise AssertionError(part)


def _led(paragraph: Paragraph) -> str:
    return f"{paragraph.lead}. {paragraph.text}" if paragraph.lead else paragraph.text


def _strong(words: str, bold: bool) -> str:
    return f"\x1b[1m{words}\x1b[0m" if bold else words


def _wrapped(words: str, width: int | None, mark: str = "") -> str:
    columns = WIDTH if width is None else min(width, WIDTH)
    return textwrap.fill(
        printable(words), columns, initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def facts_text(facts: Tiles, width: int | None) -> str:
    """Return a line for each fact, with names below each other."""
    names = [" ".join(printable(name).split()) for name, *_ in facts.rows]
    longest = max(map(len, names), default=0)
    return "\n".join(
        _command(value, width, f"{name:{longest}}  ")
        if value.startswith("`") and value.endswith("`")
        else _wrapped(f"{value} ({sure})" if sure else value, width, f"{name:{longest}}  ")
        for name, (_, value, sure) in zip(names, facts.rows, strict=True)
    )


def _command(value: str, width: int | None, mark: str) -> str:
    """Return a command as it can be pasted: a line that goes on ends with a backslash."""
    columns = (WIDTH if width is None else min(width, WIDTH)) - len(mark) - 2
    lines = textwrap.wrap(printable(value[1:-1]), columns, break_on_hyphens=False, break_long_words=False)
    return mark + f" \\\n{' ' * len(mark)}".join(lines)


def table_text(table: Table, width: int | None, bold: bool = False) -> str:
    """Return the table; if it is too wide even with a word a line, each row as a paragraph."""
    rows = [[printable(cell) for cell in row] for row in (table.columns, *table.rows)]
    caption = [_wrapped(table.caption, width)] if table.caption else []
    widths = _widths(list(zip(*rows, strict=True)), width)
    if widths is None:
        return "\n".join([*caption, *(_card(rows[0], row, width) for row in rows[1:])])
    right = [k > 0 and name not in table.left for k, name in enumerate(table.columns)]
    head, *lines = [_row(row, widths, right) for row in rows]
    rule = "─" * (sum(widths) + len(GAP) * (len(widths) - 1))
    return "\n".join([*caption, _strong(head, bold), rule, *lines])


def _widths(columns: list[tuple[str, ...]], width: int | None) -> list[int] | None:
    """Return the width of each column: where all do not fit, those short of the least are whole, others wrap."""
    natural = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    if width is None:
        return natural
    words = [[word for cell in column for word in cell.replace("\n", " ").split(" ")] for column in columns]
    least = [min(LONGEST_WORD, max(map(cell_len, own), default=0)) for own in words]
    spare = width - sum(least) - len(GAP) * (len(columns) - 1)
    if spare < 0:
        return None
    for k in sorted(range(len(columns)), key=lambda k: natural[k] - least[k]):
        more = max(0, min(natural[k] - least[k], spare))
        least[k], spare = least[k] + more, spare - more
    return least


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Return the lines of a row, its cells wrapped and padded."""
    wrapped = [
        [part for line in cell.split("\n") for part in textwrap.wrap(line, max(1, size), break_on_hyphens=False)]
        for cell, size in zip(cells, widths, strict=True)
    ]
    lines = []
    for parts in zip_longest(*wrapped, fillvalue=""):
        sized = zip(parts, widths, right, strict=True)
        padded = [(" " * (size - cell_len(part)), part, side) for part, size, side in sized]
        lines.append(GAP.join(room + part if side else part + room for room, part, side in padded).rstrip())
    return "\n".join(lines)


def _card(columns: Sequence[str], row: Sequence[str], width: int | None) -> str:
    """Return a row of a table too wide: its first cell, and the others with their columns' names."""
    cells = ", ".join(f"{name} {cell}" for name, cell in zip(columns[1:], row[1:], strict=True) if cell)
    return _wrapped(f"{row[0]}: {cells}", width, "- ")
