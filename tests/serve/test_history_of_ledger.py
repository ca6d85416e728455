"""A season read from its ledger, and `cloneproof audit --from-ledger` over it."""

import json
import sqlite3
from contextlib import closing

import pytest

import cloneproof as cp
from cloneproof.errors import CloneproofError
from cloneproof.serve.offline import collect_season, read_season
from cloneproof.serve.storage.postgres import PostgresStorage
from support.command import run
from support.service import SEED, Desk, open_market, sqlite


def two_seasons(storage):
    """The first with a default, a late reward and one that never came; ana-1 copies ana-0. The rewards by arm."""
    means = {"ana-0": (0, 1), "ana-1": (0, 1), "bo-0": (1,), "cy-0": (0,), "cy-1": (0, 0, 1)}
    with Desk(storage) as desk:
        rounds = {"agent_rounds": 12, "arm_rounds": 6}  # enough rewards of several arms to support a prior
        terms = {"horizon": 60, "wait_seconds": 10, "seed": SEED + 36}  # in which copies pay
        open_market(desk, {"ana": 2, "bo": 1}, parameters=rounds, **terms)
        late, never = desk.decide("late")["decision"], desk.decide("never")["decision"]
        desk.clock.now += 60_000
        model = {}
        for number in range(40):
            got = desk.decide(f"one-{number}")
            value = float(means[got["arm"]][number % len(means[got["arm"]])])
            assert desk.reward(f"one-{number}", got["decision"], value) == "recorded"
            model.setdefault((1, got["arm"]), []).append(value)
        desk.post("agents", {"agent": "cy"})
        for arm in range(2):
            desk.post("agents/cy/arms", {"arm": f"cy-{arm}"})
        desk.post("settle", {"reason": "a test"})
        assert desk.post("seasons", {"season": 2}).status_code == 201
        desk.post("start")
        for number in range(50):
            got = desk.decide(f"two-{number}")
            value = float(means[got["arm"]][number % len(means[got["arm"]])])
            desk.reward(f"two-{number}", got["decision"], value)
            model.setdefault((2, got["arm"]), []).append(value)
        lines = desk.get("ledger?limit=10").json()["lines"]
        arm = next(one["entry"]["arm"] for one in lines if one["entry"].get("id") == late)
        assert desk.reward("late", late, 0.0) == "late"  # in season 2, of season 1
        model[1, arm].append(0.0)
        assert never == late + 1
    return model


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "market.db"
    return str(path), two_seasons(sqlite(path))


@pytest.fixture(scope="module")
def address(server):
    """The same seasons in a PostgreSQL database."""
    made = server.new_database()
    two_seasons(PostgresStorage(made))
    return made


@pytest.mark.parametrize("season", [1, 2])
def test_a_season_is_what_was_sent(place, season):
    path, model = place
    read = read_season(path, "feed", season)
    assert (read.season, read.state) == (season, "settled" if season == 1 else "running")
    assert (read.decisions, read.missing) == ((42, 1) if season == 1 else (50, 0))
    arms = {"ana-0", "ana-1", "bo-0"} | ({"cy-0", "cy-1"} if season == 2 else set())
    assert {arm.arm for arm in read.arms} == arms
    for arm in read.arms:
        values = model.get((season, arm.arm), [])
        assert arm.rewards == len(values)
        assert arm.mean == pytest.approx(sum(values) / max(1, len(values)), abs=1e-15)


def test_the_last_season_and_the_only_market_need_no_name(place):
    assert read_season(place[0]) == read_season(place[0], "feed", 2)


def test_a_tampered_ledger_is_not_audited(place, tmp_path):
    path = tmp_path / "tampered.db"
    with closing(sqlite3.connect(place[0])) as old, old, closing(sqlite3.connect(path)) as new, new:
        old.backup(new)
        text = '"value":1.0'
        changed = new.execute("UPDATE ledger SET lines = replace(lines, ?, ?)", (text, '"value":0.5')).rowcount
        assert changed > 0
    with pytest.raises(CloneproofError, match="hash chain is broken"):
        read_season(str(path))


def test_the_command_line(place):
    asked = ["audit", "--from-ledger", place[0], "--season", 2, "--max-copies", 2, "--copy-odds", 0.5]
    done, table = run(*asked, "--json"), run(*asked)
    data = json.loads(done.stdout)
    assert {0: "clone-proof", 1: "exploitable", 3: "undecided"}[done.returncode] == data["audit"]["verdict"]
    assert (data["market"], data["season"], data["rewards"], data["copy_odds"]) == ("feed", 2, 50, 0.5)
    assert {tuple(pair["arms"]) for pair in data["pairs"]} == {("ana-0", "ana-1"), ("cy-0", "cy-1")}
    assert set(data["best"]) == set(data["priors"]) == {"ana", "bo", "cy"}
    assert "independent" in data["assumed"]
    assert table.returncode == done.returncode
    assert all(
        words in table.stdout for words in ("Fitted priors", "ana-0 and ana-1", "Prior odds of a copy: 0.5", "Scope")
    )


