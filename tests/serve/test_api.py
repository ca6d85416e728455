"""The API: exactly once, who may do what, limits, and refusals that say what to do."""

import asyncio
import json
import logging
import threading

import msgspec
import pytest

from cloneproof.errors import Refused
from cloneproof.serve import calls
from cloneproof.serve.http.app import ROUTES
from cloneproof.serve.http.service import RateLimit
from cloneproof.serve.market import limits
from cloneproof.serve.messages import DecisionReply
from support.service import SEED, TERMS, Desk, open_market, sqlite

FEED = "/v1/markets/feed"


def test_a_reward_counts_once_whatever_is_sent(desk):
    open_market(desk, {"ana": 1})
    desk.decide_batch(f"{n}" for n in range(3))

    told = [
        desk.reward(*sent) for sent in (("x", 1), ("x", 1), ("x", 1, 0.5), ("x", 2), ("y", 1), ("z", 4), ("z", 2, 1.5))
    ]
    assert told == [
        "recorded", "duplicate", "event_conflict", "event_conflict", "already_rewarded", "unknown_decision",
        "invalid_reward",
    ]  # fmt: skip
    items = [
        {"event_id": e, "decision": d, "value": 1.0} for e, d in (("b", 2), ("b", 2), ("c", 2), ("x", 1), ("d", 9))
    ]
    results = desk.post("rewards/batch", {"items": items}).json()["results"]
    assert [one["status"] for one in results] == [200, 200, 409, 200, 404]
    assert desk.get("balances").json() == {"balances": {"ana": 800_000}}


def test_a_reward_that_names_another_request_gets_one_answer(desk):
    """Whether its decision awaits a reward, has one, was given the default, or is rewarded in the same batch."""
    open_market(desk, {"ana": 1}, wait_rounds=3)
    requests = [f"q{n}" for n in range(6)]
    desk.decide_batch(requests)  # so that the windows of the first two end
    sent = [("a", 6, "q5"), ("b", 6, "q4"), ("c", 6, "q5"), ("d", 6, "?")]
    items = [{"event_id": e, "decision": d, "request_id": q, "value": 1.0} for e, d, q in sent]
    results = desk.post("rewards/batch", {"items": items}).json()["results"]
    told = [one.get("result") or one["error"] for one in results]
    assert told == ["recorded", "other_request", "already_rewarded", "other_request"]
    for decision, own, kept in ((6, "q5", "already_rewarded"), (5, "q4", "recorded"), (1, "q0", "late")):
        for request in ("q3", "never asked", own):
            body = {"event_id": f"e{decision} {request}", "decision": decision, "request_id": request, "value": 0.0}
            reply = desk.post("rewards", body).json()
            assert (reply.get("result") or reply["error"]) == (kept if request == own else "other_request")


def test_everything_else_may_be_said_twice_too(desk):
    assert desk.post("/v1/markets", TERMS).status_code == 201
    assert desk.post("/v1/markets", TERMS).status_code == 200
    assert desk.post("/v1/markets", TERMS | {"seed": SEED + 1}).status_code == 409
    del (unseeded := dict(TERMS))["seed"]
    assert desk.post("/v1/markets", unseeded).status_code == 200
    for status in (201, 200):
        assert desk.post("agents", {"agent": "ana"}).status_code == status
        assert desk.post("agents/ana/arms", {"arm": "x"}).status_code == status
    assert desk.post("start").json() == desk.post("start").json()
    other = desk.post("start", {"beacon": "of my choice"})
    assert (other.status_code, other.json()["error"]) == (409, "running")
    assert desk.post("settle", {"reason": "a test"}).json() == desk.post("settle").json()
    assert desk.post("seasons", {"season": 2}).status_code == 201
    assert desk.post("seasons", {"season": 2}).status_code == 200
    assert desk.post("seasons", {"season": 4}).status_code == 409


def test_windows_end_also_where_nobody_calls(desk):
    open_market(desk, {"ana": 1}, wait_seconds=1.0)
    desk.post("decisions", {"request_id": "a"})
    desk.clock.now += 2000
    while not (lines := desk.storage.lines(1, 5, 1)):  # for ever, where they do not
        desk.runner.run(asyncio.sleep(0.02))
    (line,) = lines
    assert line.line.startswith(b'{"kind":"default"')


