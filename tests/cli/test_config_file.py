"""Configuration files: each setting from a flag, else the environment, else the file, else its default."""

import re
import sys

import pytest
from typer.main import get_command

from cloneproof.cli import main
from cloneproof.cli import serve as module
from cloneproof.cli.app import app
from cloneproof.cli.config_file import settings

SERVE = get_command(app).commands["serve"]
ACTIONS = {"create_key", "agent", "as_json", "help", "config"}  # what one call does, not how a service is set up


class Ran(Exception):  # noqa: N818
    pass


@pytest.fixture
def served(monkeypatch, capsys, tmp_path):
    """What `cloneproof serve` would run with, or the sentence that refuses it."""
    monkeypatch.chdir(tmp_path)

    class Run:
        @staticmethod
        def run(*arguments):
            raise Ran(arguments)

    def call(*arguments, config=None, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(f"CLONEPROOF_SERVE_{name}", value)
        if config is not None:
            (tmp_path / "c.toml").write_text(config)
            arguments = ("--config", "c.toml", *arguments)
        monkeypatch.setattr(module, "service_package", lambda: Run)
        monkeypatch.setattr("cloneproof.serve.http.call_log.configure_log", lambda *form: logs.append(form))
        monkeypatch.setattr(sys, "argv", ["cloneproof", "serve", *arguments])
        logs = []
        try:
            main()
        except SystemExit as left:
            error = capsys.readouterr().err
            if "Ran" in error:
                found = re.search(r"Ran: (\(.*\))", error)[1]
                place, host, port, rate, *_ = re.sub(r"<function.*?>", "", found)[1:].split(", ")
                return place.strip("'"), host.strip("'"), int(port), float(rate), *logs
            return left.code, error
        raise AssertionError

    return call


def test_the_order(served):
    config = '[serve]\ndatabase = "file.db"\nhost = "::1"\nport = 1\nagent_rate = 2\nlog = "json"\n'
    assert served(config=config) == ("file.db", "::1", 1, 2.0, ("json", "warning"))
    assert served(config=config, PORT="7", LOG_LEVEL="info") == ("file.db", "::1", 7, 2.0, ("json", "info"))
    assert served("flag.db", "--port", "9", config=config) == ("flag.db", "::1", 9, 2.0, ("json", "info"))
    assert served("flag.db", CONFIG="c.toml")[1:4] == ("::1", 7, 2.0)
    assert served("flag.db", CONFIG="", PORT="")[1:4] == ("127.0.0.1", 8642, 20.0)


def test_every_setting_has_a_variable_and_a_name_in_the_file():
    """One table: the signature of the command."""
    flags = {parameter.name for parameter in SERVE.params} - ACTIONS
    found = settings(SERVE)
    assert {parameter.name for parameter in found.values()} == flags
    assert {name: name for name in found} == {
        name: "database" if parameter.name == "place" else parameter.name for name, parameter in found.items()
    }


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[serve]\nprot = 1\n", "did you mean 'port'"),
        ("[serve]\nport = '1'\n", "expected a whole number as port"),
        ("[serve]\nport = true\n", "expected a whole number as port"),
        ("[serve]\nagent_rate = 'x'\n", "expected a number as agent_rate"),
        ("[serve]\nhost = 1\n", "expected text in quotes as host"),
        ("[serve]\ncreate_key = 'platform'\n", "unknown setting 'create_key'"),
        ("[serve]\nconfig = 'c.toml'\n", "unknown setting 'config'"),
        ("port = 1\n", "expected one table, [serve]"),
        ("[serve]\n[other]\n", "expected one table, [serve]"),
        ("serve = 1\n", "expected one table, [serve]"),
        ("[serve\n", "expected TOML"),
    ],
)
def test_a_bad_file_is_one_sentence(served, config, words):
    code, error = served("a.db", config=config)
    assert code == 2
    assert words in error
    assert len(error.splitlines()) == 1


def test_a_missing_file_is_one_sentence(served):
    code, error = served("a.db", "--config", "none.toml")
    assert (code, len(error.splitlines())) == (2, 1)
    assert "expected a configuration file" in error
