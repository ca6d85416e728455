"""Weights by the API: what is drawn, recorded, hashed and replayed, and when a change takes effect."""

import json

import pytest

from cloneproof.errors import Refused
from cloneproof.serve.market.replay import Misfit
from cloneproof.serve.offline import replay_all
from support.service import DICE, Desk, declared, replayed, sqlite

SLOTS = {"mechanism": "reservoir", "parameters": {"rounds": 2, "draws": 9, "threshold": 2}, "horizon": 30}
WEIGHTS = {"ana": {"hit": 5, "new": 1, "dud": 0}, "bo": {"song": 1}}
LATER = {"ana": {"hit": 0, "new": 1, "dud": 7}, "bo": {"song": 1}}


def opened(weights=WEIGHTS, terms=SLOTS):
    market = declared(**terms)
    for agent, arms in weights.items():
        market.register_agent(agent, 1000)
        for arm, weight in arms.items():
            market.register_arm(agent, arm, 1000, None if weight == 1 else weight)
    return market


def played(market, season):
    """The arms that a season shows, with their probabilities; rewards of 0 come at once."""
    entries = [market.decide(f"view {season}.{number}", 2000) for number in range(30)]
    market.reward_many([(f"click {entry.id}", entry.id, 0.0) for entry in entries], 2000)
    return [(entry.agent, entry.arm, entry.probability) for entry in entries]


def two_seasons():
    """Weights of a first season, changed while it runs, and the second season; the market's lines, and both."""
    market = opened()
    market.start(1500)
    changes = [market.register_arm("ana", arm, 1600, weight) for arm, weight in LATER["ana"].items()]
    assert [change and change.season for change in changes] == [2, None, 2]
    assert {arm for _, arm, _ in played(market, 1)} <= {"hit", "new", "song"}
    market.settle(3000)
    market.open_season(2, 3000)
    market.start(3000)
    assert {arm for _, arm, _ in played(market, 2)} <= {"new", "dud", "song"}
    lines = market.chain.take().lines
    again = replayed(lines, DICE).market
    assert again.chain.hash == market.chain.hash
    assert again.session.registration == market.session.registration
    return lines


def test_a_season_is_drawn_by_the_weights_of_its_start_and_changes_wait_for_the_next():
    lines = [json.loads(line) for line in two_seasons()]
    entered = [(line["arm"], line["season"], line.get("weight")) for line in lines if line["kind"] == "arm"]
    assert entered == [("hit", 1, 5), ("new", 1, None), ("dud", 1, 0), ("song", 1, None), ("hit", 2, 0), ("dud", 2, 7)]


def test_the_start_hashes_weights_and_a_weight_of_1_is_none():
    def digest(hit):
        market = opened(WEIGHTS | {"ana": {"hit": 1, "new": 1}})
        market.register_arm("ana", "hit", 1000, hit)
        return market.start(1500).registered

    assert len({digest(hit) for hit in (None, 0, 2, 3)}) == 4
    assert digest(1) == digest(None)


def test_a_session_that_was_prepared_for_other_weights_is_not_used():
    market = opened()
    registered = market.registry.participants(1)
    prepared = market.open_session(registered)
    market.register_arm("ana", "hit", 1000, 6)
    market.start(2000, None, prepared)
    assert market.session.registration.weights == {"ana": (6, 1, 0)}


def test_who_joins_a_season_brings_its_weights():
    market = opened(terms=SLOTS)
    market.start(1500)
    market.register_agent("cy", 1600)
    market.register_arm("cy", "film", 1600, 0)
    with pytest.raises(Refused, match="expected an arm of 'cy', got none"):
        market.join("cy", 1600)
    market.register_arm("cy", "art", 1600, 4)
    market.join("cy", 1600)
    assert market.session.registration.weights == {"ana": (5, 1, 0), "cy": (0, 4)}
    assert {arm for agent, arm, _ in played(market, 1) if agent == "cy"} == {"art"}
    lines = market.chain.take().lines
    assert replayed(lines, DICE).market.session.registration.weights == {
        "ana": (5, 1, 0), "cy": (0, 4),
    }  # fmt: skip
    with pytest.raises(Misfit):
        replayed([line.replace(b'"weight":4', b'"weight":1') for line in lines], DICE)


def test_who_has_only_arms_of_weight_0_takes_no_part():
    market = opened({"ana": {"hit": 0}, "bo": {"song": 1}})
    assert market.registry.participants(1) == {"bo": 1}
    with pytest.raises(Refused, match="expected at least one agent with an arm"):
        opened({"ana": {"hit": 0}}).start(1500)


def served(desk):
    """Weights through the whole service: replies, refusals, a restart, and the next season."""
    arm = "agents/ana/arms"
    assert desk.post("/v1/markets", {"market": "feed", **SLOTS}).status_code == 201
    desk.post("agents", {"agent": "ana"})
    for name, weight in WEIGHTS["ana"].items():
        assert desk.post(arm, {"arm": name, "weight": weight}).status_code == 201
    assert desk.post(arm, {"arm": "hit"}).json()["duplicate"]  # says nothing of its weight
    again = desk.post(arm, {"arm": "hit", "weight": 5})
    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    for wrong in (-1, 1001, 0.5, "2", [1]):
        reply = desk.post(arm, {"arm": "hit", "weight": wrong})
        assert (reply.status_code, reply.json()["error"]) == (422, "invalid"), wrong
        assert "weight" in reply.json()["message"]
    desk.post("start")
    shown = {made["arm"]: made["probability"] for made in desk.decide_batch(f"view {n}" for n in range(30))}
    assert shown.keys() <= {"hit", "new"}
    changed = desk.post(arm, {"arm": "hit", "weight": 2})
    assert changed.status_code == 201
    assert changed.json()["takes_effect"].startswith("when season 2 starts: season 1 is running")
    assert [each["weight"] for each in desk.get("agents/ana").json()["arms"]] == [2, 1, 0]


def test_weights_are_served(tmp_path):
    place = str(tmp_path / "market.db")
    with Desk(sqlite(place)) as desk:
        served(desk)
        assert desk.post("/v1/markets", {"market": "plain", "mechanism": "ucb1", "horizon": 9}).status_code == 201
        desk.post("/v1/markets/plain/agents", {"agent": "ana"})
        refusal = desk.post("/v1/markets/plain/agents/ana/arms", {"arm": "hit", "weight": 1})
        assert (refusal.status_code, refusal.json()["message"]) == (
            422, "weights expect a mechanism that draws from arms, such as 'reservoir', got 'ucb1'; "
            "leave them out, or use another mechanism",
        )  # fmt: skip
        assert desk.get("/v1/markets/plain/agents/ana").json()["arms"] == []
    assert [found.fits for found in replay_all(place)] == [True, True]
