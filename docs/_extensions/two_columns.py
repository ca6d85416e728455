"""Docstrings that list names and meanings in two columns: to Sphinx a definition list, which renders as one.

agent           whose deviations; None: everybody's
max_copies      every vector with up to this many of each original is tried,
                besides the ladders
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

ROW = re.compile(r"(?P<names>\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*) {2,}(?P<meaning>\S.*)")
MORE = re.compile(r" {4,}\S")


def as_definitions(lines: list[str]) -> list[str]:
    """The lines, with each row as a term and its meaning.

    >>> as_definitions(["a     first", "      and more", "b, c  second"])
    ['', '`a`', '    first', '    and more', '', '`b`, `c`', '    second']
    """
    result: list[str] = []
    inside = False
    for line in lines:
        row = ROW.fullmatch(line)
        if row:
            terms = ", ".join(f"`{name}`" for name in row["names"].split(", "))
            result += ["", terms, f"    {row['meaning']}"]
            inside = True
        elif inside and MORE.match(line):
            result.append(f"    {line.strip()}")
        else:
            if inside and line:
                result.append("")
            inside = False
            result.append(line)
    return result


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""

    def rewrite(_app, _what, _name, _thing, _options, lines: list[str]) -> None:  # noqa: ANN001 - six arguments of autodoc
        lines[:] = as_definitions(lines)

    app.connect("autodoc-process-docstring", rewrite, priority=400)
    return {"parallel_read_safe": True}
