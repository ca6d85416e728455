"""The API: exactly once, who may do what, limits, and refusals that say what to do."""

import asyncio
import json
import logging
import threading
import time

import msgspec
import pytest

from cloneproof.errors import Refused
from cloneproof.serve.api import calls
from cloneproof.serve.http.request_limits import RateLimit
from cloneproof.serve.http.routes import ROUTES
from support.service import SEED, TERMS, Desk, open_market, sqlite

FEED = "/v1/markets/feed"


@pytest.fixture
def desk():
    with Desk() as made:
        yield made


def test_a_retry_gets_the_same_decision(desk):
    open_market(desk, {"ana": 2, "bo": 1})
    first = desk.call("POST", f"{FEED}/decisions", {"request_id": "a"}).json()
    batch = desk.call("POST", f"{FEED}/decisions/batch", {"items": [{"request_id": x} for x in "babc"]}).json()
    again = desk.call("POST", f"{FEED}/decisions", {"request_id": "a"}).json()
    assert again == first | {"duplicate": True}
    assert [one["decision"] for one in batch["results"]] == [2, 1, 2, 3]
    assert [one["duplicate"] for one in batch["results"]] == [False, True, True, False]


def test_a_reward_counts_once_whatever_is_sent(desk):
    open_market(desk, {"ana": 1})
    desk.call("POST", f"{FEED}/decisions/batch", {"items": [{"request_id": f"{n}"} for n in range(3)]})

    def reward(event, decision, value):
        reply = desk.call("POST", f"{FEED}/rewards", {"event_id": event, "decision": decision, "value": value})
        return reply.status_code, reply.json().get("result", reply.json().get("error"))

    assert reward("x", 1, 1.0) == (200, "recorded")
    assert reward("x", 1, 1.0) == (200, "duplicate")
    assert reward("x", 1, 0.5) == (409, "event_conflict")
    assert reward("x", 2, 1.0) == (409, "event_conflict")
    assert reward("y", 1, 1.0) == (409, "already_rewarded")
    assert reward("z", 4, 1.0) == (404, "unknown_decision")
    assert reward("z", 2, 1.5) == (422, "invalid_reward")
    items = [
        {"event_id": e, "decision": d, "value": 1.0} for e, d in (("b", 2), ("b", 2), ("c", 2), ("x", 1), ("d", 9))
    ]
    results = desk.call("POST", f"{FEED}/rewards/batch", {"items": items}).json()["results"]
    assert [one["status"] for one in results] == [200, 200, 409, 200, 404]
    assert desk.call("GET", f"{FEED}/balances").json() == {"balances": {"ana": 800_000}}


def test_everything_else_may_be_said_twice_too(desk):
    assert desk.call("POST", "/v1/markets", TERMS).status_code == 201
    assert desk.call("POST", "/v1/markets", TERMS).status_code == 200
    assert desk.call("POST", "/v1/markets", TERMS | {"seed": SEED + 1}).status_code == 409
    del (unseeded := dict(TERMS))["seed"]
    assert desk.call("POST", "/v1/markets", unseeded).status_code == 200
    for status in (201, 200):
        assert desk.call("POST", f"{FEED}/agents", {"agent": "ana"}).status_code == status
        assert desk.call("POST", f"{FEED}/agents/ana/arms", {"arm": "x"}).status_code == status
    assert desk.call("POST", f"{FEED}/start").json() == desk.call("POST", f"{FEED}/start").json()
    assert desk.call("POST", f"{FEED}/settle").json() == desk.call("POST", f"{FEED}/settle").json()
    assert desk.call("POST", f"{FEED}/seasons", {"season": 2}).status_code == 201
    assert desk.call("POST", f"{FEED}/seasons", {"season": 2}).status_code == 200
    assert desk.call("POST", f"{FEED}/seasons", {"season": 4}).status_code == 409


