"""Results as tables: columns, a data frame, or text for a document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from cloneproof._lib.checks import count, known
from cloneproof._lib.sections import Result
from cloneproof.errors import CloneproofError, brief

ARROW: Any = (
    ("pyarrow", "table", {}),
    ("polars", "DataFrame", {"strict": False}),
)  # the first one there makes Arrow data
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


class Tabular(Result):
    """A result with columns of equal length, each with a name."""

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table as columns by name."""
        raise NotImplementedError

    def to_frame(self) -> Any:  # noqa: ANN401 (pandas is no dependency, so its types are unknown here)
        """Return the table as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise CloneproofError(
                "expected pandas to make a data frame, got no such package; `pip install pandas`, or use to_columns()"
            ) from None
        return pd.DataFrame(self.to_columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 (a capsule)
        """Stream the table to any reader of Arrow, such as `polars.DataFrame(result)` or `pyarrow.table(result)`."""
        for package, table, options in ARROW:
            try:
                made = getattr(import_module(package), table)
            except ImportError:
                continue
            return made(self.to_columns(), **options).__arrow_c_stream__(requested_schema)
        raise CloneproofError(
            "expected pyarrow or polars to make Arrow data, got neither package; `pip install pyarrow`, or use "
            "to_columns()"
        )

    def to_markdown(self, columns: Sequence[str] | None = None, digits: int = 6) -> str:
        """Return the table as Markdown."""
        chosen = self._chosen(columns, digits)
        bars = ["---:" if _numeric(values) else "---" for values in chosen.values()]
        cells = [[_markdown(_text(value, digits)) for value in row] for row in zip(*chosen.values(), strict=True)]
        lines = [[_markdown(name) for name in chosen], bars, *cells]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def to_latex(self, columns: Sequence[str] | None = None, digits: int = 6) -> str:
        r"""Return the table as a LaTeX `tabular` with the rules of the package booktabs."""
        chosen = self._chosen(columns, digits)
        sides = "".join("r" if _numeric(values) else "l" for values in chosen.values())
        cells = [[_latex(_text(value, digits)) for value in row] for row in zip(*chosen.values(), strict=True)]
        head = " & ".join(_latex(name) for name in chosen) + r" \\"
        body = [" & ".join(row) + r" \\" for row in cells]
        lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
        return "\n".join([*lines, r"\end{tabular}"]) + "\n"

    def _chosen(self, columns: Sequence[str] | None, digits: object) -> dict[str, list[Any]]:
        count(digits, "digits", most=17)
        table = self.to_columns()
        if columns is None:
            return table
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise CloneproofError(f"expected columns as a list of names, got {brief(columns)}; give e.g. ['value']")
        return {name: table[known(name, table, "column")] for name in columns}


def _numeric(values: list[Any]) -> bool:
    return any(_is_number(value) for value in values) and all(value is None or _is_number(value) for value in values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object, digits: int) -> str:
    """Write a cell: numbers to some digits, lists with commas, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{digits}g}" if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)


def _markdown(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def _latex(text: str) -> str:
    return " ".join("".join(LATEX.get(letter, letter) for letter in text).split())
