"""The chain, the replay and what it catches, the command line."""

import json
import sqlite3
import sys

import pytest

from cloneproof.cli import main
from cloneproof.serve.ledger.chain import GENESIS, chain_hashes
from cloneproof.serve.offline.reading import replay_all
from support.service import Desk, open_market, sqlite


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A file with a season of everything: retries, late rewards, defaults, a second season."""
    path = tmp_path_factory.mktemp("ledger") / "market.db"
    with Desk(sqlite(path, interval=100)) as desk:
        open_market(desk, {"ana": 2, "bo": 1}, wait_seconds=10.0)
        for number in range(120):
            made = desk.call("POST", "/v1/markets/feed/decisions", {"request_id": f"r{number}"}).json()
            if number % 7:
                body = {"event_id": f"e{number}", "decision": made["decision"], "value": (number % 11) / 10}
                assert desk.call("POST", "/v1/markets/feed/rewards", body).status_code == 200
            desk.clock.now += 500
        body = {"event_id": "late", "decision": 1, "value": 1.0}
        assert desk.call("POST", "/v1/markets/feed/rewards", body).json()["result"] == "late"
        desk.call("POST", "/v1/markets/feed/settle")
        desk.call("POST", "/v1/markets/feed/seasons", {"season": 2})
        desk.call("POST", "/v1/markets/feed/start")
        desk.call("POST", "/v1/markets/feed/decisions", {"request_id": "second"})
        balances = desk.call("GET", "/v1/markets/feed/balances").json()["balances"]
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
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT place, lines FROM ledger ORDER BY place").fetchall()


def rewritten(path, lines):
    """Somebody who can write the file and knows the chain rewrites all of it, hashes too."""
    hash_now = GENESIS
    with sqlite3.connect(path) as connection:
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
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE ledger SET lines = ? WHERE place = ?", ("\n".join(lines), place))
            break
        seen += len(lines)
    (found,) = replay_all(str(path))
    assert not found.fits
    assert found.entries < entry + 250


def first_of(lines, kind):
    return next(number for number, line in enumerate(lines, 1) if json.loads(line)["kind"] == kind)


FORGERIES = {
    "decision": lambda e: e | {"agent": "bo" if e["agent"] == "ana" else "ana"},
    "reward": lambda e: e | {"paid": e["paid"] + 1},
    "default": lambda e: e | {"value": 1.0},
    "late": lambda e: e | {"id": 2},
    "arm": lambda e: e | {"season": 2},
    "started": lambda e: e | {"season": 2},
    "settled": lambda e: e | {"season": 3},
    "opened": lambda e: e | {"n": 2},
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forgery_with_a_good_chain_is_named_by_its_number(played, tmp_path, kind):
    path = copied(played[0], tmp_path)
    lines = all_lines(path)
    number = first_of(lines, kind)
    forged = FORGERIES[kind](json.loads(lines[number - 1]))
    lines[number - 1] = json.dumps(forged, separators=(",", ":")).encode()
    rewritten(path, lines)
    (found,) = replay_all(str(path))
    assert not found.fits
    assert f"entry {number}:" in found.statement


@pytest.mark.parametrize("kind", ["decision", "reward", "default", "late"])
def test_a_line_left_out_or_told_twice_is_named(played, tmp_path, kind):
    path = copied(played[0], tmp_path)
    lines = all_lines(path)
    number = first_of(lines, kind)
    twice, left_out = lines[:number] + lines[number - 1 :], lines[: number - 1] + lines[number:]
    # a late reward changes nothing after it, so that one is missing shows only to who knows the old head
    for forged in (twice,) if kind == "late" else (twice, left_out):
        renumbered = [
            json.dumps(json.loads(line) | {"n": n}, separators=(",", ":")).encode() for n, line in enumerate(forged, 1)
        ]
        rewritten(path, renumbered)
        (found,) = replay_all(str(path))
        assert not found.fits
        assert found.entries >= number - 1


def test_the_command_line(played, tmp_path, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["cloneproof", "replay", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code, *capsys.readouterr()

    code, out, _ = run(played[0], "--json")
    assert code == 0
    assert json.loads(out)[0]["balances"] == played[1]
    path = copied(played[0], tmp_path)
    rewritten(path, all_lines(path)[:50] + all_lines(path)[51:])
    code, out, _ = run(path)
    assert (code, out.startswith("feed: entry 51:")) == (1, True)
    for bad in ((tmp_path / "none.db",), (played[0], "--market", "fed"), (__file__,)):
        code, _, error = run(*bad)
        assert code == 2
        assert error.startswith("error: ")
        assert len(error.splitlines()) == 1