def test_windows_end_also_where_nobody_calls(desk):
    open_market(desk, {"ana": 1}, wait_seconds=1.0)
    desk.call("POST", f"{FEED}/decisions", {"request_id": "a"})
    desk.clock.now += 2000
    while not (lines := desk.storage.lines(1, 5, 1)):  # for ever, where they do not
        desk.runner.run(asyncio.sleep(0.02))
    (line,) = lines
    assert line.line.startswith(b'{"kind":"default"')


def test_seasons_and_their_decisions(tmp_path):
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        open_market(desk, {"ana": 1})
        desk.call("POST", f"{FEED}/decisions/batch", {"items": [{"request_id": f"{n}"} for n in range(3)]})
        desk.call("POST", f"{FEED}/settle")
        desk.call("POST", f"{FEED}/seasons", {"season": 2})
        desk.call("POST", f"{FEED}/start")
    with Desk(sqlite(tmp_path / "a.db")) as desk:  # from its snapshot
        desk.call("POST", f"{FEED}/decisions", {"request_id": "more"})
        assert desk.call("GET", f"{FEED}/seasons").json()["seasons"] == [
            {"season": 1, "state": "settled", "first": 1, "last": 3},
            {"season": 2, "state": "running", "first": 4, "last": 4},
        ]


SECRET = ("bo", "bo-0", "bo-1")


def bodies():
    """A valid body for each type of request, about somebody else where it names somebody."""
    return {
        "MarketSpec": TERMS | {"market": "own"},
        "AgentRequest": {"agent": "bo"},
        "ArmRequest": {"arm": "stolen"},
        "SeasonRequest": {"season": 2},
        "DecisionRequest": {"request_id": "q"},
        "DecisionBatch": {"items": [{"request_id": "q"}]},
        "RewardItem": {"event_id": "e", "decision": 1, "value": 1.0},
        "RewardBatch": {"items": [{"event_id": "e", "decision": 1, "value": 1.0}]},
        "KeyRequest": {"role": "platform"},
        "WhatIf": {"belief": {"low": 0.2, "high": 0.8, "chance": 0.5, "originals": 1}, "max_copies": 2},
    }


OTHERS = {"market": "feed", "agent": "bo", "key": "0"}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_an_agents_key_opens_nothing_that_is_not_its_own(route):
    with Desk() as desk:
        open_market(desk, {"ana": 1, "bo": 2})
        for number in range(30):
            desk.call("POST", f"{FEED}/decisions", {"request_id": f"r{number}"})
            desk.call("POST", f"{FEED}/rewards", {"event_id": f"e{number}", "decision": number + 1, "value": 1.0})
        before = desk.call("GET", f"{FEED}/progress").json()
        body = None if route.body is None else bodies()[route.body.__name__]
        reply = desk.call(route.method, route.path.format(**OTHERS), body, key=desk.make_key("agent", "ana"))
        assert reply.status_code in (200, 403)
        assert not any(f'"{name}"' in reply.text for name in SECRET)
        assert desk.call("GET", f"{FEED}/progress").json() == before
        changes = route.method != "GET"
        assert reply.status_code == (
            403 if changes or (route.roles and "agent" not in route.roles) else reply.status_code
        )


def test_an_agents_key_does_its_own_business(desk):
    desk.call("POST", "/v1/markets", TERMS | {"max_arms": 2})
    key = desk.make_key("agent", "ana")
    assert desk.call("POST", f"{FEED}/agents", {"agent": "ana"}, key).status_code == 201
    statuses = [desk.call("POST", f"{FEED}/agents/ana/arms", {"arm": f"{n}"}, key).status_code for n in range(3)]
    assert statuses == [201, 201, 409]
    assert [arm["arm"] for arm in desk.call("GET", f"{FEED}/agents/ana", key=key).json()["arms"]] == ["0", "1"]
    mine = desk.call("GET", f"{FEED}/ledger", key=key).json()["lines"]
    assert [line["entry"]["kind"] for line in mine] == ["agent", "arm", "arm"]
    assert desk.call("GET", f"{FEED}/agents/nobody", key=key).status_code == 403


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_an_auditor_reads_and_changes_nothing(desk, route):
    open_market(desk, {"ana": 1, "bo": 2})
    before = desk.call("GET", f"{FEED}/progress").json()
    body = None if route.body is None else bodies()[route.body.__name__]
    key = desk.make_key("auditor")
    reply = desk.call(route.method, route.path.format(**OTHERS), body, key=key)
    reads = (route.method == "GET" and route.path != "/v1/keys") or route.path.endswith("/what-if")
    assert reply.status_code == (200 if reads else 403)
    assert desk.call("GET", f"{FEED}/progress").json() == before


