"""The reference of the command line, made from what `cloneproof --help` knows: `{command-line}`."""

from __future__ import annotations

import inspect
from typing import Any

import typer.main
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from cloneproof.cli.app import app as cloneproof_app


def page() -> list[str]:
    """Markdown: a section for each command, with its usage, what it does, and tables of arguments and options."""
    group: Any = typer.main.get_command(cloneproof_app)
    lines: list[str] = []
    for name, command in group.commands.items():
        lines += [f"## cloneproof {name}", "", inspect.cleandoc(command.help or ""), ""]
        with command.make_context(name, [], resilient_parsing=True) as context:
            pieces = " ".join(command.collect_usage_pieces(context)).replace("[[", "[").replace("]]", "]")
            records = [(p.param_type_name, *record) for p in command.params if (record := _record(p, context))]
        lines += ["```text", f"cloneproof {name} {pieces}", "```", ""]
        for kind in ("argument", "option"):
            rows = [f"| {first} | {text} |" for which, first, text in records if which == kind]
            if rows:
                lines += [f"| {kind} | meaning |", "|---|---|", *rows, ""]
    return lines


def _record(parameter: Any, context: Any) -> tuple[str, str] | None:  # noqa: ANN401 - Typer's copy of Click has no public types
    record = parameter.get_help_record(context)
    if record is None or getattr(parameter, "hidden", False):
        return None
    first, text = record
    spelled = ", ".join(f"`{part.strip()}`" for part in first.split(","))
    return spelled.replace("|", "\\|"), text.replace("|", "\\|").replace("\n", " ")


class CommandLine(Directive):
    """Put the page of all commands here."""

    def run(self) -> list[nodes.Node]:
        found = nodes.section()
        found.document = self.state.document
        self.state.nested_parse(StringList(page(), source="cloneproof --help"), self.content_offset, found, True)
        return found.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True}
