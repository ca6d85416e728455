"""The list of every type of the package: `{types}`, read from the sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

SOURCES = Path(__file__).parents[2] / "src"
ALIAS = re.compile(r"_?[A-Z]\w*[a-z]\w*")  # as classes are spelled; constants are in capitals


class Definition(NamedTuple):
    """A type: its name, the file that defines it, and what it is in a line."""

    name: str
    file: Path
    meaning: str


@cache
def definitions(sources: Path = SOURCES) -> tuple[Definition, ...]:
    """Every class and type alias at module level, private ones too."""
    return tuple(_definitions(sources))


def _definitions(sources: Path) -> Iterator[Definition]:
    for file in sorted(sources.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            match node:
                case ast.ClassDef(name=name):
                    yield Definition(name, file, (ast.get_docstring(node) or "").split("\n")[0])
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ) if ALIAS.fullmatch(name):
                    yield Definition(name, file, f"`{ast.unparse(value)}`")
                case _ if type(node).__name__ == "TypeAlias":  # `type X = ..`, from Python 3.12 on
                    yield Definition(node.name.id, file, f"`{ast.unparse(node.value)}`")  # type: ignore[attr-defined]


def tables() -> list[str]:
    """Markdown: a table for each folder of the package."""
    folders: dict[str, list[Definition]] = {}
    for each in definitions():
        if not each.name.startswith("_"):
            folders.setdefault(each.file.parent.relative_to(SOURCES).as_posix(), []).append(each)
    lines: list[str] = []
    for folder, types in folders.items():
        lines += [f"## {folder}", "", "| type | module | meaning |", "|---|---|---|"]
        lines += [
            f"| `{each.name}` | {each.file.stem} | {each.meaning.replace('|', chr(92) + '|')} |" for each in types
        ]
        lines.append("")
    return lines


class Types(Directive):
    """Put the tables here."""

    def run(self) -> list[nodes.Node]:
        found = nodes.section()
        found.document = self.state.document
        self.state.nested_parse(StringList(tables(), source="types"), self.content_offset, found, True)
        return found.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("types", Types)
    return {"parallel_read_safe": True}
