"""`cloneproof log` over the ledger of a live market: its rewards as rows, and everything that `log` says of them."""

import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from math import sqrt

import pytest
from scipy.stats import binomtest

from cloneproof.errors import CloneproofError
from cloneproof.serve.offline import collect_rows, read_rows
from cloneproof.serve.storage.postgres import PostgresStorage
from support.clocks import ticking
from support.command import run
from support.service import SEED, Desk, open_market, sqlite


def two_seasons(storage, place):
    """The first with a default, a late reward and one that never came. The rewards, and what is read while served."""
    means = {"ana-0": (0, 1), "ana-1": (0, 1), "bo-0": (1,), "cy-0": (0,), "cy-1": (0, 0, 1)}
    model = []

    def play(season, count):
        for number in range(count):
            got = desk.decide(f"{season}-{number}")
            value = float(means[got["arm"]][number % len(means[got["arm"]])])
            assert desk.reward(f"{season}-{number}", got["decision"], value) == "recorded"
            model.append((season, got["agent"], got["arm"], value))

    with Desk(storage) as desk:
        rounds = {"agent_rounds": 12, "arm_rounds": 6}
        open_market(
            desk, {"ana": 2, "bo": 1}, parameters=rounds, horizon=60, wait_seconds=10, wait_rounds=60, seed=SEED + 36
        )
        late, never = desk.decide("late"), desk.decide("never")
        desk.clock.now += 60_000
        play(1, 40)
        desk.post("agents", {"agent": "cy"})
        for arm in range(2):
            desk.post("agents/cy/arms", {"arm": f"cy-{arm}"})
        desk.post("settle", {"reason": "a test"})
        assert desk.post("seasons", {"season": 2}).status_code == 201
        desk.post("start")
        play(2, 50)
        assert desk.reward("late", late["decision"], 0.0) == "late"  # in season 2, of season 1
        model.append((1, late["agent"], late["arm"], 0.0))
        model.append((1, never["agent"], never["arm"], 0.0))  # its window is over
        return model, read_rows(place)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "market.db"
    return str(path), *two_seasons(sqlite(path), str(path))


@pytest.fixture(scope="module")
def address(server):
    """The same seasons in a PostgreSQL database."""
    made = server.new_database()
    two_seasons(PostgresStorage(made), made)
    return made


@pytest.mark.parametrize(("season", "decisions"), [(1, 42), (2, 50), (None, 92)])
def test_the_rows_are_what_was_sent(place, season, decisions):
    path, model, _ = place
    read = read_rows(path, "feed", season)
    rows = Counter(zip(*read.columns.values(), strict=True))
    assert rows == Counter(
        row for number, *row in map(tuple, model) for row in [tuple(row)] if season in (None, number)
    )
    assert f"{rows.total()} rewards of {decisions} decisions by h-etc-r" in read.words
    assert read.mechanism.parameters["agent_rounds"] == 12


def test_a_market_is_read_while_it_is_served_and_the_only_one_needs_no_name(place):
    assert place[2] == read_rows(place[0], "feed")


def test_a_tampered_ledger_is_not_read(place, tmp_path):
    path = tmp_path / "tampered.db"
    with closing(sqlite3.connect(place[0])) as old, old, closing(sqlite3.connect(path)) as new, new:
        old.backup(new)
        text = '"value":1.0'
        changed = new.execute("UPDATE ledger SET lines = replace(lines, ?, ?)", (text, '"value":0.5')).rowcount
        assert changed > 0
    with pytest.raises(CloneproofError, match="hash chain is broken"):
        read_rows(str(path))


