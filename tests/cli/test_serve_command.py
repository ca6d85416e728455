"""`cloneproof serve` on the command line: keys, and refusals in one sentence."""

import socket
import sqlite3
from types import SimpleNamespace

import pytest
from typer.main import get_command

from cloneproof.cli import serve
from cloneproof.cli.app import app
from cloneproof.cli.serve import settings
from support.command import run
from support.service import sqlite


def test_a_key_is_printed_once_and_only_its_hash_is_kept(tmp_path):
    done = run("serve", tmp_path / "a.db", "--create-key", "agent", "--agent", "ana")
    assert done.returncode == 0
    storage = sqlite(tmp_path / "a.db")
    (record,) = storage.keys()
    storage.close()
    assert (record.role, record.agent) == ("agent", "ana")
    _, number, secret = done.stdout.strip().split("_", 2)
    assert number == record.id
    assert secret.encode() not in (tmp_path / "a.db").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["folder"], "expected the path of a file"),
        ([""], "expected the path of a file"),
        (["new.db/"], "name a file that may be written"),
        (["foreign.db"], "another SQLite file"),
        (["text.db"], "not a database"),
        (["new.db", "--port", "99999"], "expected a port"),
        (["new.db", "--host", "300.1.1.1"], "cannot listen"),
        (["new.db", "--agent-rate", "-1"], "calls a second"),
        (["new.db", "--agent-rate", "nan"], "calls a second"),
        (["new.db", "--agent-rate", "inf"], "calls a second"),
        (["new.db", "--create-key", "king"], "role of a key"),
        (["new.db", "--create-key", "agent"], "names its agent"),
        (["new.db", "--create-key", "agent", "--agent", "a\nb"], "expected an agent's name"),
    ],
)
def test_a_refusal_leaves_everything_as_it_was(tmp_path, monkeypatch, arguments, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.db").write_text("not a database " * 500)
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    monkeypatch.chdir(tmp_path)

    def everything():
        return {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")}

    before = everything()
    done = run("serve", *arguments)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert words in done.stderr
    assert everything() == before


def test_a_port_in_use_is_refused_before_a_file_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = run("serve", tmp_path / "new.db", "--port", other.getsockname()[1])
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "choose another host or port" in done.stderr


SERVE = get_command(app).commands["serve"]
ACTIONS = {"create_key", "agent", "as_json", "help", "config"}  # what one call does, not how a service is set up


@pytest.fixture
def served(monkeypatch, tmp_path):
    """What `cloneproof serve` would run with, or the sentence that refuses it."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, config=None, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(f"CLONEPROOF_SERVE_{name}", value)
        if config is not None:
            (tmp_path / "c.toml").write_text(config)
            arguments = ("--config", "c.toml", *arguments)
        ran, logs = [], []
        monkeypatch.setattr(serve, "service_package", lambda: SimpleNamespace(run=lambda *given: ran.extend(given)))
        monkeypatch.setattr("cloneproof.serve.http.monitoring.configure_log", lambda *form: logs.append(form))
        done = run("serve", *arguments)
        return (*ran[:4], *logs) if ran else (done.returncode, done.stderr)

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
        (None, "expected a configuration file"),
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
        ("[serve\n", "is not TOML"),
    ],
)
def test_a_bad_file_is_one_sentence(served, config, words):
    code, error = served("a.db", "--config", "none.toml") if config is None else served("a.db", config=config)
    assert (code, len(error.splitlines())) == (2, 1)
    assert words in error
