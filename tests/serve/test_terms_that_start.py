"""Terms that no number of agents can start with, starts that do not fit, and joins: refused, and nothing changes."""

import pytest

from support.service import replayed

TWO = {"desk": 0.9, "phone": 0.1}
STREAMS = {"mechanism": "reservoir-streams", "positions": [1.0, 0.6], "horizon": 1000}
FREEZE = STREAMS | {"parameters": {"rotations": 2, "blocks": 8}}


def declare(desk, **terms):
    return desk.post("/v1/markets", {"market": "feed", **terms})


def register(desk, *agents):
    for agent in agents:
        assert desk.post("agents", {"agent": agent}).status_code == 201
        assert desk.post(f"agents/{agent}/arms", {"arm": "a"}).status_code == 201


def ledger(desk):
    return [line.line for line in desk.storage.lines(1, 0, 1000)]


NEVER = {
    "batches of bars": {
        "mechanism": "reservoir-bars", "parameters": {"bars": 0.1, "draws": 2}, "ends": "at-random", "horizon": 1000,
        "batch": 6,
    },
    "blocks that no quota makes whole": STREAMS | {
        "parameters": {"rotations": 1, "blocks": 8}, "batch": 6, "max_agents": 5,
    },
    "a laboratory that is longer for one agent": FREEZE | {"horizon": 15},
    "a laboratory that is longer in a segment": FREEZE | {"horizon": 100, "segments": TWO},
    "sums of rewards that no test can count": {
        "mechanism": "reservoir", "horizon": 100, "rewards": {"family": "exponential"}, "default_reward": 0.0,
        "parameters": {"rounds": 2, "draws": 2, "threshold": 1.0, "coins": False},
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", NEVER)
def test_terms_that_nobody_could_start_are_refused(kind, desk):
    reply = declare(desk, **NEVER[kind])
    assert (reply.status_code, reply.json()["error"]) == (422, "invalid")
    assert desk.get("/v1/markets").json()["markets"] == []


@pytest.mark.parametrize(
    ("terms", "agents", "said", "fits"),
    [
        (FREEZE | {"horizon": 100}, 12, "a laboratory that ends within 100 pages, got one of 214 for 12 agents", 5),
        (
            FREEZE | {"segments": TWO},
            12,
            "in segment 'phone': expected a laboratory that ends within 100 pages, got one of 214 for 12 agents",
            5,
        ),
        (FREEZE | {"parameters": {"rotations": 2, "blocks": 8, "turns": 3}}, 7, "turns=6 at least for 7 agents", 1),
    ],
)
def test_a_start_that_does_not_fit_is_refused_and_the_market_stays_open(terms, agents, said, fits, desk):
    assert declare(desk, **terms).status_code == 201
    names = [f"agent{number}" for number in range(agents)]
    register(desk, *names)
    before = ledger(desk)
    for _ in range(2):
        reply = desk.post("start")
        assert (reply.status_code, reply.json()["error"]) == (409, "agents")
        assert said in reply.json()["message"]
    assert desk.get("").json()["state"] == "open"
    assert ledger(desk) == before
    for name in names[fits:]:
        assert desk.call("DELETE", f"/v1/markets/feed/agents/{name}/arms/a", {"reason": "no room"}).status_code == 200
    assert desk.post("start").status_code == 200
    for segment in terms.get("segments", {None: 1.0}):
        assert desk.post("slates", {"request_id": f"of {segment}", "segment": segment}).status_code == 200


def test_many_arms_are_refused_likewise(desk):
    """A start of many arms is prepared beside the other calls."""
    assert declare(desk, **FREEZE | {"horizon": 100}).status_code == 201
    names = [f"agent{number}" for number in range(7)]
    register(desk, *names)
    for name in names:
        for arm in range(80):
            assert desk.post(f"agents/{name}/arms", {"arm": f"arm{arm}"}).status_code == 201
    assert desk.post("start").json()["error"] == "agents"


def test_a_join_that_could_not_have_started_is_refused_and_changes_nothing(desk):
    assert declare(desk, **FREEZE).status_code == 201
    register(desk, "ana", "bo")
    assert desk.post("start").status_code == 200
    assert desk.post("slates", {"request_id": "1"}).status_code == 200
    register(desk, "eve")
    before = ledger(desk)
    reply = desk.post("agents/eve/join", {})
    assert (reply.status_code, reply.json()["error"]) == (409, "no_joiners")
    assert "expected more agents than places" in reply.json()["message"]
    assert ledger(desk) == before
    assert desk.post("slates", {"request_id": "2"}).status_code == 200
    replayed(ledger(desk), desk.app._service.writer.markets.market("feed").dice)
