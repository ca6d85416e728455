"""`cloneproof serve` on the command line: keys, and refusals in one sentence."""

import socket
import sqlite3
import sys

import pytest

from cloneproof.cli import main
from support.service import sqlite


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["cloneproof", "serve", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code or 0, *capsys.readouterr()


def test_a_key_is_printed_once_and_only_its_hash_is_kept(tmp_path, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, tmp_path / "a.db", "--create-key", "agent", "--agent", "ana")
    assert code == 0
    storage = sqlite(tmp_path / "a.db")
    (record,) = storage.keys()
    storage.close()
    assert (record.role, record.agent) == ("agent", "ana")
    assert out.strip().split("_")[1] == record.id
    assert out.strip().split("_", 2)[2].encode() not in (tmp_path / "a.db").read_bytes()


def test_what_cannot_be_served_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "text.db").write_text("not a database, but long enough to look like one at first sight\n" * 20)
    sqlite(tmp_path / "gap.db").close()
    with sqlite3.connect(tmp_path / "gap.db") as connection:
        connection.execute("INSERT INTO markets (number, name) VALUES (1, 'feed')")
        connection.execute("INSERT INTO snapshots VALUES (1, 3, '{}')")
    for arguments in (
        (tmp_path / "text.db",),
        (tmp_path / "gap.db",),
        (tmp_path / "none" / "a.db",),
        (tmp_path / "a.db", "--create-key", "king"),
        (tmp_path / "a.db", "--create-key", "agent"),
        (tmp_path / "a.db", "--port", "99999"),
    ):
        code, _, error = run(monkeypatch, capsys, *arguments)
        assert code == 2, error
        *warnings, sentence = error.splitlines()  # the log may say before what was found
        assert sentence.startswith("error: ")
        assert all(" warning " in line for line in warnings)


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
        (["new.db", "--create-key", "king"], "expected a role"),
        (["new.db", "--create-key", "agent"], "names its agent"),
        (["new.db", "--create-key", "agent", "--agent", "a\nb"], "expected an agent's name"),
    ],
)
def test_a_refusal_leaves_everything_as_it_was(tmp_path, monkeypatch, capsys, arguments, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.db").write_text("not a database " * 500)
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    monkeypatch.chdir(tmp_path)

    def everything():
        return {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")}

    before = everything()
    code, out, error = run(monkeypatch, capsys, *arguments)
    assert (code, out, len(error.splitlines())) == (2, "", 1), error
    assert words in error
    assert everything() == before


def test_a_port_in_use_is_refused_before_a_file_is_made(tmp_path, monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, _, error = run(monkeypatch, capsys, tmp_path / "new.db", "--port", port)
    assert (code, list(tmp_path.iterdir())) == (2, []), error
    assert "choose another host or port" in error
