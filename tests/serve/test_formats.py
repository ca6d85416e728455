"""Files of earlier versions are read bit for bit, or refused in one sentence; a start covers all that was declared."""

import gzip
import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

import cloneproof as cp
from cloneproof.errors import ServeError, SessionError
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.dice import MarketDice, registration_digest, season_keys
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import replay
from cloneproof.serve.market.terms import complete
from cloneproof.serve.offline import read_rows, replay_all
from cloneproof.serve.storage import open_storage
from cloneproof.serve.writer.markets import ServedMarkets
from support.command import run
from support.formats import step
from support.service import SECRET, Desk, open_market, spec, sqlite, with_arms

FILES = Path(__file__).parent / "formats"
LEDGERS = sorted(path.name for path in FILES.glob("*.db.gz"))


def unpacked(name, tmp_path):
    path = tmp_path / "market.db"
    path.write_bytes(gzip.decompress((FILES / name).read_bytes()))
    return path


def rows(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def last_hash(path):
    return rows(path, "SELECT hash_after FROM ledger ORDER BY place DESC LIMIT 1")[0][0].hex()


@pytest.mark.parametrize("name", LEDGERS)
def test_an_old_ledger_is_replayed_bit_for_bit(name, tmp_path):
    path = unpacked(name, tmp_path)
    (found,) = replay_all(str(path))
    assert (found.fits, found.head) == (True, last_hash(path))
    rows(path, "UPDATE markets SET secret = NULL")  # as an auditor has it
    (told,) = replay_all(str(path))
    assert (told.fits, told.head, told.balances) == (True, found.head, found.balances)
    assert (found.exit_code, told.exit_code) == (0, 0 if name.startswith("open") else 3)


@pytest.mark.parametrize("name", LEDGERS)
def test_a_service_goes_on_with_an_old_database(name, tmp_path):
    path, market = unpacked(name, tmp_path), name.split(".")[0]
    before, opening = last_hash(path), rows(path, "SELECT lines FROM ledger ORDER BY place")[0][0].split("\n")[0]
    with Desk(sqlite(path)) as desk:
        served = desk.get(f"/v1/markets/{market}/progress").json()
        assert (served["market"], served["head"]) == (market, before)
        if served["state"] == "open":
            assert desk.post(f"/v1/markets/{market}/start").status_code == 200
        made = desk.post(f"/v1/markets/{market}/decisions", {"request_id": "first of the new version"}).json()
        asked = {"event_id": "e", "decision": made["decision"], "value": 1.0}
        assert desk.post(f"/v1/markets/{market}/rewards", asked).json()["result"] == "recorded"
    with Desk(sqlite(path)) as desk:  # now from a snapshot of this version
        assert desk.post(f"/v1/markets/{market}/decisions", {"request_id": "second"}).status_code == 200
    assert rows(path, "SELECT lines FROM ledger ORDER BY place")[0][0].startswith(opening)
    assert '"format"' not in opening
    (found,) = replay_all(str(path))
    assert found.fits
    assert read_rows(str(path)).spec.market == market


def reopened(path, change):
    """The file with another opening, and hashes that fit it."""
    stored = rows(path, "SELECT lines FROM ledger ORDER BY place")
    lines = [line.encode() for (text,) in stored for line in text.split("\n")]
    opening = json.loads(lines[0])
    change(opening)
    lines[0] = json.dumps(opening, separators=(",", ":")).encode()
    *_, after = ledger.chain_hashes(ledger.GENESIS, lines)
    rows(path, "DELETE FROM ledger")
    rows(path, "DELETE FROM snapshots")
    row = ((1 << 40) + 1, len(lines), ledger.GENESIS, after, b"\n".join(lines).decode())
    rows(path, "INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", *row)


@pytest.mark.parametrize(
    "change",
    [
        lambda opening: opening.update(format=ledger.FORMAT + 1),
        lambda opening: opening.update(format=99, spec=opening["spec"] | {"places": 3}),
        lambda opening: opening.update(format=99, spec="elsewhere"),
    ],
)
def test_a_ledger_of_a_later_format_is_refused_in_one_sentence(change, tmp_path):
    path = unpacked(LEDGERS[0], tmp_path)
    reopened(path, change)
    done = run("replay", path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert f"expected a ledger of format {ledger.FORMAT} or earlier, got format" in done.stderr
    with closing(open_storage(str(path))) as storage:
        for reader in (lambda: read_rows(str(path)), lambda: ServedMarkets.recover(storage)):
            with pytest.raises(ServeError, match="use the cloneproof that wrote it"):
                reader()


def test_a_file_of_another_schema_is_refused_in_one_sentence(tmp_path):
    path = unpacked(LEDGERS[0], tmp_path)
    rows(path, "PRAGMA user_version = 2")
    for reader in (replay_all, open_storage):
        with pytest.raises(ServeError, match="expected a file of schema 3, got schema 2"):
            reader(str(path))


def test_a_snapshot_of_another_version_is_left_aside(tmp_path, caplog):
    path = tmp_path / "market.db"
    with Desk(sqlite(path)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        desk.play(["r1", "r2"])
    ((body,),) = rows(path, "SELECT body FROM snapshots")
    found = ledger.unseal(body)
    other = json.dumps({"version": ledger.SNAPSHOT + 1, "all": "else"}).encode()
    rows(path, "UPDATE snapshots SET body = ?", ledger.seal(found.head, other))
    assert replay_all(str(path))[0].fits
    with Desk(sqlite(path)) as desk:
        assert desk.get("progress").json()["head"] == found.head.hash.hex()
    assert f"of version {ledger.SNAPSHOT + 1}, not {ledger.SNAPSHOT}" in caplog.text
    assert ledger.unseal(rows(path, "SELECT body FROM snapshots")[0][0]).version == ledger.SNAPSHOT


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("*.json")))
def test_an_old_session_goes_on_bit_for_bit(name):
    saved = json.loads((FILES / name).read_text())
    live = cp.Session.from_json(saved["text"])
    assert live.to_json() == saved["text"]
    assert [step(live) for _ in saved["then"]] == saved["then"]
    assert (live.payoff, live.to_json()) == (saved["payoff"], saved["after"])
    other = json.dumps(json.loads(saved["text"]) | {"version": 99})
    with pytest.raises(SessionError, match="got version 99; open it with the cloneproof that wrote it"):
        cp.Session.from_json(other)


def started(arms, secret=SECRET):
    """The entry of a start, and the market."""
    market = with_arms(LiveMarket.open(complete(spec(seed=None)), 0, MarketDice(secret)), arms)
    return market.start(1000), market


def test_the_start_covers_everything_that_agents_declared():
    """Each field of a registration, those that later versions add too, is in what is hashed."""
    slots = {"mechanism": "reservoir", "parameters": {"rounds": 2, "draws": 3, "threshold": 2}}
    market = with_arms(LiveMarket.open(complete(spec(seed=None, **slots)), 0, MarketDice(SECRET)), {"ana": 2, "bo": 1})
    market.register_arm("ana", "ana-0", 1000, 3)  # as defaults are left out
    market.start(1000)
    (agent, _), fields = market.registry.declared({"ana": 2, "bo": 1}), set[str]()
    for kind in (ledger.AgentRegistered, ledger.ArmRegistered):
        fields |= {field.name for field in msgspec.structs.fields(kind)} - {"n", "at"}
    assert fields <= agent.keys() | agent["arms"][0].keys()
    market.decide("r", 2000)
    assert market.registry.declared({"ana": 2, "bo": 1})[0] == agent  # and nothing that the market counts
    others = [{"ana": 2}, {"ana": 1, "bo": 2}, {"bo": 1, "ana": 2}, {"ana": 2, "bo": 2}, {"ana": 2, "bob": 1}]
    hashes = {started(arms)[0].registered for arms in ({"ana": 2, "bo": 1}, *others)}
    assert len(hashes) == 1 + len(others)


def test_what_rivals_registered_cannot_be_guessed_before_the_settlement():
    """Without the season's key a guess of all names fits nothing; with it, everybody can check the hash."""
    entry, market = started({"ana": 2, "bo": 1})
    names = [["ana", ["ana-0", "ana-1"]], ["bo", ["bo-0"]]]
    assert entry.registered != sha256(msgspec.json.encode(names)).hexdigest()
    declared = market.registry.declared({"ana": 2, "bo": 1})
    commitment, key = season_keys(SECRET, 1)
    assert entry.registered not in {
        sha256(msgspec.json.encode(declared)).hexdigest(),
        registration_digest(commitment, declared),
    }
    assert entry.registered == registration_digest(key, declared)
    assert entry.registered != started({"ana": 2, "bo": 1}, bytes(32))[0].registered


def test_the_replay_checks_the_salted_hash_once_the_key_is_known():
    _, market = started({"ana": 2, "bo": 1})
    market.end(2000, "a test")
    market.settle(2000)
    lines = market.chain.take().lines
    forged = list(lines)
    at = next(number for number, line in enumerate(lines) if b'"started"' in line)
    entry = json.loads(lines[at])
    forged[at] = json.dumps(entry | {"registered": "0" * 64}, separators=(",", ":")).encode()
    replay([(line, None) for line in lines], MarketDice(SECRET))
    with pytest.raises(ServeError, match=f"entry {at + 1}:"):
        replay([(line, None) for line in forged], MarketDice(SECRET))