def test_seasons_and_their_decisions(tmp_path):
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        open_market(desk, {"ana": 1})
        desk.decide_batch(f"{n}" for n in range(3))
        desk.post("settle", {"reason": "a test"})
        desk.post("seasons", {"season": 2})
        desk.post("start")
    with Desk(sqlite(tmp_path / "a.db")) as desk:  # from its snapshot
        desk.post("decisions", {"request_id": "more"})
        assert desk.get("seasons").json()["seasons"] == [
            {"season": 1, "state": "settled", "first": 1, "last": 3},
            {"season": 2, "state": "running", "first": 4, "last": 4},
        ]


def bodies():
    """A valid body for each type of request, about somebody else where it names somebody."""
    return {
        "MarketSpec": TERMS | {"market": "own"},
        "AgentRequest": {"agent": "bo"},
        "ArmRequest": {"arm": "stolen"},
        "SeasonRequest": {"season": 2},
        "StartRequest": {},
        "JoinRequest": {},
        "SettleRequest": {},
        "WithdrawalRequest": {"reason": "sold out"},
        "PauseRequest": {"reason": "down"},
        "DecisionRequest": {"request_id": "q"},
        "DecisionBatch": {"items": [{"request_id": "q"}]},
        "SlateBatch": {"items": [{"request_id": "q"}]},
        "RewardItem": {"event_id": "e", "decision": 1, "request_id": "r", "value": 1.0},
        "RewardBatch": {"items": [{"event_id": "e", "decision": 1, "request_id": "r", "value": 1.0}]},
        "KeyRequest": {"role": "platform"},
    }


OTHERS = {"market": "feed", "agent": "bo", "arm": "bo-0", "key": "0"}


def call_route(desk, route, key):
    body = None if route.body is None else bodies()[route.body.__name__]
    return desk.call(route.method, route.path.format(**OTHERS), body, key=key)


def test_an_agents_key_opens_nothing_that_is_not_its_own():
    with Desk(agent_rate=None) as desk:
        open_market(desk, {"ana": 1, "bo": 2})
        for number in range(30):
            desk.post("decisions", {"request_id": f"r{number}"})
            desk.reward(f"e{number}", number + 1, 1.0)
        before, key = desk.get("progress").json(), desk.make_key("agent", "ana")
        for route in ROUTES:
            reply = call_route(desk, route, key)
            closed = route.method != "GET" or (route.roles and "agent" not in route.roles)
            assert reply.status_code in ((403,) if closed else (200, 403)), route
            assert not any(f'"{name}"' in reply.text for name in ("bo", "bo-0", "bo-1")), route
        assert desk.get("progress").json() == before


def test_an_agents_key_does_its_own_business(desk):
    desk.post("/v1/markets", TERMS | {"max_arms": 2})
    key = desk.make_key("agent", "ana")
    for method, path, body in (("GET", FEED, None), ("POST", f"{FEED}/agents/ana/arms", {"arm": "x"})):
        assert desk.call(method, path, body, key).json()["error"] == "unknown_market"  # it joins where it is registered
    assert desk.post("agents", {"agent": "ana"}, key).status_code == 403
    assert desk.get("/v1/markets", key=key).json() == {"markets": []}
    assert desk.post("agents", {"agent": "ana"}).status_code == 201
    assert desk.get("/v1/markets", key=key).json() == {"markets": ["feed"]}
    statuses = [desk.post("agents/ana/arms", {"arm": f"{n}"}, key).status_code for n in range(3)]
    assert statuses == [201, 201, 409]
    assert [arm["arm"] for arm in desk.get("agents/ana", key=key).json()["arms"]] == ["0", "1"]
    mine = desk.get("ledger", key=key).json()["lines"]
    assert [line["entry"]["kind"] for line in mine] == ["agent", "arm", "arm"]
    assert desk.get("agents/nobody", key=key).status_code == 403


def test_an_auditor_reads_and_changes_nothing(desk):
    open_market(desk, {"ana": 1, "bo": 2})
    before, key = desk.get("progress").json(), desk.make_key("auditor")
    for route in ROUTES:
        reads = route.method == "GET" and route.path != "/v1/keys"
        expected = 200 if reads else 403
        assert call_route(desk, route, key).status_code == expected, route
    assert desk.get("progress").json() == before


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
        assert desk.get("/v1/markets", key=key).status_code == 200
        number = key.split("_")[1]
        assert desk.call("DELETE", f"/v1/keys/{number}").json()["revoked"]
        assert desk.get("/v1/markets", key=key).status_code == 401
        shown = desk.get("/v1/keys").text
        assert key.split("_", 2)[2] not in shown + caplog.text
    assert key.split("_", 2)[2].encode() not in (tmp_path / "a.db").read_bytes()