@pytest.mark.parametrize(
    ("asked", "verdict", "said"),
    [
        (["--opponents", "any"], "exploitable", "is about the fitted market"),
        (["--opponents", "any", "--season", "1", "--agent", "bo"], "clone-proof", "is about the fitted market"),
        ([], "exploitable", "is about the fitted market"),
        (["--agent", "bo"], None, "audit with opponents='any'"),
    ],
)
def test_a_certificate_of_the_fitted_market(place, asked, verdict, said, tmp_path):
    """Where the audit's own verdict has one; it passes the independent checker."""
    target = tmp_path / "certificate.json"
    done = run("audit", "--from-ledger", place[0], "--max-copies", 2, "--json", "--certificate", target, *asked)
    assert said in done.stderr
    assert done.returncode == {"clone-proof": 0, "exploitable": 1, "undecided": 3, None: 2}[verdict]
    assert target.exists() == (verdict in ("clone-proof", "exploitable"))
    if target.exists():
        found = cp.verify(target)
        assert (found.accepted, json.loads(target.read_text())["verdict"]) == (True, verdict)


def test_one_reward_decides_nothing(tmp_path):
    """It supports no prior, whatever the verdict on the fitted market is; so there is nothing to certify either."""
    path, target = tmp_path / "market.db", tmp_path / "certificate.json"
    with Desk(sqlite(path)) as desk:
        open_market(desk, {"ana": 2, "bo": 1}, horizon=60)
        assert desk.reward("one", desk.decide("one")["decision"], 1.0) == "recorded"
    done = run("audit", "--from-ledger", path, "--max-copies", 2, "--json", "--certificate", target)
    assert done.returncode == 3
    data = json.loads(done.stdout)
    assert (data["rewards"], data["audit"]["verdict"]) == (1, "undecided")
    assert "the priors are not supported: 0 of at least 2 originals" in data["audit"]["scope"]
    assert "is not written: 'undecided' claims nothing" in done.stderr
    assert not target.exists()


def test_a_page_of_the_season(place, tmp_path):
    target = tmp_path / "season.html"
    asked = ["audit", "--from-ledger", place[0], "--max-copies", 2, "--html"]
    assert run(*asked, target).returncode == 1
    page = target.read_text()
    assert all(words in page for words in ("<b>season 2 of feed</b>", "Which arms may be copies", "ana-1: "))
    refused = run(*asked, tmp_path / "missing" / "season.html")
    assert refused.returncode == 2
    assert "expected a folder to write" in refused.stderr


def audited(place, *more):
    """The audit as data, without the seconds that it took."""
    done = run("audit", "--from-ledger", place, "--max-copies", 2, "--json", *more)
    data = json.loads(done.stdout)
    del data["audit"]["seconds"]
    return done.returncode, data


def test_on_postgres_it_is_the_same_audit(place, address):
    for season in (1, 2):
        assert read_season(address, "feed", season) == read_season(place[0], "feed", season)
    found = audited(address)
    assert found == audited(place[0])
    assert found != audited(place[0], "--season", "1")


def test_on_postgres_it_reads_one_moment(address, monkeypatch):
    """Rewards that arrive while it reads are not in it."""
    before = read_season(address)

    def while_they_write(entries, season):
        with Desk(PostgresStorage(address)) as desk:
            for number in range(5):
                name = f"meanwhile-{season}-{number}"
                desk.reward(name, desk.decide(name)["decision"], 1.0)
        return collect_season(entries, season)

    monkeypatch.setattr("cloneproof.serve.offline.collect_season", while_they_write)
    assert read_season(address, season=2) == before
    monkeypatch.undo()
    after = read_season(address)
    assert sum(arm.rewards for arm in after.arms) == sum(arm.rewards for arm in before.arms) + 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from-ledger", "ADDRESS", "--market", "fed"], "did you mean 'feed'"),
        (["--from-ledger", "ADDRESS", "--season", "7"], "season from 1 to 2"),
        (["--from-ledger", "NOTHING"], "cannot open postgresql://"),
        (["--from-ledger", "DB", "--market", "fed"], "did you mean 'feed'"),
        (["--from-ledger", "DB", "--season", "3"], "season from 1 to 2"),
        (["--from-ledger", "DB", "--season", "0"], "season from 1 to 2"),
        (["--from-ledger", "DB", "-m", "ucb1"], "the ledger has the market"),
        (["--from-ledger", "none.db"], "is no file"),
        (["--from-ledger", "DB", "--copy-odds", "-1"], "prior odds of a copy"),
        (["--from-ledger", "DB", "--copy-odds", "nan"], "prior odds of a copy"),
        ([], "or --from-ledger DB"),
    ],
)
def test_wrong_arguments_are_one_sentence_without_a_password(place, arguments, words, request):
    places = {"DB": place[0]}
    if {"ADDRESS", "NOTHING"} & {*arguments}:
        secret = request.getfixturevalue("address").replace("postgres@", "postgres:secret@")
        places |= {"ADDRESS": secret, "NOTHING": secret.replace("/market", "/nothing")}
    done = run("audit", *[places.get(one, one) for one in arguments])
    assert done.returncode == 2
    assert words in done.stderr
    assert "secret" not in done.stderr
