"""A configuration file for a command: TOML, with a table of the command's name.

What can be set is what the command's own signature says: every option that names an environment variable. A flag
counts before the variable, the variable before the file, the file before the default; that order is click's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from cloneproof.errors import FileError, brief, did_you_mean

_KINDS: Mapping[type, tuple[tuple[type, ...], str]] = {  # by the kind of the default
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
}
_TEXT = ((str,), "text in quotes")
CliCommand = Any  # click's, or the copy of it that newer versions of typer bring


def settings(command: CliCommand) -> dict[str, Any]:
    """What may be set for a command, by its name in a file: `agent_rate` for CLONEPROOF_SERVE_AGENT_RATE."""
    found = {}
    prefix = f"CLONEPROOF_{(command.name or '').upper()}_"
    for parameter in command.params:
        if isinstance(parameter.envvar, str) and parameter.envvar.startswith(prefix):
            found[parameter.envvar.removeprefix(prefix).lower()] = parameter
    found.pop("config", None)  # a file does not name itself
    return found


def read_config(context: typer.Context, path: str | None) -> str | None:
    """Take the values of a file as the context's defaults; the callback of `--config`."""
    if path:
        context.default_map = config_values(context.command, path)
    return path


def config_values(command: CliCommand, path: str) -> dict[str, Any]:
    """The values of a file by the command's own names for them; one sentence for whatever does not fit."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as problem:
        raise FileError(f"expected a configuration file, got {path!r}: {problem}; check the path") from None
    except tomllib.TOMLDecodeError as problem:
        raise FileError(f"expected TOML in {path!r}, got something else ({problem}); correct it") from None
    table = data.get(command.name or "")
    if set(data) != {command.name} or not isinstance(table, dict):
        raise FileError(f"expected one table, [{command.name}], in {path!r}, got {sorted(data)}; put everything in it")
    known, values = settings(command), {}
    for name, value in table.items():
        if name not in known:
            raise FileError(f"unknown setting {name!r} in {path!r}; {did_you_mean(name, known)}it takes {[*known]}")
        types, words = _KINDS.get(type(known[name].default), _TEXT)
        if not isinstance(value, types) or isinstance(value, bool):
            raise FileError(f"expected {words} as {name} in {path!r}, got {brief(value)}; correct it")
        values[str(known[name].name)] = value
    return values