def test_limits(desk):
    open_market(desk, {"ana": 1})
    assert desk.post("decisions/batch", {"items": []}).status_code == 422
    for name in ("a\n", "\nb", "a\nb", "a\x00b", "a\x7f", "a\x1b[2J", "a\u2028b"):
        assert desk.post("/v1/markets", TERMS | {"market": name}).status_code == 422
        assert desk.post("agents", {"agent": name}).status_code == 422
        assert desk.post("agents/ana/arms", {"arm": name}).status_code == 422
        assert desk.post("/v1/keys", {"role": "agent", "agent": name}).status_code == 422
    many = {"items": [{"request_id": f"{n}"} for n in range(1001)]}
    assert desk.post("decisions/batch", many).status_code == 422
    large = {"request_id": "x" * (1 << 20)}
    assert desk.post("decisions", large).status_code == 413
    assert desk.post("decisions", {"request_id": "x" * 129}).status_code == 422
    assert desk.call("PUT", f"{FEED}/decisions").status_code == 405
    assert desk.get("/v2").status_code == 404
    assert desk.get("ledger?after=x").status_code == 422
    assert desk.post("/v1/markets/none/decisions", {"request_id": "a"}).status_code == 404


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
        replies = [desk.get("", key=key) for _ in range(5)]
        assert replies[-1].status_code == 429
        assert replies[-1].headers["retry-after"] == "1"
        assert desk.get("").status_code == 200


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
        first = desk.decide("a")
        storage.broken = True
        reply = desk.post("decisions", {"request_id": "b"})
        assert (reply.status_code, reply.json()["error"]) == (503, "storage")
        second = desk.patiently("POST", f"{FEED}/decisions", {"request_id": "b"}).json()
        assert (first["decision"], second["decision"], second["duplicate"]) == (1, 2, False)
        assert desk.get("progress").json()["decisions"] == 2
    assert "no space left" in caplog.text


def test_calls_at_the_same_time_share_a_commit(desk):
    open_market(desk, {"ana": 2})

    writer, gate = desk.app._service.writer, threading.Event()
    before = writer.groups

    async def together():
        headers = {"Authorization": f"Bearer {desk.key}"}
        writing = asyncio.create_task(writer.threads.storage(gate.wait))  # until all of them wait
        sent = [
            asyncio.create_task(desk.http.post(f"{FEED}/decisions", json={"request_id": f"{n % 40}"}, headers=headers))
            for n in range(100)
        ]
        while writer.waits.registry.get_sample_value("cloneproof_queue_depth", {"market": "feed"}) != 100:
            await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(writing, *sent)

    _, *sent = desk.runner.run(together())
    replies = [reply.json() for reply in sent]
    assert writer.groups - before <= 4
    assert sorted({one["decision"] for one in replies}) == list(range(1, 41))
    assert sum(one["duplicate"] for one in replies) == 60
    metrics = desk.get("/metrics").text
    assert f"cloneproof_groups_total {writer.groups}.0\n" in metrics
    assert 'cloneproof_calls_total{route="decide",status="200"} 100.0' in metrics


def test_a_page_of_the_ledger_and_its_hashes(desk):
    open_market(desk, {"ana": 1})
    page = desk.get("ledger?limit=2").json()
    rest = desk.get(f"ledger?after={page['next']}").json()
    lines = page["lines"] + rest["lines"]
    assert [line["entry"]["n"] for line in lines] == [1, 2, 3, 4]
    assert lines[-1]["hash"] == desk.get("progress").json()["head"]
    assert desk.get("ledger?after=4").json() == {"lines": [], "next": None}


MADE = DecisionReply(200, 1, "ana", "x", "trial", 1.0, "r", False)


