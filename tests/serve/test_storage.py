"""Storages: ids of any age, restarts, one service to a file, and what is derived checked against the ledger."""

import json
import logging
import os
import sqlite3
import stat
import zlib
from contextlib import closing

import psycopg
import pytest

from cloneproof.errors import ServeError
from cloneproof.serve.http.service import Intervals
from cloneproof.serve.market.entries import GENESIS, Chain, Decided, chain_hashes, seal, unseal
from cloneproof.serve.offline import replay_all
from cloneproof.serve.storage import open_storage
from cloneproof.serve.storage.postgres import PostgresStorage
from cloneproof.serve.writer.markets import ServedMarkets
from support.command import run
from support.disk import full_disk
from support.postgres import emptied
from support.service import TERMS, Desk, open_market, spec, sqlite, with_arms

FEED = "/v1/markets/feed"


def played(storage, rounds, markets=None, offset=0):
    """A markets that decides and rewards, and checkpoints when storage asks for it."""
    if markets is None:
        markets = ServedMarkets()
        market, _ = markets.create(spec(horizon=10**6), 1000)
        with_arms(market, {"ana": 1, "bo": 1}).start(1000)
        storage.commit(markets.take())
    for number in range(offset, offset + rounds):
        market = markets.market("feed")
        made = market.decide(f"r{number}", 1000 + number)
        if number % 5:
            market.reward(f"e{number}", made.id, 0.5, 1000 + number, None)
        if number % 20 == 0:
            storage.commit(markets.take())
            if storage.checkpoint_due:
                storage.checkpoint(markets.take_snapshots())
    new = markets.take()
    if new:
        storage.commit(new)
    return markets


def state_of(markets):
    market = markets.market("feed")
    return market.chain.head, market.registry.to_dict(), market.session.to_json(), list(market.windows.starts)


@pytest.mark.parametrize("interval", [50, 333])
def test_ids_of_any_age_are_found_and_no_others(tmp_path, interval):
    storage = sqlite(tmp_path / "a.db", interval)
    played(storage, 1000)
    storage.close()
    storage = sqlite(tmp_path / "a.db", interval)
    ServedMarkets.recover(storage)
    wanted = [*(f"q:{kind}{n}" for kind in "re" for n in range(1100)), *(f"e:e{n}" for n in range(1100))]
    found = storage.find({1: wanted, 2: ["q:r1"]})
    assert found[2] == {}
    asked = {f"q:r{n}": f"r{n}" for n in range(1000)} | {f"e:e{n}": f"e{n}" for n in range(1000) if n % 5}
    assert {key: entry.request if key[0] == "q" else entry.event for key, entry in found[1].items()} == asked
    storage.close()


@pytest.mark.parametrize("interval", [50, 10**6])
def test_a_restart_goes_on_as_if_nothing_had_happened(tmp_path, interval):
    memory = open_storage(":memory:")
    unbroken = played(memory, 700)
    storage = sqlite(tmp_path / "a.db", interval)
    markets = played(storage, 400)
    storage.close()
    storage = sqlite(tmp_path / "a.db", interval)
    markets = played(storage, 300, ServedMarkets.recover(storage), 400)
    assert state_of(markets) == state_of(unbroken) == state_of(ServedMarkets.recover(memory))
    assert [one.line for one in storage.lines(1, 0, 10**6)] == [one.line for one in memory.lines(1, 0, 10**6)]
    assert storage.lines(1, 10, 7) == memory.lines(1, 10, 7)
    assert storage.lines(1, 10**6, 7) == storage.lines(9, 0, 7) == []
    storage.close()


def test_colliding_hashes_do_not_confuse_ids(tmp_path, monkeypatch):
    """With hashes of two bits nearly everything collides, and the entries have the last word."""
    monkeypatch.setattr(
        "cloneproof.serve.storage.storage.hash_keys", lambda market, keys: [len(key) % 4 for key in keys]
    )
    storage = sqlite(tmp_path / "a.db", 40)
    played(storage, 120)
    found = storage.find({1: [f"q:r{n}" for n in range(200)]})[1]
    assert {key: entry.request for key, entry in found.items()} == {f"q:r{n}": f"r{n}" for n in range(120)}
    storage.close()


