"""What a replay finds without the dice of a season, and what it says of seasons that were ended early."""

import json
import sqlite3
from contextlib import closing

import pytest

from cloneproof.mechanisms.online.levels import ticks
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.dice import MarketDice, make_secret
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.terms import MarketSpec, complete
from cloneproof.serve.offline import replay_market
from support.command import run
from support.service import SEED, Desk, lines_alone, open_market, sqlite, with_arms

ARMS = {"ana": 3, "bo": 1, "cy": 2}
RESERVOIR = {"rounds": 3, "draws": 2, "threshold": 2}
MECHANISMS = {
    "reservoir": RESERVOIR,
    "reservoir of traffic": {"mechanism": "reservoir", **RESERVOIR, "uniform_traffic": 0.3},
    "reservoir-index": {"draws": 3, "constant": 0.5, "ends": "at-random"},
    "reservoir-bars of a lower bar": {"mechanism": "reservoir-bars", "bars": 0.2, "draws": 3, "ends": "at-random"},
    "h-etc-r": {"agent_rounds": 6, "arm_rounds": 2},
    "holdout-h-etc": {"arm_rounds": 2, "score_rounds": 2, "max_arms": 3},
    "ucb1": {},
    "etc": {"arm_rounds": 2},
    "thompson": {},
}


def terms(name, **more):
    options = dict(MECHANISMS[name]) | more
    fields = {
        key: options.pop(key) for key in ("mechanism", "uniform_traffic", "ends", "wait_rounds") if key in options
    }
    fields = {"mechanism": name, "horizon": 60, "wait_rounds": 5} | fields
    return complete(MarketSpec(market="feed", parameters=options, **fields))


def told_lines(market):
    return market.chain.take().lines


def replay_alone(lines):
    """By somebody who has the lines alone."""
    return replay_market("feed", lines_alone(lines))


def forged(spec, phases, friend="bo", arm="bo-0", value=0.0, rounds=40):
    """A season that runs: all its decisions are a friend's, rewarded at once, in these phases one after the other."""
    market = with_arms(LiveMarket.open(spec, 0, MarketDice(make_secret(SEED))), ARMS)
    market.start(1000)
    lines, n = told_lines(market), market.chain.n
    for number in range(rounds):
        phase = phases[min(number, len(phases) - 1)]
        decided = ledger.Decided(n + 1, 2000, number + 1, friend, arm, phase, 1.0, f"r{number}")
        paid = ledger.payment(ticks(value), spec.share_micro)
        lines += map(
            ledger.encode, [decided, ledger.Rewarded(n + 2, 2000, number + 1, friend, arm, value, paid, f"e{number}")]
        )
        n += 2
    return lines


@pytest.mark.parametrize(
    ("name", "phases", "said"),
    [
        ("reservoir", ["trial"], "not the turn of 'bo' in the timetable"),
        ("reservoir", ["award"], "the award cannot begin yet"),
        ("reservoir", ["trial"] * 3 + ["award"], "the award cannot begin yet"),  # its test failed
        ("reservoir", ["play"], "has no phase 'play'"),
        ("reservoir", ["uniform"], "no uniform traffic under these terms"),
        ("reservoir of traffic", ["uniform"], "not the turn of 'bo' in uniform traffic"),
        ("reservoir", ["waiting"], "not the turn of 'bo' in waiting rounds"),
        ("h-etc-r", ["trial"], "not the turn of 'bo' to be tried"),
        ("h-etc-r", ["award"], "the award cannot begin yet"),
        ("holdout-h-etc", ["trial"], "not the turn of 'bo' to be tried"),
        ("etc", ["waiting"], "not the turn of 'bo' in waiting rounds"),
        ("etc", ["play"], "every arm is explored once before 'bo' gets another"),
        ("ucb1", ["play"], "every arm is explored once before 'bo' gets another"),
        ("reservoir-index", ["play"], "others have slots that were never played, and 'bo' has none"),
        ("thompson", ["trial"], "has no phase 'trial'"),
        ("thompson", ["waiting"], "has no phase 'waiting'"),
    ],
)
def test_a_running_season_that_no_dice_could_make_is_refused(name, phases, said):
    found = replay_alone(forged(terms(name), phases))
    assert (found.fits, found.exit_code) == (False, 1)
    assert said in found.statement


def test_an_award_stays_where_it_is_and_trials_end_with_a_pass():
    passing = ["trial"] * 3 + ["award"]
    assert replay_alone(forged(terms("reservoir"), passing, value=1.0)).fits
    found = replay_alone(forged(terms("reservoir"), ["trial"], value=1.0))
    assert "no slot is tested once one has passed" in found.statement
    lines = forged(terms("reservoir"), passing, value=1.0)
    lines[-2] = lines[-2].replace(b'"bo","arm":"bo-0"', b'"cy","arm":"cy-1"')
    assert "the award does not change hands" in replay_alone(lines).statement


@pytest.mark.parametrize(("value", "rounds", "possible"), [(0.0, 4, False), (0.0, 5, True), (1.0, 5, False)])
def test_a_draw_with_points_left_is_shown_on(value, rounds, possible):
    """A bar of .2 and a stake of one click: a draw has five points, and four more after a click."""
    lines = forged(terms("reservoir-bars of a lower bar"), ["play"], value=value, rounds=rounds + 1)
    lines[-2:] = [line.replace(b'"bo","arm":"bo-0"', b'"cy","arm":"cy-1"') for line in lines[-2:]]
    found = replay_alone(lines)
    assert (found.fits, "'bo' that is shown has points left" in found.statement) == (possible, not possible)


def test_a_running_season_is_no_longer_than_any_draw_of_its_end():
    """Its mean is 60 rounds; the smallest number that a session can draw ends it after some 2,200."""
    spec = terms("thompson", ends="at-random", wait_rounds=10_000)
    assert replay_alone(forged(spec, ["play"], rounds=500)).exit_code == 3
    found = replay_alone(forged(spec, ["play"], rounds=2300))
    assert (found.fits, "rounds of season 1 are decided" in found.statement) == (False, True)


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