def test_every_call_of_the_client_is_a_route():
    made = [
        calls.markets(), calls.market("m"), calls.progress("m"), calls.register_agent("m", "a"), calls.settle("m"),
        calls.register_arm("m", "a", "x"), calls.agent("m", "a"), calls.start("m"), calls.open_season("m", 2),
        calls.seasons("m"), calls.withdraw_arm("m", "a", "x"), calls.join("m", "a"),
        calls.pause("m", "a", "down"),
        calls.decide("m", "q"), calls.decide_batch("m", ["q"]), calls.reward("m", "e", MADE, 1.0), calls.balances("m"),
        calls.decide_slate("m", "q"), calls.slate_batch("m", ["a", "b"], ["phone", "desk"]),
        calls.reward_batch("m", [("e", MADE, 1.0)]), calls.ledger("m"), calls.create_key("auditor"),
        calls.revoke_key("k"), calls.create_market(msgspec.convert(TERMS, type=calls.MarketSpec)),
    ]  # fmt: skip
    table = {
        (route.method, route.path.format(market="m", agent="a", arm="x", key="k")): (route.reply, route.body)
        for route in ROUTES
    }
    for call in made:
        body = None if call.body is None else type(call.body)
        assert table[call.method, call.path.partition("?")[0]] == (call.reply, body)
        if call.body is not None:
            assert msgspec.json.decode(json.dumps(msgspec.to_builtins(call.body)), type=body) == call.body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/keys", {"role": "platform"}),
        ("POST", "/v1/markets/feed/decisions", {"request_id": "r"}),
        ("POST", "/v1/markets/feed/settle", None),
    ],
)
def test_a_key_is_checked_again_when_the_body_is_there(method, path, body):
    with Desk() as desk:
        open_market(desk, {"ana": 1})
        key, sent = desk.make_key("platform"), []

        async def attack():
            arrived, begun = asyncio.Event(), asyncio.Event()

            async def receive():
                begun.set()
                await arrived.wait()
                return {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}

            async def send(message):
                sent.append(message)

            headers = [(b"authorization", f"Bearer {key}".encode())]
            scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b""}
            call = asyncio.ensure_future(desk.app(scope, receive, send))
            await begun.wait()
            revoked = await desk.http.delete(
                f"/v1/keys/{key.split('_')[1]}", headers={"Authorization": f"Bearer {desk.key}"}
            )
            assert revoked.status_code == 200
            arrived.set()
            await call

        before = len(desk.get("/v1/keys").json()["keys"])
        desk.runner.run(attack())
        assert sent[0]["status"] == 401
        assert len(desk.get("/v1/keys").json()["keys"]) == before
        assert desk.get("progress").json()["decisions"] == 0
        assert desk.get("").json()["state"] == "running"


def test_what_cannot_be_carried_is_one_refusal_and_nobody_else_is_concerned(desk):
    assert desk.post("/v1/markets", TERMS).status_code == 201
    writer = desk.app._service.writer
    before = writer.markets.by_name["feed"]
    reply = desk.post("/v1/markets", TERMS | {"market": "new", "max_agents": 10_000, "max_originals": 10_000})
    assert (reply.status_code, reply.json()["error"]) == (422, "invalid")
    assert desk.get("/v1/markets").json() == {"markets": ["feed"]}
    assert writer.markets.by_name["feed"] is before  # and not read back


@pytest.mark.parametrize(
    ("mechanism", "parameters", "agents", "room"),
    [("ucb1", {}, 1, 3), ("thompson", {}, 2, 2), ("h-etc-r", TERMS["parameters"], 1, 5), ("h-ucb", {}, 2, 4)],
)
def test_registrations_end_where_a_decision_would_take_too_long(mechanism, parameters, agents, room, monkeypatch):
    monkeypatch.setattr(limits, "MOST_COMPARED", 3)
    monkeypatch.setattr(limits, "MOST_REGISTERED", 5)
    with Desk() as desk:
        assert desk.post(
            "/v1/markets", TERMS | {"mechanism": mechanism, "parameters": parameters, "max_agents": agents}
        ).is_success
        for agent in range(agents):
            assert desk.post("agents", {"agent": f"agent{agent}"}).status_code == 201
        paths = [f"/v1/markets/feed/agents/agent{n % agents}/arms" for n in range(room + 1)]
        codes = [desk.post(path, {"arm": f"arm{n}"}).status_code for n, path in enumerate(paths)]
        assert codes == [201] * room + [409]
        assert [len(one["arms"]) for one in desk.get("progress").json()["agents"]] == [room // agents] * agents
        assert desk.post(paths[0], {"arm": "arm0"}).status_code == 200  # it has its place