def test_a_failed_commit_leaves_nothing_behind(tmp_path):
    storage = sqlite(tmp_path / "a.db")
    played(storage, 10)
    before = storage.lines(1, 0, 100)
    chain = Chain()
    chain.append(Decided(1, 1, 1, "ana", "x", "play", 1.0, "q"))
    new = chain.take()
    with pytest.raises(sqlite3.IntegrityError):
        storage.commit([(2, "other", new), (1, "feed", new)])
    assert storage.lines(1, 0, 100) == before
    assert storage.lines(2, 0, 100) == []
    assert storage.find({2: ["q:q"]}) == {2: {}}
    storage.close()


@pytest.mark.parametrize("change", [("0.5,", "0.75,"), ('"agent":"ana"', '"agent":"bo"')])
def test_a_ledger_that_comes_out_otherwise_is_not_gone_on_with(tmp_path, change):
    """What is appended to it would not fit its chain."""
    storage = sqlite(tmp_path / "a.db")
    played(storage, 20)
    storage.close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE ledger SET lines = replace(lines, ?, ?) WHERE place % (1 << 30) > 1", change)
        hash_now = GENESIS  # somebody who knows the chain makes it fit
        for place, text in connection.execute("SELECT place, lines FROM ledger ORDER BY place").fetchall():
            *_, after = chain_hashes(hash_now, text.encode().split(b"\n"))
            row = (hash_now, after, place)
            connection.execute("UPDATE ledger SET hash_before = ?, hash_after = ? WHERE place = ?", row)
            hash_now = after
    storage = sqlite(tmp_path / "a.db")
    with pytest.raises(ServeError, match="is answered differently here"):
        ServedMarkets.recover(storage)
    storage.close()


def by_symlink(path):
    other = path.with_name("other.db")
    other.symlink_to(path)
    return other


def by_hard_link(path):
    other = path.with_name("other.db")
    os.link(path, other)
    return other


@pytest.mark.parametrize("reach", [by_symlink, by_hard_link, lambda path: path])
def test_a_second_service_is_refused_by_every_name_of_the_file(tmp_path, reach):
    path = tmp_path / "a.db"
    storage, other = sqlite(path), reach(path)
    for _ in range(2):  # whoever was refused has not ended the lock
        with pytest.raises(ServeError, match=r"already served|has 2 names"):
            open_storage(str(other))
    storage.close()
    assert {one.name for one in tmp_path.iterdir()} == {"a.db", other.name}
    if reach is not by_hard_link:
        open_storage(str(other)).close()


def test_the_lock_keeps_another_process_out(tmp_path):
    path, kept = tmp_path / "a.db", sqlite(tmp_path / "a.db")
    pid = os.fork()
    if pid == 0:
        from cloneproof.serve.storage.sqlite import FileLock, _held

        _held.clear()  # what another process does not know
        try:
            FileLock(str(path))
        except ServeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    kept.close()


def deleted(path):
    path.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere.db"))


def replaced(path):
    other = path.with_name("restored.db")
    connection = sqlite3.connect(path)
    connection.execute("VACUUM INTO ?", (str(other),))
    connection.close()
    os.replace(other, path)


def without_log(path):
    path.with_name("a.db-wal").unlink()


@pytest.mark.parametrize("lose", [deleted, moved, replaced, without_log])
def test_a_file_that_is_gone_is_noticed_at_once_and_nothing_is_acknowledged(tmp_path, lose):
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        open_market(desk, {"ana": 1})
        assert desk.get("/ready").status_code == 200
        lose(tmp_path / "a.db")
        assert desk.get("/ready").status_code == 503
        for _ in range(3):
            assert desk.post("decisions", {"request_id": "r"}).status_code == 503
            assert desk.post("/v1/keys", {"role": "auditor"}).status_code == 503


def test_a_full_disk_is_not_ready(tmp_path):
    """Calls that write are 503, those that read are answered, and then all."""
    with Desk(sqlite(tmp_path / "a.db"), intervals=Intervals(probe=0.0)) as desk:
        open_market(desk, {"ana": 1})
        assert desk.get("/ready").status_code == 200
        with full_disk((tmp_path / "a.db-wal").stat().st_size):
            replies = [desk.get("/ready"), desk.post("decisions", {"request_id": "r"}), desk.get("/ready")]
            assert desk.patiently("GET", f"{FEED}/balances").status_code == 200  # 503 while the market is read back
        assert [reply.status_code for reply in replies] == [503, 503, 503]
        assert desk.get("/ready").status_code == 200
        assert desk.decide("r")["decision"] == 1


