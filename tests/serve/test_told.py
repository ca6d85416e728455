"""What a replay says of seasons that were ended early, and of one whose dice are not published yet."""

import json
import sqlite3
from contextlib import closing

from cloneproof.serve.market.dice import MarketDice, make_secret
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.terms import MarketSpec, complete
from cloneproof.serve.offline import replay_market
from support.command import run
from support.service import SEED, Desk, lines_alone, open_market, sqlite, with_arms

ARMS = {"ana": 3, "bo": 1, "cy": 2}
PARAMETERS = {"reservoir": {"rounds": 3, "draws": 2, "threshold": 2}, "reservoir-index": {"draws": 3, "constant": 0.5}}


def terms(name):
    ends = "at-random" if name == "reservoir-index" else "at-horizon"
    fields = {"mechanism": name, "parameters": PARAMETERS[name], "horizon": 60, "wait_rounds": 5, "ends": ends}
    return complete(MarketSpec(market="feed", **fields))


def told_lines(market):
    return market.chain.take().lines


def replay_alone(lines):
    """By somebody who has the lines alone."""
    return replay_market("feed", lines_alone(lines))


def test_the_command_says_what_is_not_checked(tmp_path):
    path = tmp_path / "market.db"
    with Desk(sqlite(path)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        desk.play(["r1", "r2"])
    done = run("replay", path, "--json")
    assert (done.returncode, json.loads(done.stdout)[0]["unchecked"]) == (0, [])  # the platform has the dice
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE markets SET secret = NULL")
        connection.execute("DELETE FROM snapshots")
    done = run("replay", path, "--json")
    (found,) = json.loads(done.stdout)
    assert (done.returncode, found["fits"], len(found["unchecked"])) == (3, True, 1)
    assert "not checked: season 1, from entry" in run("replay", path).stdout
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE ledger SET lines = replace(lines, '\"value\":1.0', '\"value\":0.5')")
    done = run("replay", path)
    assert (done.returncode, "the hash chain is broken here" in done.stdout) == (1, True)


def ended(reason, rounds=7):
    """A season that could have 60 rounds, settled after a few."""
    market = with_arms(LiveMarket.open(terms("reservoir"), 0, MarketDice(make_secret(SEED))), ARMS)
    market.start(1000)
    market.decide_in_windows([(f"r{number}", None) for number in range(rounds)], 2000)
    if reason is not None:
        market.end(2000, reason)
    market.settle(2000)
    return told_lines(market)


def test_a_season_that_was_cut_short_is_told_with_its_reason_or_refused():
    silent = replay_alone(ended(None))
    assert (silent.fits, silent.exit_code) == (False, 1)
    assert "season 1 is settled after 7 of 60 rounds, and no entry says why" in silent.statement
    said = replay_alone(ended("the shop closes"))
    assert (said.fits, said.exit_code) == (True, 0)
    assert "season 1 was ended early, after 7 of 60 rounds: 'the shop closes'" in said.statement
    assert said.seasons == [{"season": 1, "rounds": 7, "last": 60, "reason": "the shop closes"}]
    whole = replay_alone(ended(None, rounds=60))
    assert (whole.exit_code, whole.seasons[0]["reason"], "early" in whole.statement) == (0, None, False)


def test_a_season_that_ends_at_random_is_compared_with_its_draw():
    """As the platform would cut it when a friend does not lead: after fewer rounds than its dice drew."""
    market = with_arms(LiveMarket.open(terms("reservoir-index"), 0, MarketDice(make_secret(SEED))), ARMS)
    market.start(1000)
    drawn = market.session.last
    assert drawn != market.spec.horizon
    market.decide_in_windows([(f"r{number}", None) for number in range(drawn - 1)], 2000)
    market.settle(2000)
    found = replay_alone(told_lines(market))
    assert f"is settled after {drawn - 1} of {drawn} rounds" in found.statement
    assert found.exit_code == 1


def test_the_service_asks_for_a_reason_and_shows_it_to_agents():
    with Desk() as desk:
        open_market(desk, {"ana": 2, "bo": 1}, horizon=10, wait_rounds=10)
        agent = desk.make_key("agent", "bo")
        desk.play(["r1", "r2"])
        head = desk.get("progress").json()["head"]
        refused = desk.post("settle")
        assert (refused.status_code, refused.json()["error"]) == (409, "not_over")
        assert desk.get("progress").json()["head"] == head
        for bad in ({"reason": ""}, {"reason": 3}, {"reasons": "x"}):
            assert desk.post("settle", bad).status_code == 422
        assert desk.post("settle", {"reason": "the shop closes"}).status_code == 200
        assert desk.post("settle", {"reason": "another"}).json() == desk.post("settle").json()
        for key in (None, agent):
            assert [one["ended_early"] for one in desk.get("", key=key).json()["dice"]] == ["the shop closes"]
        kinds = [line["entry"]["kind"] for line in desk.get("ledger?limit=1000").json()["lines"]]
        assert kinds.count("ended") == 1
        told = [line["entry"] for line in desk.get("ledger", key=agent).json()["lines"]]
        assert {"kind": "ended", "season": 1, "reason": "the shop closes"}.items() <= told[-1].items()
        desk.post("seasons", {"season": 2})
        desk.post("start")
        desk.play(f"s{number}" for number in range(10))
        assert desk.post("settle", {"reason": "it is over"}).status_code == 200  # which needs none
        assert [one["ended_early"] for one in desk.get("").json()["dice"]] == ["the shop closes", None]
