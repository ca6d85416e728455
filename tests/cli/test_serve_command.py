"""`cloneproof serve` on the command line: keys, and refusals in one sentence."""

import socket
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


def test_a_port_in_use_is_refused_before_a_file_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = run("serve", tmp_path / "new.db", "--port", other.getsockname()[1])
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "choose another host or port" in done.stderr
    assert run("serve", tmp_path / "new.db", "--host", "300.1.1.1").returncode == 2
    assert list(tmp_path.iterdir()) == []


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
