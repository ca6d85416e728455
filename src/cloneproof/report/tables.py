"""Any table in sections: its first rows; a column with a single value is named once, below."""

from __future__ import annotations

from cloneproof._sections import Paragraph, Section, Table
from cloneproof._tables import Tabular
from cloneproof.report.words import number, shorten

MOST_ROWS = 20
LONGEST_CELL = 40


def sections(table: Tabular) -> list[Section]:
    """Return the first rows, and what is the same in all of them."""
    columns = table.to_columns()
    constant = {
        name: values[0]
        for name, values in columns.items()
        if len(values) > 1 and values.count(values[0]) == len(values)
    }
    varying = {name: values for name, values in columns.items() if name not in constant}
    rows = [[_cell(value) for value in row] for row in zip(*varying.values(), strict=True)]
    remarks = [f"{len(rows) - MOST_ROWS:,} further rows are not shown."] if len(rows) > MOST_ROWS else []
    same = [f"{name} {_cell(value)}" for name, value in constant.items() if value not in ("", None)]
    remarks += [f"The same in all rows: {'; '.join(same)}."] if same else []
    words = [name for name, values in varying.items() if not any(isinstance(value, int | float) for value in values)]
    shown = Table.of(tuple(varying), rows[:MOST_ROWS], left=words)
    return [Section("", (shown, *(Paragraph(remark, role="note") for remark in remarks)))]


def _cell(value: object) -> str:
    return number(value) if isinstance(value, float) else "" if value is None else shorten(str(value), LONGEST_CELL)
