"""The chain, the replay and what it catches, and what of the ledger is told to whom."""

import json
import re
import sqlite3
from contextlib import closing
from hashlib import sha256

import msgspec
import pytest

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.http import handlers
from cloneproof.serve.http.handlers import agent_key, open_position, seal_position
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.dice import MarketDice
from cloneproof.serve.market.entries import GENESIS, chain_hashes
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.terms import complete
from cloneproof.serve.messages import LedgerPage
from cloneproof.serve.offline import back_up, replay_all, replay_market
from cloneproof.serve.writer.markets import ServedMarkets
from support.command import run
from support.service import SECRET, SEED, Desk, declared, lines_alone, open_market, spec, sqlite


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A file with a season of everything: retries, late rewards, defaults, a second season."""
    path = tmp_path_factory.mktemp("ledger") / "market.db"
    with Desk(sqlite(path, interval=100)) as desk:
        open_market(desk, {"ana": 2, "bo": 1}, wait_seconds=10.0)
        for number in range(120):
            made = desk.decide(f"r{number}")
            if number % 7:
                assert desk.reward(f"e{number}", made["decision"], (number % 11) / 10) == "recorded"
            desk.clock.now += 500
        assert desk.reward("late", 1, 1.0) == "late"
        desk.post("settle", {"reason": "a test"})
        desk.post("seasons", {"season": 2})
        desk.post("start")
        desk.post("decisions", {"request_id": "second"})
        balances = desk.get("balances").json()["balances"]
    return path, balances


def copied(path, tmp_path):
    target = tmp_path / "copy.db"
    target.write_bytes(path.read_bytes())
    return target


def test_the_replay_derives_every_balance_again(played):
    path, balances = played
    (found,) = replay_all(str(path))
    assert found.fits
    assert found.balances == balances
    assert sum(balances.values()) > 0


def blocks(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute("SELECT place, lines FROM ledger ORDER BY place").fetchall()


def rewritten(path, lines):
    """Somebody who can write the file and knows the chain rewrites all of it, hashes too."""
    hash_now = GENESIS
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM ledger")
        for number, line in enumerate(lines, 1):
            (after,) = chain_hashes(hash_now, [line])
            row = ((1 << 40) + number, 1, hash_now, after, line.decode())
            connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", row)
            hash_now = after


def all_lines(path):
    return [line.encode() for _, text in blocks(path) for line in text.split("\n")]


@pytest.mark.parametrize("entry", [1, 5, 40, 150])
def test_a_changed_letter_breaks_the_chain_there(played, tmp_path, entry):
    path = copied(played[0], tmp_path)
    seen = 0
    for place, text in blocks(path):
        lines = text.split("\n")
        if seen + len(lines) >= entry:
            at = entry - seen - 1
            lines[at] = lines[at].replace('"at":1', '"at":2', 1)
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE ledger SET lines = ? WHERE place = ?", ("\n".join(lines), place))
            break
        seen += len(lines)
    (found,) = replay_all(str(path))
    assert not found.fits
    assert found.entries < entry + 250


def test_the_command_line(played, tmp_path):
    done = run("replay", played[0], "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)[0]["balances"] == played[1]
    path = copied(played[0], tmp_path)
    rewritten(path, all_lines(path)[:50] + all_lines(path)[51:])
    done = run("replay", path)
    assert (done.returncode, done.stdout.startswith("feed: entry 51:")) == (1, True)
    for bad in ((tmp_path / "none.db",), (played[0], "--market", "fed"), (__file__,)):
        done = run("replay", *bad)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert done.stderr.startswith("error: ")


FEED = "/v1/markets/feed"


def pages(desk, key, limit=5):
    """All that an agent gets of the ledger, page by page."""
    after, texts = "0", []
    while after is not None:
        reply = desk.get(f"ledger?after={after}&limit={limit}", key=key)
        texts.append(reply.text)
        after = reply.json()["next"]
    return texts


def seen_by_ana(rivals_reward, rivals_rewards_come=True):
    """A trial of two agents in which only the rival's rewards differ; what ana's key shows, a line or 5 a page."""
    with Desk() as desk:
        open_market(desk, {"ana": 1, "bo": 1}, mechanism="etc", parameters={"arm_rounds": 100})
        key = desk.make_key("agent", "ana")
        for number in range(40):
            made = desk.decide(f"r{number}")
            mine = made["agent"] == "ana"
            if mine or rivals_rewards_come:
                desk.reward(f"e{number}", made["decision"], 1.0 if mine else rivals_reward)
        return [pages(desk, key, limit) for limit in (1, 5)]


def test_an_agents_pages_do_not_depend_on_what_others_earn():
    """Byte by byte: the hashes of the chain did, and whoever tried the few possible rewards found them."""
    shown = seen_by_ana(0.0)
    assert shown == seen_by_ana(1.0)
    fewer = seen_by_ana(0.0, rivals_rewards_come=False)  # but for the sealed positions, which none can read
    told, told_of_fewer = ([[json.loads(text)["lines"] for text in texts] for texts in each] for each in (shown, fewer))
    assert told == told_of_fewer

    by_line, by_five = ([line for page in of_limit for line in page] for of_limit in told)
    assert by_line == by_five
    lines = by_five
    assert {line["hash"] for line in lines} == {None}
    assert {line["entry"]["agent"] for line in lines} == {"ana"}
    assert all("n" not in line["entry"] for line in lines)
    decided = {line["entry"]["id"] for line in lines if line["entry"]["kind"] == "decision"}
    assert decided == {line["entry"]["id"] for line in lines if line["entry"]["kind"] == "reward"}
    assert len(decided) == 20
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in decided)
    assert [line["entry"]["kind"] for line in lines][:2] == ["agent", "arm"]


def test_a_position_is_read_back_only_with_its_key():
    key, other = agent_key(b"s" * 32, "ana"), agent_key(b"s" * 32, "bo")
    for n in (1, 1000, 1 << 40):
        assert open_position(key, seal_position(key, n)) == n
    with Desk() as desk:
        open_market(desk, {"ana": 1, "bo": 1})
        mine = desk.make_key("agent", "ana")
        for wrong in ("1", "abc", "0" * 32, "0" * 40, seal_position(other, 3), "zz" * 16):
            reply = desk.get(f"ledger?after={wrong}", key=mine)
            assert (reply.status_code, reply.json()["error"]) == (422, "invalid")


def played_seasons(desk):
    """Two settled seasons and a third that runs."""
    open_market(desk, {"ana": 1, "bo": 2})
    for season in (1, 2, 3):
        if season > 1:
            desk.post("seasons", {"season": season})
            desk.post("start")
        for number in range(30):
            made = desk.decide(f"{season}-{number}")
            desk.reward(f"{season}-{number}", made["decision"], float(number % 3 == 0))
        if season < 3:
            desk.post("settle", {"reason": "a test"})


def lines_told(desk, key):
    reply = desk.get("ledger?limit=1000", key=key)
    page = msgspec.json.decode(reply.content, type=LedgerPage)
    return [(bytes(line.entry), bytes.fromhex(line.hash)) for line in page.lines]


def test_the_keys_are_committed_to_before_the_first_season_and_published_after_each(tmp_path):
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        auditor = desk.make_key("auditor")
        played_seasons(desk)
        lines = [line for line, _ in lines_told(desk, auditor)]
        told = [json.loads(line) for line in lines]
        for key in (auditor, desk.make_key("agent", "ana")):  # everybody can check
            dice = desk.get("", key=key).json()["dice"]
            assert [one["commitment"] for one in dice] == [told[0]["commitment"], dice[0]["key"], dice[1]["key"]]
            assert [sha256(bytes.fromhex(one["key"])).hexdigest() == one["commitment"] for one in dice[:2]] == [
                True
            ] * 2
            assert dice[2]["key"] is None
            assert [one["registered"] for one in dice] == [one["registered"] for one in told if "registered" in one]
        for secret in (str(SEED), desk.storage.markets()[0].secret.hex()):
            assert secret not in b"\n".join(lines).decode()
    found = replay_market("feed", lines_alone(lines))  # by an auditor, who has the lines alone
    assert (found.fits, found.entries) == (True, len(lines))
    (unchecked,) = found.unchecked
    assert unchecked.startswith("season 3, from entry")
    assert unchecked in found.statement
    (whole,) = replay_all(str(tmp_path / "a.db"))
    assert (whole.fits, whole.entries, whole.head) == (True, len(lines), found.head)


@pytest.fixture(scope="module")
def three_seasons():
    with Desk() as desk:
        played_seasons(desk)
        return [json.loads(line) for line, _ in lines_told(desk, desk.key)]


def encoded(entries):
    return [json.dumps(entry, separators=(",", ":")).encode() for entry in entries]


def replay_of(entries):
    return replay_market("feed", lines_alone(encoded(entries)))


def given_to_a_friend(entry):
    """The forger's season: every decision is the friend's, and pays 999 units a reward."""
    if entry["kind"] in ("decision", "reward"):
        entry = entry | {"agent": "bo", "arm": "bo-0"}
    return entry | {"paid": 999_000_000} if entry["kind"] == "reward" else entry


@pytest.mark.parametrize("settled", ["kept", "without its key", "left out"])
def test_a_forged_season_is_found_also_without_the_dice(three_seasons, settled, tmp_path):
    """Planted: once its key is published; until then the answer says what could not be checked."""
    end = next(at for at, one in enumerate(three_seasons) if one["kind"] == "settled")
    forged, last = [given_to_a_friend(one) for one in three_seasons[:end]], three_seasons[end]
    if settled == "without its key":
        last = {name: value for name, value in last.items() if name != "key"}
    found = replay_of(forged + [last] * (settled != "left out"))
    assert found.exit_code == (3 if settled == "left out" else 1)
    paid = [one | {"paid": round(one["value"] * 400_000)} if one["kind"] == "reward" else one for one in forged]
    found = replay_of(paid + [last] * (settled != "left out"))
    assert found.exit_code == (3 if settled == "left out" else 1)
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        open_market(desk, {"ana": 1, "bo": 2})
    rewritten(tmp_path / "a.db", encoded(forged + [last] * (settled != "left out")))
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE markets SET secret = NULL")
        connection.execute("DELETE FROM snapshots")
    assert run("replay", tmp_path / "a.db").returncode == found.exit_code


AS_TOLD = {
    "a number left out": ("decision", {"n": 1000}),
    "a request told twice": ("decision", {"request": "1-0"}),
    "an event told twice": ("reward", {"event": "1-0"}),
}


@pytest.mark.parametrize("what", AS_TOLD)
def test_entries_of_a_season_that_runs_are_numbered_and_told_once(three_seasons, what):
    kind, change = AS_TOLD[what]
    at = next(at for at, one in enumerate(three_seasons) if one["kind"] == kind and one["id"] > 65)
    entries = [*three_seasons]
    assert replay_of(entries).fits
    entries[at] = entries[at] | change
    found = replay_of(entries)
    assert (found.fits, found.entries) == (False, at)


def test_the_dice_follow_from_who_registered_and_from_the_beacon():
    """One secret: another agent, another order of arms or another value of the beacon, and other decisions are made."""

    def decisions(arms, beacon=None):
        market = declared(beacon=beacon and "drand, the first round after the start")
        for agent, names in arms.items():
            market.register_agent(agent, 1000)
            for arm in names:
                market.register_arm(agent, arm, 1000)
        with pytest.raises(Refused, match="dice must not be anybody's choice"):
            market.start(1000, None if beacon else "of my choice")
        market.start(1000, beacon)
        made = [market.decide(f"{number}", 1000) for number in range(12)]
        assert replay_market("feed", lines_alone(market.chain.take().lines)).fits
        return tuple((list(arms).index(one.agent), arms[one.agent].index(one.arm)) for one in made)

    arms = {"ana": ["a", "b", "c"], "bo": ["d", "e"], "cy": ["f"]}
    drawn = [decisions(arms), decisions(arms | {"bo": ["e", "d"]}), decisions(arms | {"cy": ["g"]}),
             decisions(arms, "17"), decisions(arms, "18")]  # fmt: skip
    assert len(set(drawn)) == 5
    assert decisions(arms) == drawn[0]


def test_a_ledgers_first_line_has_the_time_of_day(tmp_path):
    """Not that of the steady clock, which counts from the start of the machine: the commitment would be of 1970."""
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        writer = desk.app._service.writer
        writer._clock, writer._wall = lambda: 5, lambda: 1_700_000_000_000
        open_market(desk, {"ana": 1})
        times = {json.loads(line)["at"] for line, _ in lines_told(desk, desk.key)}
    assert times == {1_700_000_000_000}
    assert replay_all(str(tmp_path / "a.db"))[0].fits


def test_a_restored_service_takes_no_reward_of_a_decision_that_is_lost(tmp_path):
    """After a backup 10 more decisions; the restored service gives their numbers to other requests."""
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        open_market(desk, {"ana": 1, "bo": 1}, wait_seconds=10.0)
        desk.post("decisions", {"request_id": "before"})
        revoked = desk.make_key("auditor")
        back_up(str(tmp_path / "a.db"), str(tmp_path / "copy.db"))
        assert desk.call("DELETE", f"/v1/keys/{revoked.split('_')[1]}").status_code == 200
        names = [{"request_id": f"lost-{n}"} for n in range(10)]
        lost = desk.post("decisions/batch", {"items": names}).json()["results"]
        old = desk.key
    with Desk(sqlite(tmp_path / "copy.db")) as desk:
        assert [desk.get("", key=key).status_code for key in (revoked, old)] == [401, 401]
        new = [{"request_id": f"new-{n}"} for n in range(20)]
        made = desk.post("decisions/batch", {"items": new}).json()["results"]
        assert {one["decision"] for one in lost} <= {one["decision"] for one in made}

        def rewards(of, label):
            items = [{"event_id": f"{label}-{one['decision']}", "decision": one["decision"], "value": 1.0,
                      "request_id": one["request_id"]} for one in of]  # fmt: skip
            replies = desk.post("rewards/batch", {"items": items}).json()["results"]
            return {one.get("error") or one["result"] for one in replies}

        assert rewards(lost, "lost") == {"other_request"}
        assert rewards(made[:15], "new") == {"recorded"}
        desk.clock.now += 20_000
        assert rewards([one | {"request_id": "lost-0"} for one in made[15:]], "lost") == {"other_request"}
        assert rewards(made[15:], "new") == {"late"}


def ledger_of(tmp_path, others):
    """A file with two registrations of an agent, and so many lines about another one between them."""
    path = tmp_path / f"{others}.db"
    market = LiveMarket.open(complete(spec(seed=None, max_arms=5000)), 0, MarketDice(SECRET))
    for agent in ("ana", "bo"):
        market.register_agent(agent, 1000)
    market.register_arm("ana", "first", 1000)
    for number in range(others):
        market.register_arm("bo", f"bo-{number}", 1000)
    market.register_arm("ana", "last", 1000)
    with closing(sqlite(path)) as storage:
        storage.commit([(1, "feed", market.chain.take()._replace(secret=SECRET))])
    return path


@pytest.fixture(scope="module")
def two_ledgers(tmp_path_factory):
    """Files of an agent's two registrations, without others' lines between them and with many."""
    return [ledger_of(tmp_path_factory.mktemp("ledgers"), others) for others in (0, 2500)]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_an_agents_pages_do_not_count_others_lines(two_ledgers, monkeypatch, limit):
    """A page for each thousand lines did; now one for each 131,072 lines without any of the agent's."""
    shown = []
    for path in two_ledgers:
        with Desk(sqlite(path)) as desk:
            key = desk.make_key("agent", "ana")
            shown.append([json.loads(text)["lines"] for text in pages(desk, key, limit)])
            monkeypatch.setattr(handlers, "_SEARCHED", 700)  # of few lines: nothing is lost or told twice either
            shorter = [json.loads(text)["lines"] for text in pages(desk, key, limit)]
            monkeypatch.undo()
        assert [line["entry"].get("arm") for page in shown[-1] for line in page] == [None, "first", "last"]
        assert [line for page in shorter for line in page] == [line for page in shown[-1] for line in page]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize("secret", [bytes(32), None])