@pytest.mark.parametrize("key", ["", "cp_x_y", "nonsense", "cp_" + "0" * 12 + "_", "\xff"])
def test_no_valid_key_no_answer(desk, key):
    for route in ROUTES:
        if route.roles:
            headers = {"Authorization": f"Bearer {key}".encode("latin-1")}
            path = route.path.format(**OTHERS)
            reply = desk.runner.run(desk.http.request(route.method, path, headers=headers))
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"] == "Bearer"


def test_a_revoked_key_is_useless_and_keys_are_never_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        key = desk.make_key("auditor")
        assert desk.call("GET", "/v1/markets", key=key).status_code == 200
        number = key.split("_")[1]
        assert desk.call("DELETE", f"/v1/keys/{number}").json()["revoked"]
        assert desk.call("GET", "/v1/markets", key=key).status_code == 401
        shown = desk.call("GET", "/v1/keys").text
        assert key.split("_", 2)[2] not in shown + caplog.text
    assert key.split("_", 2)[2].encode() not in (tmp_path / "a.db").read_bytes()


def test_limits(desk):
    open_market(desk, {"ana": 1})
    assert desk.call("POST", f"{FEED}/decisions/batch", {"items": []}).status_code == 422
    for name in ("a\n", "\nb", "a\nb", "a\x00b", "a\x7f", "a\x1b[2J", "a\u2028b"):
        assert desk.call("POST", "/v1/markets", TERMS | {"market": name}).status_code == 422
        assert desk.call("POST", f"{FEED}/agents", {"agent": name}).status_code == 422
        assert desk.call("POST", f"{FEED}/agents/ana/arms", {"arm": name}).status_code == 422
        assert desk.call("POST", "/v1/keys", {"role": "agent", "agent": name}).status_code == 422
    many = {"items": [{"request_id": f"{n}"} for n in range(1001)]}
    assert desk.call("POST", f"{FEED}/decisions/batch", many).status_code == 422
    large = {"request_id": "x" * (1 << 20)}
    assert desk.call("POST", f"{FEED}/decisions", large).status_code == 413
    assert desk.call("POST", f"{FEED}/decisions", {"request_id": "x" * 129}).status_code == 422
    assert desk.call("PUT", f"{FEED}/decisions").status_code == 405
    assert desk.call("GET", "/v2").status_code == 404
    assert desk.call("GET", f"{FEED}/ledger?after=x").status_code == 422
    assert desk.call("POST", "/v1/markets/none/decisions", {"request_id": "a"}).status_code == 404


def test_an_agents_calls_are_rationed():
    now = [0.0]
    limit = RateLimit(5.0, lambda: now[0])
    for _ in range(10):
        limit.check("a")
    with pytest.raises(Refused, match="wait a little"):
        limit.check("a")
    limit.check("b")
    now[0] += 0.2
    limit.check("a")
    with pytest.raises(Refused):
        limit.check("a")
    with Desk(agent_rate=2.0) as desk:
        open_market(desk, {"ana": 1})
        key = desk.make_key("agent", "ana")
        replies = [desk.call("GET", FEED, key=key) for _ in range(5)]
        assert replies[-1].status_code == 429
        assert replies[-1].headers["retry-after"] == "1"
        assert desk.call("GET", FEED).status_code == 200


class Breaking:
    """A storage whose next commit fails, after all work was done in memory."""

    def __init__(self, inner):
        self.inner, self.broken = inner, False

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def commit(self, appended):
        if self.broken:
            self.broken = False
            raise OSError("no space left on device")
        self.inner.commit(appended)


