"""Declarations and registrations at the door: bounded, and computed beside the event loop."""

import sys
import threading

import pytest

from cloneproof.errors import Refused
from cloneproof.serve.http import handlers
from cloneproof.serve.ledger.terms import complete
from cloneproof.serve.market import declaration
from cloneproof.serve.market.declaration import declared_market
from cloneproof.serve.market.engine import MarketEngine
from support.service import TERMS, Desk, spec

HOLD_OUT = {"mechanism": "holdout-h-etc", "parameters": {}, "gap": 0.1, "agent_gap": 0.1, "max_originals": 2}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agent_gap": 1e-300}, "expected agent_gap of at least 1e-07, got 1e-300"),
        ({"gap": 1e-300}, "expected gap of at least 1e-07"),
        ({"max_agents": 10_000, "max_originals": 10_000}, "max_agents times max_originals of at most 1000000"),
        ({"mechanism": "reservoir", "parameters": {"rounds": 5, "draws": 10**9, "threshold": 2}}, "times draws of at"),
    ],
)
def test_what_cannot_be_carried_is_one_refusal_and_nobody_else_is_concerned(changes, words):
    with Desk() as desk:
        assert desk.call("POST", "/v1/markets", TERMS).status_code == 201
        writer = desk.app._service.writer
        before = writer.markets.by_name["feed"]
        reply = desk.call("POST", "/v1/markets", TERMS | HOLD_OUT | {"market": "new"} | changes)
        assert reply.status_code == 422
        assert words in reply.json()["message"]
        assert desk.call("GET", "/v1/markets").json() == {"markets": ["feed"]}
        assert writer.markets.by_name["feed"] is before  # and not read back


def calls_of(**changes):
    """How many functions are called for a declaration."""
    whole, count = complete(spec(**(HOLD_OUT | changes))), 0

    def look(frame, event, what):
        nonlocal count
        count += event == "call"

    sys.setprofile(look)
    try:
        MarketEngine(whole)
    finally:
        sys.setprofile(None)
    return count


def test_the_work_of_a_declaration_is_proportional_to_its_agents_whatever_their_originals():
    calls_of()  # imports and caches
    few = calls_of(max_agents=100, max_originals=2)
    assert calls_of(max_agents=100, max_originals=1000) <= 1.05 * few
    assert calls_of(max_agents=400, max_originals=2) <= 4.2 * few


def test_a_large_declaration_is_computed_beside_the_event_loop(monkeypatch):
    where = []

    def noted(body):
        where.append(threading.current_thread().name)
        return declared_market(body)

    monkeypatch.setattr(handlers, "declared_market", noted)
    with Desk() as desk:
        large = TERMS | HOLD_OUT | {"max_agents": 10_000, "max_originals": 100}
        assert desk.call("POST", "/v1/markets", large).status_code == 201
        assert desk.call("POST", "/v1/markets", large).status_code == 200  # the same words again
    assert len(where) == 2
    assert all(name.startswith("aside") for name in where)


@pytest.mark.parametrize(
    ("mechanism", "parameters", "agents", "room"),
    [("ucb1", {}, 1, 3), ("thompson", {}, 2, 3), ("h-etc-r", TERMS["parameters"], 1, 5), ("h-ucb", {}, 2, 5)],
)
def test_registrations_end_where_a_decision_would_take_too_long(mechanism, parameters, agents, room, monkeypatch):
    monkeypatch.setattr(declaration, "MOST_COMPARED", 3)
    monkeypatch.setattr(declaration, "MOST_REGISTERED", 5)
    with Desk() as desk:
        assert desk.call("POST", "/v1/markets", TERMS | {"mechanism": mechanism, "parameters": parameters}).is_success
        for agent in range(agents):
            assert desk.call("POST", "/v1/markets/feed/agents", {"agent": f"agent{agent}"}).status_code == 201
        paths = [f"/v1/markets/feed/agents/agent{n % agents}/arms" for n in range(room + 1)]
        codes = [desk.call("POST", path, {"arm": f"arm{n}"}).status_code for n, path in enumerate(paths)]
        assert codes == [201] * room + [409]
        assert desk.call("POST", paths[0], {"arm": "arm0"}).status_code == 200  # it has its place


@pytest.mark.parametrize("late", [False, True])
def test_a_session_that_was_prepared_is_taken_only_if_it_still_fits(late):
    prepared_market, plain = (MarketEngine.open(complete(spec()), at=0) for _ in range(2))
    for market in (prepared_market, plain):
        market.register_agent("ana", 0)
        market.register_arm("ana", "a", 0)
    registered = prepared_market.registry.participants(1)
    prepared = 1, registered, prepared_market.open_session(registered)
    for market in (prepared_market, plain):
        if late:
            market.register_arm("ana", "b", 0)
    prepared_market.start(0, prepared)
    plain.start(0)
    assert (prepared_market.session is prepared[2]) is not late
    assert prepared_market.session.to_json() == plain.session.to_json()


def test_a_large_market_starts_from_a_prepared_session(monkeypatch):
    monkeypatch.setattr(handlers, "_QUICK", 1)
    threads, real = [], MarketEngine.open_session

    def noted(self, registered):
        threads.append(threading.current_thread().name)
        return real(self, registered)

    monkeypatch.setattr(MarketEngine, "open_session", noted)
    with Desk() as desk:
        desk.call("POST", "/v1/markets", TERMS)
        desk.call("POST", "/v1/markets/feed/agents", {"agent": "ana"})
        for arm in "ab":
            desk.call("POST", "/v1/markets/feed/agents/ana/arms", {"arm": arm})
        assert desk.call("POST", "/v1/markets/feed/start").json()["state"] == "running"
        assert desk.call("POST", "/v1/markets/feed/start").json()["state"] == "running"
    assert [name.startswith("aside") for name in threads] == [True]


def test_a_number_that_cannot_be_computed_with_is_refused(monkeypatch):
    def broken(market_spec):
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(declaration, "complete", broken)
    with pytest.raises(Refused, match="float division by zero"):
        declared_market(spec())
