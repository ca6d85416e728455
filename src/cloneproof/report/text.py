"""Sections as plain text, for terminals and `print`: lines of at most 100 columns, tables that fit."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence

from cloneproof._sections import Facts, Figure, Paragraph, Points, Section, SectionPart, Table, Verbatim
from cloneproof.report.words import FIXED, NARROW, printable

WIDTH = 100  # of a line of words, at most
NATURAL = 10_000  # columns, for tables as wide as their cells
SPACES = str.maketrans(NARROW + FIXED, "  ")  # once lines are broken, spaces are spaces
WIDEST = 40  # of a name in the first column of a table, before it folds


def text(sections: Iterable[Section], width: int | None = WIDTH, bold: bool = False) -> str:
    """Return the sections as text; with a width of None, tables are as wide as their cells."""
    blocks = []
    for section in sections:
        shown = [_part(part, width, bold) for part in section.parts if not isinstance(part, Figure | Verbatim)]
        if section.background or (section.parts and not shown):
            continue
        title = [_strong(printable(section.title), bold)] if section.title else []
        question = [_wrapped(section.question, width)] if section.question else []
        blocks.append("\n".join([*question, *title, *shown]))
    return "\n\n".join(blocks).translate(SPACES)


def _part(part: SectionPart, width: int | None, bold: bool) -> str:
    match part:
        case Paragraph():
            return _wrapped(_led(part), width)
        case Points():
            marks = [f"{k}. " if part.numbered else "- " for k in range(1, 1 + len(part.items))]
            return "\n".join(_wrapped(_led(item), width, mark) for mark, item in zip(marks, part.items, strict=True))
        case Facts():
            return facts_text(part, width)
        case Table():
            return table_text(part, width, bold)
    raise AssertionError(part)


def _led(paragraph: Paragraph) -> str:
    return f"{paragraph.lead}. {paragraph.text}" if paragraph.lead else paragraph.text


def _strong(words: str, bold: bool) -> str:
    return f"\x1b[1m{words}\x1b[0m" if bold else words


def _wrapped(words: str, width: int | None, mark: str = "") -> str:
    columns = WIDTH if width is None else min(width, WIDTH)
    indent = " " * len(mark)
    lines = [
        textwrap.fill(
            line, columns, initial_indent=mark, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
        )
        for line in printable(words).split("\n")
    ]
    return "\n".join(lines)


def facts_text(facts: Facts, width: int | None) -> str:
    """Return a line for each fact, with names below each other."""
    longest = max((len(name) for name, *_ in facts.rows), default=0)
    return "\n".join(
        _wrapped(f"{value} ({sure})" if sure else value, width, f"{printable(name):{longest}}  ")
        for name, value, sure in facts.rows
    )


def table_text(table: Table, width: int | None, bold: bool = False) -> str:
    """Return the table; where it is narrower than its longest words, each row as a paragraph."""
    from rich.box import SIMPLE_HEAD  # late: a second of loading that most programs do not need
    from rich.console import Console
    from rich.table import Table as RichTable

    drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for k, name in enumerate(table.columns):
        words = k == 0 or name in table.left
        most = None if width is None or k else max(WIDEST, width // 2)
        drawn.add_column(printable(name), justify="left" if words else "right", overflow="fold", max_width=most)
    for row in table.rows:
        drawn.add_row(*(printable(cell) for cell in row))
    caption = [_wrapped(table.caption, width)] if table.caption else []
    console = Console(
        file=io.StringIO(), width=width or NATURAL, color_system="standard" if bold else None, force_terminal=bold,
        markup=False, emoji=False, highlight=False,
    )  # fmt: skip
    if width is not None and console.measure(drawn).minimum > width:
        return "\n".join([*caption, *(_card(table.columns, row, width) for row in table.rows)])
    with console.capture() as captured:
        console.print(drawn)
    lines = (line.rstrip() for line in captured.get().rstrip("\n").split("\n"))
    return "\n".join([*caption, *lines])


def _card(columns: Sequence[str], row: Sequence[str], width: int) -> str:
    """Return a row of a table too wide: its first cell, and the others with their columns' names."""
    cells = ", ".join(f"{name} {cell}" for name, cell in zip(columns[1:], row[1:], strict=True) if cell)
    return _wrapped(f"{row[0]}: {cells}", width, "- ")