def test_a_failing_storage_is_a_retryable_error_and_nothing_else(tmp_path, caplog):
    storage = Breaking(sqlite(tmp_path / "a.db"))
    with Desk(storage) as desk:
        open_market(desk, {"ana": 1, "bo": 1})
        first = desk.call("POST", f"{FEED}/decisions", {"request_id": "a"}).json()
        storage.broken = True
        reply = desk.call("POST", f"{FEED}/decisions", {"request_id": "b"})
        assert (reply.status_code, reply.json()["error"]) == (503, "storage")
        for _ in range(200):  # again, as a client does, until the markets are read back
            again = desk.call("POST", f"{FEED}/decisions", {"request_id": "b"})
            if again.status_code != 503:
                break
            time.sleep(0.02)
        second = again.json()
        assert (first["decision"], second["decision"], second["duplicate"]) == (1, 2, False)
        assert desk.call("GET", f"{FEED}/progress").json()["decisions"] == 2
    assert "no space left" in caplog.text


def test_calls_at_the_same_time_share_a_commit(desk):
    open_market(desk, {"ana": 2})

    writer, gate = desk.app._service.writer, threading.Event()
    before = writer.groups
    writer._queue.note = lambda command, seconds, items: None  # as many in a group as the first guess has room for

    async def together():
        headers = {"Authorization": f"Bearer {desk.key}"}
        writing = asyncio.create_task(writer.in_writing_thread(gate.wait))  # until all of them wait
        sent = [
            asyncio.create_task(desk.http.post(f"{FEED}/decisions", json={"request_id": f"{n % 40}"}, headers=headers))
            for n in range(100)
        ]
        while writer.waits.depth["feed"] < 100:
            await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(writing, *sent)

    _, *sent = desk.runner.run(together())
    replies = [reply.json() for reply in sent]
    assert writer.groups - before <= 4
    assert sorted({one["decision"] for one in replies}) == list(range(1, 41))
    assert sum(one["duplicate"] for one in replies) == 60
    metrics = desk.call("GET", "/metrics").text
    assert f"cloneproof_groups_total {writer.groups}\n" in metrics
    assert 'cloneproof_calls_total{route="decide",status="200"} 100' in metrics


def test_a_page_of_the_ledger_and_its_hashes(desk):
    open_market(desk, {"ana": 1})
    page = desk.call("GET", f"{FEED}/ledger?limit=2").json()
    rest = desk.call("GET", f"{FEED}/ledger?after={page['next']}").json()
    lines = page["lines"] + rest["lines"]
    assert [line["entry"]["n"] for line in lines] == [1, 2, 3, 4]
    assert lines[-1]["hash"] == desk.call("GET", f"{FEED}/progress").json()["head"]
    assert desk.call("GET", f"{FEED}/ledger?after=4").json() == {"lines": [], "next": None}


def test_every_call_of_the_client_is_a_route():
    made = [
        calls.markets(), calls.market("m"), calls.progress("m"), calls.register_agent("m", "a"), calls.settle("m"),
        calls.register_arm("m", "a", "x"), calls.agent("m", "a"), calls.start("m"), calls.open_season("m", 2),
        calls.seasons("m"),
        calls.decide("m", "q"), calls.decide_batch("m", ["q"]), calls.reward("m", "e", 1, 1.0), calls.balances("m"),
        calls.what_if("m", calls.WhatIf()),
        calls.reward_batch("m", [("e", 1, 1.0)]), calls.ledger("m"), calls.create_key("auditor"),
        calls.revoke_key("k"), calls.create_market(msgspec.convert(TERMS, type=calls.MarketSpec)),
    ]  # fmt: skip
    table = {
        (route.method, route.path.format(market="m", agent="a", key="k")): (route.reply, route.body) for route in ROUTES
    }
    for call in made:
        body = None if call.body is None else type(call.body)
        assert table[call.method, call.path.partition("?")[0]] == (call.reply, body)
        if call.body is not None:
            assert msgspec.json.decode(json.dumps(msgspec.to_builtins(call.body)), type=body) == call.body
