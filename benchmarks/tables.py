"""Tables of the benchmarks, filled row by row and printed as the sections of a result are."""

from __future__ import annotations

from dataclasses import dataclass, field

from cloneproof._lib.sections import Section, Table
from cloneproof.cli.output import print_sections


@dataclass
class BenchmarkTable:
    """A table that is being filled."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        """Add a row."""
        self.rows.append(cells)


def new_table(title: str, *columns: str) -> BenchmarkTable:
    """Return an empty table."""
    return BenchmarkTable(title, columns)


def print_table(table: BenchmarkTable) -> None:
    """Print it."""
    print_sections([Section(table.title, [Table.of(table.columns, table.rows)])])