def test_a_secret_that_contradicts_the_commitment_is_refused_at_the_start(tmp_path, snapshot, secret):
    path = ledger_of(tmp_path, 3)
    with Desk(sqlite(path)) as desk:  # which makes a snapshot
        assert desk.get("").status_code == 200
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE markets SET secret = ?", (secret,))
        if not snapshot:
            connection.execute("DELETE FROM snapshots")
    with (
        closing(sqlite(path)) as storage,
        pytest.raises(ServeError, match="the secret that the ledger's first line commits"),
    ):
        ServedMarkets.recover(storage)
    done = run("serve", path, "--port", 0)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_a_ledger_under_another_name_is_refused(played, tmp_path):
    path = copied(played[0], tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE markets SET name = 'other'")
    (found,) = replay_all(str(path))
    assert (found.fits, found.exit_code) == (False, 1)
    assert "this is the ledger of market 'feed', not of 'other'" in found.statement


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gap": 1e-12}, "no service takes these terms: expected gap of at least"),
        ({"seed": SEED}, "the terms are not complete"),
        ({"parameters": {"agent_rounds": 6}}, "no service takes these terms"),
    ],
)
def test_terms_that_no_service_takes_are_refused(change, said):
    opening = ledger.Opened(1, 0, complete(spec(seed=None)), MarketDice(SECRET).key(0).hex(), ledger.FORMAT)
    assert replay_market("feed", lines_alone([ledger.encode(opening)])).fits
    told = msgspec.to_builtins(opening)
    told["spec"] |= change
    found = replay_market("feed", lines_alone(encoded([{"kind": "opened", **told}])))
    assert not found.fits
    assert said in found.statement


def test_names_that_no_service_takes_are_refused():
    market = LiveMarket.open(complete(spec(seed=None)), 0, MarketDice(SECRET))
    market.register_agent("ana\x1b[2J", 1000)
    found = replay_market("feed", lines_alone(market.chain.take().lines))
    assert (found.fits, found.statement.startswith("entry 2: not an entry of a ledger")) == (False, True)
