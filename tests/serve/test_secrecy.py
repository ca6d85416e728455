"""What an agent can tell of others: nothing. What anybody can tell of the dice: nothing before, all of it after."""

import json
import re
from hashlib import sha256

import msgspec
import pytest

from cloneproof.serve.api.messages import LedgerPage
from cloneproof.serve.ledger.agent_lines import agent_key, open_position, seal_position
from cloneproof.serve.offline.reading import StoredLedger, replay_all, replay_market
from support.service import SEED, TERMS, Desk, open_market, sqlite

FEED = "/v1/markets/feed"


def pages(desk, key, limit=5):
    """All that an agent gets of the ledger, page by page."""
    after, texts = "0", []
    while after is not None:
        reply = desk.call("GET", f"{FEED}/ledger?after={after}&limit={limit}", key=key)
        texts.append(reply.text)
        after = reply.json()["next"]
    return texts


def seen_by_ana(rivals_reward, rivals_rewards_come=True):
    """A trial of two agents in which only the rival's rewards differ; what ana's key shows."""
    with Desk() as desk:
        open_market(desk, {"ana": 1, "bo": 1}, mechanism="etc", parameters={"arm_rounds": 100})
        key = desk.make_key("agent", "ana")
        for number in range(40):
            made = desk.call("POST", f"{FEED}/decisions", {"request_id": f"r{number}"}).json()
            mine = made["agent"] == "ana"
            if mine or rivals_rewards_come:
                body = {"event_id": f"e{number}", "decision": made["decision"], "value": 1.0 if mine else rivals_reward}
                desk.call("POST", f"{FEED}/rewards", body)
        return pages(desk, key), pages(desk, key, limit=1)


def test_an_agents_pages_do_not_depend_on_what_others_earn():
    """Byte by byte: the hashes of the chain did, and whoever tried the few possible rewards found them."""
    assert seen_by_ana(0.0) == seen_by_ana(1.0)
    fewer, all_of_them = seen_by_ana(0.0, rivals_rewards_come=False), seen_by_ana(0.0)
    for some, others in zip(fewer, all_of_them, strict=True):  # but for the sealed positions, which none can read
        assert [json.loads(text)["lines"] for text in some] == [json.loads(text)["lines"] for text in others]


def test_an_agent_gets_its_lines_without_hashes_and_numbers():
    (first, *_), _ = seen_by_ana(0.0)
    lines = [line for text in seen_by_ana(0.0)[0] for line in json.loads(text)["lines"]]
    assert {line["hash"] for line in lines} == {None}
    assert all("n" not in line["entry"] for line in lines)
    decided = {line["entry"]["id"] for line in lines if line["entry"]["kind"] == "decision"}
    assert decided == {line["entry"]["id"] for line in lines if line["entry"]["kind"] == "reward"}
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in decided)
    assert [line["entry"]["kind"] for line in json.loads(first)["lines"]][:2] == ["agent", "arm"]


def test_a_position_is_read_back_only_with_its_key():
    key, other = agent_key(b"s" * 32, None, "ana"), agent_key(b"s" * 32, None, "bo")
    for n in (1, 1000, 1 << 40):
        assert open_position(key, seal_position(key, n)) == n
    with Desk() as desk:
        open_market(desk, {"ana": 1, "bo": 1})
        mine = desk.make_key("agent", "ana")
        for wrong in ("1", "abc", "0" * 32, seal_position(other, 3), "zz" * 16):
            reply = desk.call("GET", f"{FEED}/ledger?after={wrong}", key=mine)
            assert (reply.status_code, reply.json()["error"]) == (422, "invalid")


@pytest.mark.parametrize("seed", [0, 2024, (1 << 48) - 1])
def test_a_seed_that_can_be_guessed_is_refused(seed):
    with Desk() as desk:
        reply = desk.call("POST", "/v1/markets", TERMS | {"seed": seed})
        assert (reply.status_code, "2^48" in reply.json()["message"]) == (422, True)


def played_seasons(desk):
    """Two settled seasons and a third that runs."""
    open_market(desk, {"ana": 1, "bo": 2})
    for season in (1, 2, 3):
        if season > 1:
            desk.call("POST", f"{FEED}/seasons", {"season": season})
            desk.call("POST", f"{FEED}/start")
        for number in range(30):
            made = desk.call("POST", f"{FEED}/decisions", {"request_id": f"{season}-{number}"}).json()
            body = {"event_id": f"{season}-{number}", "decision": made["decision"], "value": float(number % 3 == 0)}
            desk.call("POST", f"{FEED}/rewards", body)
        if season < 3:
            desk.call("POST", f"{FEED}/settle")


def all_lines(desk, key):
    reply = desk.call("GET", f"{FEED}/ledger?limit=1000", key=key)
    page = msgspec.json.decode(reply.content, type=LedgerPage)
    return [(bytes(line.entry), bytes.fromhex(line.hash)) for line in page.lines]


def test_the_dice_are_committed_to_before_a_season_and_published_after_it(tmp_path):
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        auditor = desk.make_key("auditor")
        played_seasons(desk)
        for key in (auditor, desk.make_key("agent", "ana")):  # everybody can check
            dice = desk.call("GET", FEED, key=key).json()["dice"]
            assert [one["season"] for one in dice if one["seed"] is not None] == [1, 2]
            for one in dice[:2]:
                text = f"cloneproof dice feed {one['season']} {one['seed']} {one['salt']}"
                assert sha256(text.encode()).hexdigest() == one["commitment"]
            assert (dice[2]["seed"], dice[2]["salt"], len(dice[2]["commitment"])) == (None, None, 64)
        lines = all_lines(desk, auditor)
        for secret in (str(SEED), desk.storage.markets()[0].secret.hex()):
            assert secret not in b"\n".join(line for line, _ in lines).decode()
        told = [json.loads(line) for line, _ in lines]
        openings = [one["commitment"] for one in told if one["kind"] in ("opened", "season")]
        assert openings == [one["commitment"] for one in dice]
    found = replay_market("feed", StoredLedger(lambda: iter(lines)))  # by an auditor, who has the lines alone
    start = next(one["n"] for one in told if one["kind"] == "started" and one["season"] == 3)
    assert (found.fits, found.entries) == (True, start - 1)
    assert "season 3 runs with dice that are published when it is settled" in found.statement
    (whole,) = replay_all(str(tmp_path / "a.db"))
    assert (whole.fits, whole.entries) == (True, len(lines))


def test_other_dice_than_those_committed_to_are_noticed():
    """Planted: the platform publishes, or plays with, another seed; who has only the lines can tell."""
    with Desk() as desk:
        played_seasons(desk)
        lines = [line for line, _ in all_lines(desk, desk.key)]
    at = next(number for number, line in enumerate(lines) if b'"kind":"settled"' in line)
    entry = json.loads(lines[at])
    for change in ({"seed": entry["seed"] + 1}, {"salt": "0" * 32}):
        forged = [*lines[:at], json.dumps(entry | change, separators=(",", ":")).encode(), *lines[at + 1 :]]
        found = replay_market("feed", StoredLedger(lambda forged=forged: ((line, None) for line in forged)))
        assert (found.fits, found.entries) == (False, 0)  # the first entry has another commitment


def test_a_market_is_declared_twice_with_and_without_its_seed():
    with Desk() as desk:
        statuses = [
            desk.call("POST", "/v1/markets", TERMS | change).status_code
            for change in ({}, {"seed": None}, {"seed": SEED + 1}, {})
        ]
        assert statuses == [201, 200, 409, 200]
