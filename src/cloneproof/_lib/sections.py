"""Results as sections: sentences, tables and figures as data, which a terminal, a page and a notebook show.

A result names the module of `cloneproof.report` that says it (`said_in`), whose function `sections` has all of its
English. Renderers (`report.text`, `report.page`) know these parts and no result. To say more of a result, add a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Literal

from cloneproof._lib.data import Data


@dataclass(frozen=True)
class Paragraph:
    """Sentences; `lead` is a few words in bold before them, a "note" is in small print, a "promise" in a box."""

    text: str
    lead: str = ""
    role: Literal["", "note", "promise"] = ""
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True)
class Points:
    """A list of paragraphs: remarks, or steps with numbers."""

    items: tuple[Paragraph, ...]
    numbered: bool = False
    kind: ClassVar[str] = "points"


@dataclass(frozen=True)
class Tiles:
    """Names and their values, with a remark each (which may be empty); a page shows `large` ones in large type."""

    rows: tuple[tuple[str, str, str], ...]
    large: bool = False
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Table:
    """Rows of cells, written out; the first column and those in `left` are words, the others numbers.

    `first` says whether the first row is the one chosen, and is to be seen at once.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    left: frozenset[str] = frozenset()
    first: bool = False
    kind: ClassVar[str] = "table"

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        caption: str = "",
        left: Iterable[str] = (),
        first: bool = False,
    ) -> Table:
        """Return the table without the columns in which no row has anything.

        >>> Table.of(("agent", "T", "gain"), [("ana", "", "+3"), ("bo", "", "0")]).columns
        ('agent', 'gain')
        """
        cells = [tuple(row) for row in rows]
        kept = [k for k in range(len(columns)) if not cells or any(row[k] for row in cells)]
        shown = tuple(tuple(row[k] for k in kept) for row in cells)
        return cls(tuple(columns[k] for k in kept), shown, caption, frozenset(left), first)


@dataclass(frozen=True)
class Figure:
    """A figure: `draw` gets Matplotlib's axes and whether they are narrow; `heights` (inches) are for wide and narrow.

    Whoever makes the figure loads no Matplotlib; terminals leave figures out.
    """

    title: str
    caption: str
    draw: Callable[[Any, bool], None]
    heights: tuple[float, float] = (3.4, 3.1)
    kind: ClassVar[str] = "figure"


@dataclass(frozen=True)
class Verbatim:
    """Text as it stands, such as a file to copy."""

    text: str
    kind: ClassVar[str] = "verbatim"


SectionPart = Paragraph | Points | Tiles | Table | Figure | Verbatim


@dataclass(frozen=True)
class Section:
    """Parts under a title. The first section of a result is its answer, a first screen; pages fold the others."""

    title: str
    parts: Sequence[SectionPart] = ()
    question: str = ""  # what was asked, in a line above the title
    tone: str = ""  # "exploitable", "clone-proof" or "undecided": the colour of the answer


def report(module: str) -> Any:  # noqa: ANN401 (a module)
    """Load a module of `cloneproof.report`, late: results lie below it, and most programs show none."""
    return import_module(f"cloneproof.report.{module}")


class Result(Data):
    """What a question returns: `sections()` says it in English, `print` and notebooks show those."""

    said_in: ClassVar[str] = "answers"  # the module of `report` whose function `sections` says it

    def sections(self) -> tuple[Section, ...]:
        """Return all that there is to say: sentences, tables and figures, as data."""
        return tuple(report(self.said_in).sections(self))

    def __str__(self) -> str:
        return str(report("text").text(self.sections()))

    def _repr_html_(self) -> str:
        return str(report("page").notebook(self.sections()))
