"""Files of another format are refused in one sentence; a snapshot of another version is left aside."""

import json
import sqlite3
from contextlib import closing

import pytest

from cloneproof.errors import ServeError
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.entries import GENESIS, chain_hashes, seal, unseal
from cloneproof.serve.offline import read_rows, replay_all
from cloneproof.serve.storage import open_storage
from cloneproof.serve.writer.markets import ServedMarkets
from support.command import run
from support.service import Desk, open_market, sqlite


def rows(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


@pytest.fixture
def opened(tmp_path):
    """A file with a season that has begun."""
    path = tmp_path / "market.db"
    with Desk(sqlite(path)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        desk.play(["r1", "r2"])
    return path


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda opening: opening.pop("format"), 1),
        (lambda opening: opening.update(format=ledger.FORMAT + 1), ledger.FORMAT + 1),
        (lambda opening: opening.update(format=99, spec="elsewhere"), 99),
    ],
)
def test_a_ledger_of_another_format_is_refused_in_one_sentence(opened, change, found):
    """With hashes that fit the changed opening."""
    lines = [
        line.encode()
        for (text,) in rows(opened, "SELECT lines FROM ledger ORDER BY place")
        for line in text.split("\n")
    ]
    opening = json.loads(lines[0])
    change(opening)
    lines[0] = json.dumps(opening, separators=(",", ":")).encode()
    *_, after = chain_hashes(GENESIS, lines)
    rows(opened, "DELETE FROM ledger")
    rows(opened, "DELETE FROM snapshots")
    row = ((1 << 40) + 1, len(lines), GENESIS, after, b"\n".join(lines).decode())
    rows(opened, "INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", *row)
    done = run("replay", opened)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert (
        f"expected a ledger of format {ledger.FORMAT}, got format {found}; use the cloneproof that wrote it"
        in done.stderr
    )
    with closing(open_storage(str(opened))) as storage:
        for reader in (lambda: read_rows(str(opened)), lambda: ServedMarkets.recover(storage)):
            with pytest.raises(ServeError, match=f"got format {found}"):
                reader()


def test_a_file_of_another_schema_is_refused_in_one_sentence(opened):
    rows(opened, "PRAGMA user_version = 2")
    for reader in (replay_all, open_storage):
        with pytest.raises(ServeError, match="expected a file of schema 3, got schema 2"):
            reader(str(opened))


def test_a_snapshot_of_another_version_is_left_aside(opened, caplog):
    ((body,),) = rows(opened, "SELECT body FROM snapshots")
    found = unseal(body)
    other = json.dumps({"version": ledger.SNAPSHOT + 1, "all": "else"}).encode()
    rows(opened, "UPDATE snapshots SET body = ?", seal(found.head, other))
    assert replay_all(str(opened))[0].fits
    with Desk(sqlite(opened)) as desk:
        assert desk.get("progress").json()["head"] == found.head.hash.hex()
    assert f"of version {ledger.SNAPSHOT + 1}, not {ledger.SNAPSHOT}" in caplog.text
    assert unseal(rows(opened, "SELECT body FROM snapshots")[0][0]).version == ledger.SNAPSHOT
