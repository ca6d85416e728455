"""`--help` of every command: nothing is cut, and nothing is wider than the terminal."""

import re
import sys

import pytest

from cloneproof.cli import main
from cloneproof.cli.app import app

COMMANDS = sorted(command.callback.__name__ for command in app.registered_commands)


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_no_line_is_cut(monkeypatch, capsys, columns, command):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "argv", ["cloneproof", *([command] if command else []), "--help"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if re.search(r"\.\.\.?$", line) and not line.startswith("Usage:")] == []
    assert max(map(len, lines)) <= columns