def test_segments_and_places_of_a_ledger_are_those_of_the_log(tmp_path):
    dice, pages, segments = random.Random(5), 60, {"phone": 0.5, "desk": 0.5}
    with Desk(sqlite(tmp_path / "market.db")) as desk:
        terms = {"mechanism": "reservoir", "parameters": {"draws": 3, "rounds": 4}, "horizon": 600}
        open_market(desk, {"ana": 1, "bo": 1, "cy": 2}, positions=[1.0, 0.5], segments=segments, **terms)
        for number in range(pages):
            where = {"segment": dice.choice(sorted(segments))}
            for one in desk.post("slates", {"request_id": f"{number}"} | where).json()["decisions"]:
                value = float(dice.random() < 0.8 / one["place"])
                event = {"event_id": f"{one['decision']}", "request_id": f"{number}", "decision": one["decision"]}
                assert desk.post("rewards", event | {"value": value}).json()["result"] == "recorded"
    done = run("log", tmp_path / "market.db", "--statistics", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [each["views"] for each in found["attention"]] == [pages, pages]
    assert set(found["segments"]) == set(segments)


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """A month of pages whose shop reports clicks only, a third of them late: its file, and the rate of each item."""
    path, dice, rates = tmp_path_factory.mktemp("month") / "market.db", random.Random(11), {}
    attention, late = [1.0, 0.6, 0.4], []
    with Desk(sqlite(path)) as desk:
        terms = {"mechanism": "reservoir", "parameters": {"draws": 4, "rounds": 60}, "horizon": 4000}
        open_market(desk, {"ana": 2, "bo": 1, "cy": 2, "di": 1}, positions=attention, wait_rounds=200, **terms)
        for batch in range(40):
            items = [{"request_id": f"{batch}-{number}"} for number in range(100)]
            pages = desk.post("slates/batch", {"items": items}).json()["results"]
            clicks = []
            for one in (one for page in pages for one in page["decisions"]):
                rate = rates.setdefault(one["arm"], dice.uniform(0.02, 0.3))
                if dice.random() < rate * attention[one["place"] - 1]:
                    event = {key: one[key] for key in ("decision", "request_id")}
                    click = event | {"event_id": f"{one['decision']}", "value": 1.0}
                    (late if dice.random() < 0.3 else clicks).append((batch, click))
            due = [click for _, click in clicks] + [click for at, click in late if at == batch - 3]
            statuses = [one["status"] for one in desk.post("rewards/batch", {"items": due}).json()["results"]]
            assert set(statuses) == {200}
    return str(path), attention, rates


def test_a_month_of_clicks_has_the_rates_that_it_was_made_with(month):
    """Silence until a window is over is a zero; what is still open is left out, or late clicks would look like all."""
    path, attention, rates = month
    read = read_rows(path)
    columns = read.columns
    shown, clicked = Counter(zip(columns["arm"], columns["position"], strict=True)), Counter()
    for arm, place, value in zip(columns["arm"], columns["position"], columns["reward"], strict=True):
        clicked[arm, place] += value
    assert 4000 * 3 > shown.total() > 3700 * 3  # but for the windows that run
    tests = len(shown)
    assert tests >= 12
    for (arm, place), views in shown.items():
        rate = rates[arm] * attention[int(place) - 1]
        assert binomtest(int(clicked[arm, place]), views, rate).pvalue > 1e-6 / tests
    assert "of them are the default, as none came in time; " in read.words
    assert f"; {12_000 - shown.total():,} decisions that await a reward are left out" in read.words
    found = statistics(path)
    assert sum(each["views"] for each in found["attention"]) == shown.total()
    for one in found["arms"]:  # whose rounds are views in the first place, or as many elsewhere as are worth it
        spread = 5.5 * sqrt(rates[one["arm"]] / one["rounds"]) + 0.1 * rates[one["arm"]]  # as the attention is fitted
        assert abs(one["mean"] - rates[one["arm"]]) < spread


def test_decisions_that_were_open_at_a_settlement_are_told_apart(tmp_path):
    path = tmp_path / "market.db"
    with Desk(sqlite(path)) as desk:
        open_market(desk, {"ana": 1, "bo": 1}, wait_rounds=4)
        made = desk.decide_batch(f"{number}" for number in range(10))
        desk.reward("click", made[9]["decision"])
        desk.post("settle", {"reason": "a test"})
        assert desk.reward("late", made[0]["decision"]) == desk.reward("later", made[8]["decision"]) == "late"
    read = read_rows(str(path))
    assert Counter(read.columns["reward"]) == {0.0: 5, 1.0: 3}
    assert read.words.endswith(
        "8 rewards of 10 decisions by h-etc-r; 5 of them are the default, as none came in time; 2 decisions that did "
        "when their season was settled are left out"
    )


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Four agents of two items, and mallory, who registered one item six times."""
    path = tmp_path_factory.mktemp("planted") / "market.db"
    dice = random.Random(3)
    arms = {f"agent{number}": 2 for number in range(4)} | {"mallory": 6}
    means = {f"{agent}-{arm}": dice.uniform(0.1, 0.9) for agent, count in arms.items() for arm in range(count)}
    means |= {f"mallory-{arm}": 0.437 for arm in range(6)}
    with Desk(sqlite(path)) as desk:
        terms = {"mechanism": "reservoir", "parameters": {"draws": 16, "rounds": 12}, "horizon": 2000}
        open_market(desk, arms, **terms)
        for start in range(0, 1500, 500):
            items = [
                {"event_id": f"{made['decision']}", "decision": made["decision"], "value": means[made["arm"]] + noise}
                for made in desk.decide_batch(f"{number}" for number in range(start, start + 500))
                for noise in [dice.uniform(-0.02, 0.02)]
            ]
            assert desk.post("rewards/batch", {"items": items}).status_code == 200
    return path


def test_what_a_served_market_runs_is_judged(planted, tmp_path):
    """The terms of the market say what is judged, over how many rounds and at which share."""
    target = tmp_path / "feed.html"
    with ticking(0.001):
        done = run("log", planted, "--market", "feed", "--seconds", "2", "--json", "--html", target)
    data = json.loads(done.stdout)
    assert (data["policy"], data["horizon"], data["share"]) == ("reservoir", 2000, 0.4)
    assert (data["verdict"]["verdict"], done.returncode) == ("clone-proof", 3 if data["left"] else 0)
    assert data["notes"][0].startswith("all seasons of feed: 1,500 rewards of 1,500 decisions by reservoir")
    assert data["log"]["columns"] == {"agent": "agent", "arm": "arm", "reward": "reward", "same": []}
    page = target.read_text()
    assert all(words in page for words in ("What copies could earn under reservoir", "market.db", "1,500 rewards"))


def test_reading_a_ledger_counts_for_the_seconds(planted):
    done = run("log", planted, "--seconds", "1e-6")
    assert (done.returncode, done.stdout) == (3, "")
    assert "expected to read the ledger within 1e-06 s, got its first 1,024 entries; give more" in done.stderr


def statistics(place, *more):
    done = run("log", place, "--statistics", "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_on_postgres_it_is_the_same_log(place, address):
    found = statistics(address)
    assert found == statistics(place[0])
    assert found != statistics(address, "--season", "1") == statistics(place[0], "--season", "1")


def test_on_postgres_it_reads_one_moment(address, monkeypatch):
    """Rewards that arrive while it reads are not in it."""
    before = read_rows(address)

    def while_they_write(entries, season):
        with Desk(PostgresStorage(address)) as desk:
            for number in range(5):
                name = f"meanwhile-{season}-{number}"
                desk.reward(name, desk.decide(name)["decision"], 1.0)
        return collect_rows(entries, season)

    monkeypatch.setattr("cloneproof.serve.offline.collect_rows", while_they_write)
    assert read_rows(address) == before
    monkeypatch.undo()
    assert len(read_rows(address).columns["reward"]) == len(before.columns["reward"]) + 5


def test_rewards_outside_the_range_need_one(tmp_path):
    """As in any log: refused, or moved to [0, 1] by the declared range."""
    path = tmp_path / "gaussian.db"
    with Desk(sqlite(path)) as desk:
        gaussian = {"rewards": {"family": "gaussian", "sd": 1.0}, "default_reward": -4.0}
        open_market(desk, {"ana": 2, "bo": 1}, mechanism="ucb1", parameters={}, **gaussian)
        desk.play("abcd", lambda number: 1.5 - number)
    refused = run("log", path)
    assert (refused.returncode, "declare --reward-range LOW:HIGH" in refused.stderr) == (2, True)
    assert sum(arm["rounds"] for arm in statistics(path, "--reward-range", "-4:4")["arms"]) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ADDRESS", "--market", "fed"], "did you mean 'feed'"),
        (["ADDRESS", "--season", "7"], "season from 1 to 2"),
        (["NOTHING"], "cannot open postgresql://"),
        (["DB", "--set", "rounds=3"], "expected --set with the name of a mechanism"),
        (["DB", "--share", "0"], "share"),
    ],
)
def test_wrong_arguments_are_one_sentence_without_a_password(place, address, arguments, words):
    secret = address.replace("postgres@", "postgres:secret@")
    places = {"ADDRESS": secret, "NOTHING": secret.replace("/market", "/nothing"), "DB": place[0]}
    done = run("log", *[places.get(one, one) for one in arguments])
    assert done.returncode == 2
    assert words in done.stderr
    assert "secret" not in done.stderr