def test_files_are_for_their_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        with Desk(sqlite(tmp_path / "a.db")) as desk:
            open_market(desk, {"ana": 1})
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) >= {"a.db", "a.db-wal", "a.db-shm"}
    assert set(modes.values()) == {0o600}


def test_a_restored_file_is_closed_to_everybody_else(tmp_path, caplog):
    """`cp` makes a file by the umask, and the dice of running seasons are in it."""
    path = tmp_path / "a.db"
    sqlite(path).close()
    path.chmod(0o644)
    sqlite(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640  # a group may be there for backups
    assert "secrets" in caplog.text
    caplog.clear()
    sqlite(path).close()
    assert not caplog.text


class File:
    """Storages in a file, and a hand that edits it."""

    def __init__(self, folder):
        self.place = str(folder / "a.db")

    def storage(self, interval=10):
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

    def storage(self, interval=10):
        return PostgresStorage(self.place, interval)

    def edit(self, statement, *values):
        for table in ("markets", "ledger", "snapshots"):
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


@pytest.fixture
def kept_and_played(kept):
    with Desk(kept.storage()) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        desk.play(f"r{n}" for n in range(8))
        kept.balances = desk.get("balances").json()
    assert replay_all(kept.place)[0].fits
    return kept


def edited(body, change):
    """A snapshot with another text under its old digest, or under a digest that fits."""
    found = unseal(bytes(body))
    data = json.loads(found.text)
    change(data)
    return found.head, json.dumps(data, separators=(",", ":")).encode()


def richer(data):
    data["registry"]["agents"][0]["balance"] = 999_999_999


def other_dice(data):
    session = json.loads(data["session"])
    body = json.loads(session["body"])
    body["seed"] = "00" * 32
    session["body"] = json.dumps(body, separators=(",", ":"))
    session["digest"] = zlib.adler32(session["body"].encode())
    data["session"] = json.dumps(session)


def test_an_edited_snapshot_is_not_served_and_replay_tells(kept_and_played, caplog):
    body = bytes(kept_and_played.edit("SELECT body FROM snapshots")[0][0])
    _, text = edited(body, richer)
    for bad in (body[:65] + text, b"", b"\xff\x00", body.replace(b'"season":1', b'"season":2')):
        kept_and_played.edit("UPDATE snapshots SET body = ?", bad)
        (found,) = replay_all(kept_and_played.place)
        assert not found.fits
        assert "its snapshot does not" in found.statement
        with Desk(kept_and_played.storage()) as desk, caplog.at_level(logging.WARNING):
            assert desk.get("balances").json() == kept_and_played.balances
            assert "is damaged; the market is rebuilt from its ledger" in caplog.text
        assert replay_all(kept_and_played.place)[0].fits  # the service has made another one
        caplog.clear()


def no_session(data):
    data["session"] = "{}"


def no_registry(data):
    del data["registry"]


def another_mechanism(data):
    data["spec"]["parameters"] = {"agent_rounds": 2, "arm_rounds": 1, "no such parameter": 3}


@pytest.mark.parametrize("change", [no_session, no_registry, another_mechanism])
def test_a_snapshot_that_cannot_be_read_falls_back_to_the_ledger(kept_and_played, change, caplog):
    """Its digest fits: another cloneproof wrote it, or a fault."""
    body = bytes(kept_and_played.edit("SELECT body FROM snapshots")[0][0])
    kept_and_played.edit("UPDATE snapshots SET body = ?", seal(*edited(body, change)))
    (found,) = replay_all(kept_and_played.place)
    assert not found.fits
    with Desk(kept_and_played.storage()) as desk, caplog.at_level(logging.WARNING):
        assert desk.get("balances").json() == kept_and_played.balances
        assert desk.decide("r0")["duplicate"]
        assert "it is rebuilt now" in caplog.text
    assert replay_all(kept_and_played.place)[0].fits  # the service has made another one


@pytest.mark.parametrize("change", [richer, other_dice])
def test_a_forged_snapshot_with_a_good_digest_is_named_by_replay(kept_and_played, change):
    body = bytes(kept_and_played.edit("SELECT body FROM snapshots")[0][0])
    kept_and_played.edit("UPDATE snapshots SET body = ?", seal(*edited(body, change)))
    done = run("replay", kept_and_played.place)
    assert done.returncode == 1
    assert "not those of the ledger" in done.stdout


@pytest.mark.parametrize("name", ["r6", "r9"])
def test_a_start_refuses_a_line_whose_hash_does_not_fit(kept, name):
    """The name of a request is not derived from anything, so only the hash can tell."""
    with Desk(kept.storage(10**6)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        desk.play(f"r{n}" for n in range(5))
        desk.runner.run(desk.app._service.writer.checkpoint())
        desk.play(f"r{n}" for n in range(5, 10))
        desk.crash()  # lines after the last snapshot are read at the start
    snapshots = kept.edit("SELECT entry FROM snapshots")
    assert snapshots
    kept.edit("UPDATE ledger SET lines = replace(lines, ?, ?)", f'"{name}"', '"x"')
    storage = kept.storage(10**6)
    with pytest.raises(ServeError, match="the hash chain is broken in entries"):
        ServedMarkets.recover(storage)
    storage.close()
    assert not replay_all(kept.place)[0].fits


def test_a_ledger_that_is_not_the_snapshots_is_refused(kept_and_played):
    kept_and_played.edit("UPDATE ledger SET hash_after = hash_before")
    storage = kept_and_played.storage()
    with pytest.raises(ServeError, match="the ledger is not the one that its snapshot"):
        ServedMarkets.recover(storage)
    storage.close()


DAMAGES = [('"request":"r3"', '"request":"s3"'), ('"phase"', '"phasf"')]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_retry_that_needs_a_damaged_block_gets_no_second_decision(kept, damage, caplog):
    """Under a snapshot nothing reads the block at the start; only its hash tells that r3 was answered in it."""
    with Desk(kept.storage(4)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        desk.play(f"r{n}" for n in range(20))
    kept.edit("UPDATE ledger SET lines = replace(lines, ?, ?) WHERE lines LIKE ?", *damage, '%"request":"r3"%')
    with Desk(kept.storage(4)) as desk:
        reply = desk.post("decisions", {"request_id": "r3"})
        assert (reply.status_code, reply.json()["error"]) == (503, "storage")
        assert "the hash chain is broken in entries" in reply.json()["message"]
        assert desk.get("ledger").status_code == 503
        assert desk.get("/v1/markets").status_code == 200
        assert desk.get("progress").json()["round"] == 20
    assert "the hash chain is broken in entries" in caplog.text


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_start_that_needs_a_damaged_block_is_refused_in_a_sentence(tmp_path, damage):
    """Ids that are not in their table yet are read from the ledger, also from under a snapshot."""
    kept = File(tmp_path)
    with Desk(kept.storage(10**6)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        desk.play(f"r{n}" for n in range(8))
    kept.edit("UPDATE ledger SET lines = replace(lines, ?, ?) WHERE lines LIKE ?", *damage, '%"request":"r3"%')
    storage = kept.storage(10**6)
    with pytest.raises(ServeError, match="the hash chain is broken in entries"):
        ServedMarkets.recover(storage)
    storage.close()


def test_one_damaged_market_is_named_and_the_others_are_served(kept, caplog):
    """After a repair it goes on, with all that it had answered."""
    with Desk(kept.storage(10**6)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        desk.play(f"r{n}" for n in range(8))
        open_market(desk, {"ana": 1}, market="small")
        desk.crash()
    change = f"UPDATE ledger SET lines = replace(lines, ?, ?) WHERE place < {2 << 40}"
    kept.edit(change, '"r3"', '"x3"')
    with Desk(kept.storage(10**6)) as desk:
        for reply in (
            desk.get("progress"), desk.post("decisions", {"request_id": "r3"}), desk.post("/v1/markets", TERMS),
        ):  # fmt: skip
            assert (reply.status_code, reply.json()["error"]) == (503, "storage")
            assert reply.json()["message"].startswith("market 'feed' cannot be read: the hash chain is broken in entr")
        open_market(desk, {"ana": 1}, market="third")
        for market in ("small", "third"):
            assert desk.post(f"/v1/markets/{market}/decisions", {"request_id": "a"}).json()["decision"] == 1
    assert "market 'feed' cannot be read: the hash chain is broken in entries" in caplog.text
    kept.edit(change, '"x3"', '"r3"')
    with Desk(kept.storage(10**6)) as desk:
        assert (desk.decide("r3")["duplicate"], desk.decide("new")["duplicate"]) == (True, False)
        assert desk.post("/v1/markets/third/decisions", {"request_id": "a"}).json()["duplicate"]
    assert [found.fits for found in replay_all(kept.place)] == [True] * 3
