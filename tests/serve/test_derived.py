"""What is derived from a ledger is checked against it: snapshots, ids, and the hashes of what a start reads."""

import json
import logging
import sqlite3
from hashlib import sha256

import psycopg
import pytest

from cloneproof.cli import main
from cloneproof.errors import ServeError
from cloneproof.serve.commit.markets import ServedMarkets
from cloneproof.serve.ledger.sealed import seal, unseal
from cloneproof.serve.offline.reading import replay_all
from cloneproof.serve.storage.postgres import PostgresStorage
from support.postgres import emptied
from support.service import Desk, open_market, sqlite

FEED = "/v1/markets/feed"


class File:
    """Storages in a file, and a hand that edits it."""

    def __init__(self, folder):
        self.place = str(folder / "a.db")

    def storage(self, interval=40):
        return sqlite(self.place, interval)

    def edit(self, statement, *values):
        connection = sqlite3.connect(self.place)
        with connection:
            rows = connection.execute(statement, values).fetchall()
        connection.close()
        return rows


class Database:
    """The same in PostgreSQL."""

    def __init__(self, address):
        self.place = emptied(address)

    def storage(self, interval=40):
        return PostgresStorage(self.place, interval)

    def edit(self, statement, *values):
        for table in ("markets", "ledger", "snapshots", "seen"):
            statement = statement.replace(f" {table}", f" cloneproof.{table}")
        with psycopg.connect(self.place) as connection:
            cursor = connection.execute(statement.replace("?", "%s").encode(), values or None)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def database(server):
    return server.new_database()


@pytest.fixture(params=["file", "database"])
def kept(request, tmp_path):
    if request.param == "file":
        return File(tmp_path)
    return Database(request.getfixturevalue("database"))


def play(desk, first, last):
    for number in range(first, last):
        made = desk.call("POST", f"{FEED}/decisions", {"request_id": f"r{number}"}).json()
        body = {"event_id": f"e{number}", "decision": made["decision"], "value": float(number % 3 == 0)}
        assert desk.call("POST", f"{FEED}/rewards", body).status_code == 200


@pytest.fixture
def played(kept):
    with Desk(kept.storage()) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        play(desk, 0, 60)
        kept.balances = desk.call("GET", f"{FEED}/balances").json()
    assert replay_all(kept.place)[0].fits
    return kept


def edited(body, change):
    """A snapshot with another text under its old digest, or under a digest that fits."""
    found = unseal(bytes(body))
    data = json.loads(found.text)
    change(data)
    return found.head, json.dumps(data, separators=(",", ":")).encode()


def richer(data):
    data["registry"]["agents"][0][2] = "999999999"


def other_dice(data):
    session = json.loads(data["session"])
    body = json.loads(session["body"])
    body["seed"] += 1
    session["body"] = json.dumps(body, separators=(",", ":"))
    session["digest"] = sha256(session["body"].encode()).hexdigest()
    data["session"] = json.dumps(session)


def test_an_edited_snapshot_is_not_served_and_replay_tells(played, caplog):
    body = bytes(played.edit("SELECT body FROM snapshots")[0][0])
    _, text = edited(body, richer)
    for bad in (body[:65] + text, b"garbage", b"", b"\xff\x00", body.replace(b'"season":1', b'"season":2')):
        played.edit("UPDATE snapshots SET body = ?", bad)
        (found,) = replay_all(played.place)
        assert not found.fits
        assert "its snapshot does not" in found.statement
        with Desk(played.storage()) as desk, caplog.at_level(logging.WARNING):
            assert desk.call("GET", f"{FEED}/balances").json() == played.balances
            assert "is damaged; the market is rebuilt from its ledger" in caplog.text
        assert replay_all(played.place)[0].fits  # the service has made another one
        caplog.clear()


@pytest.mark.parametrize("change", [richer, other_dice])
def test_a_forged_snapshot_with_a_good_digest_is_named_by_replay(played, change, monkeypatch, capsys):
    body = bytes(played.edit("SELECT body FROM snapshots")[0][0])
    played.edit("UPDATE snapshots SET body = ?", seal(*edited(body, change)))
    monkeypatch.setattr("sys.argv", ["cloneproof", "replay", played.place])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    assert "not those of the ledger" in capsys.readouterr().out


@pytest.mark.parametrize("edit", ["DELETE FROM seen", "UPDATE seen SET places = hashes", "DELETE FROM seen WHERE {}"])
def test_ids_that_were_deleted_or_changed_are_made_again(played, edit):
    half = "chunk % 2 = 0" if isinstance(played, File) else "piece % 2 = 0"
    played.edit(edit.format(half))
    with Desk(played.storage()) as desk:
        for number in range(60):
            again = desk.call("POST", f"{FEED}/decisions", {"request_id": f"r{number}"}).json()
            assert (again["decision"], again["duplicate"]) == (number + 1, True)
            body = {"event_id": f"e{number}", "decision": number + 1, "value": float(number % 3 == 0)}
            assert desk.call("POST", f"{FEED}/rewards", body).json()["result"] == "duplicate"
        assert desk.call("GET", f"{FEED}/balances").json() == played.balances
    assert replay_all(played.place)[0].fits


def test_ids_that_vanish_while_the_service_runs_do_not_let_a_request_count_twice(played):
    with Desk(played.storage()) as desk:
        play(desk, 60, 120)  # so that there are generations that this process wrote itself
        played.edit("DELETE FROM seen")
        for number in (0, 3, 59, 70):
            while True:
                again = desk.call("POST", f"{FEED}/decisions", {"request_id": f"r{number}"})
                if again.status_code != 503:
                    break
            assert (again.json()["decision"], again.json()["duplicate"]) == (number + 1, True)


@pytest.mark.parametrize("name", ["r70", "r118"])
def test_a_start_refuses_a_line_whose_hash_does_not_fit(kept, name):
    """The name of a request is not derived from anything, so only the hash can tell."""
    with Desk(kept.storage(10**6)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        play(desk, 0, 60)
        desk.runner.run(desk.app._service.writer.checkpoint())
        play(desk, 60, 120)
        desk.crash()  # lines after the last snapshot are read at the start
    snapshots = kept.edit("SELECT entry FROM snapshots")
    assert snapshots
    kept.edit("UPDATE ledger SET lines = replace(lines, ?, ?)", f'"{name}"', '"x"')
    storage = kept.storage(10**6)
    with pytest.raises(ServeError, match="the hash chain is broken in entries"):
        ServedMarkets.recover(storage)
    storage.close()
    assert not replay_all(kept.place)[0].fits


def test_a_ledger_that_is_not_the_snapshots_is_refused(played):
    played.edit("UPDATE ledger SET hash_after = hash_before")
    storage = played.storage()
    with pytest.raises(ServeError, match="the ledger is not the one that its snapshot"):
        ServedMarkets.recover(storage)
    storage.close()
