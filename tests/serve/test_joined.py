"""Agents that join a season that runs, by the API: when, with which draws, what is recorded and replayed."""

import pytest

from support.service import DICE, declared, open_market, replayed, with_arms

SLOTS = {"mechanism": "reservoir", "parameters": {"rounds": 2, "draws": 3, "threshold": 2}}
INDEX = {"mechanism": "reservoir-index", "parameters": {"draws": 3, "constant": 1.0}, "ends": "at-random"}


def register(desk, agent, *arms):
    desk.post("agents", {"agent": agent})
    return [desk.post(f"agents/{agent}/arms", {"arm": arm}).json() for arm in arms]


def join(desk, agent="eve", body=None, key=None):
    return desk.post(f"agents/{agent}/join", {} if body is None else body, key)


def test_who_joins_is_tested_at_the_end_of_the_pass_with_the_list_that_it_had(desk):
    open_market(desk, {"ana": 1, "bo": 1}, **SLOTS)
    desk.shown(1)
    assert register(desk, "eve", "eve-0", "eve-1")[1]["season"] == 2
    reply = join(desk)
    assert (reply.status_code, reply.json()) == (201, {
        "agent": "eve", "arm": None, "season": 1, "duplicate": False,
        "takes_effect": "at the end of the pass of tests that runs",
    })  # fmt: skip
    again = join(desk)
    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    (late,) = register(desk, "eve", "eve-2")  # frozen, like every list
    assert late["takes_effect"].startswith("when season 2 starts")
    first, rest = desk.shown(3), desk.shown(14)
    assert {agent for agent, _ in first} <= {"ana", "bo"}
    assert rest[0][0] == "eve"
    assert [agent for agent, _ in rest].count("eve") == 6
    assert {arm for agent, arm in rest if agent == "eve"} <= {"eve-0", "eve-1"}
    view = desk.get("agents/eve").json()
    assert [(arm["arm"], arm["season"]) for arm in view["arms"]] == [("eve-0", 1), ("eve-1", 1), ("eve-2", 2)]
    own = desk.call("GET", "/v1/markets/feed/ledger", key=desk.make_key("agent", "eve")).json()["lines"]
    assert [line["entry"]["kind"] for line in own][:4] == ["agent", "arm", "arm", "joined"]
    desk.post("settle", {"reason": "a test"})
    desk.post("seasons", {"season": 2})
    desk.post("start")
    assert "eve" in {agent for agent, _ in desk.shown(6)}


def test_under_the_index_who_joins_takes_part_at_once(desk):
    open_market(desk, {"ana": 1}, **INDEX)
    desk.shown(4)
    register(desk, "eve", "eve-0")
    assert join(desk).json()["takes_effect"] == "at once"
    assert desk.shown(3) == [("eve", "eve-0")] * 3


def refusal(reply):
    return reply.status_code, reply.json()["error"]


def test_after_a_pass_the_season_is_decided(desk):
    open_market(desk, {"ana": 1, "bo": 1}, **SLOTS)
    register(desk, "eve", "eve-0")
    desk.shown(2, 1.0)
    reply = join(desk)
    assert refusal(reply) == (409, "decided")
    assert reply.json()["message"] == "season 1 is decided; 'eve' takes part in the next one"


def test_who_cannot_join(desk):
    desk.post("/v1/markets", {"market": "feed", "horizon": 100, "beacon": "a beacon", **SLOTS})
    register(desk, "ana", "a")
    assert refusal(join(desk, "ana")) == (409, "season_open")
    desk.post("start", {"beacon": "first"})
    assert refusal(join(desk, "nobody")) == (404, "unknown_agent")
    register(desk, "eve")
    assert refusal(join(desk, body={"beacon": "second"})) == (409, "no_arms")
    register(desk, "eve", "e")
    assert refusal(join(desk)) == (422, "beacon")
    assert refusal(join(desk, body={"beacon": "first"})) == (422, "beacon")  # known when she registered
    assert refusal(join(desk, key=desk.make_key("agent", "eve"))) == (403, "forbidden")
    assert join(desk, body={"beacon": "second"}).status_code == 201
    desk.post("settle", {"reason": "a test"})
    assert refusal(join(desk)) == (409, "season_settled")


def played(settled=False, reward=0.0, **terms):
    """A market in which Eve registers, somebody is rewarded, and she joins; with its lines."""
    market = declared(**(terms or SLOTS))
    with_arms(market, {"ana": 2, "bo": 1}).start(1000)
    first = market.decide("first", 1000)
    with_arms(market, {"eve": 50}, 1500)
    market.reward("first", first.id, reward, 1500, None)
    market.join("eve", 2000)
    for number in range(12):
        entry = market.decide(f"r{number}", 2000)
        market.reward(f"e{number}", entry.id, 0.0, 2000, None)
    if settled:
        market.end(3000, "a test")
        market.settle(3000)
    return market, market.chain.take().lines


def test_the_draws_of_who_joins_follow_from_all_that_came_before():
    """So nobody knows them when she registers: another reward in between, and they are others."""
    held = []
    for reward in (0.0, 1.0, 0.0):
        market, _ = played(reward=reward)
        held.append([arm for agent, arm in market.session.state.candidates if agent == 2])
        assert market.session.registration.agent_keys[2] >= 1 << 31
    assert held[0] == held[2] != held[1]


def test_with_a_beacon_nothing_that_the_platform_chooses_is_in_the_draws_of_who_joins():
    """Not the order of rewards that it holds, say: the key, the registration and the beacon's value alone."""
    held = []
    for order, value in (([0, 1], "second"), ([1, 0], "second"), ([], "second"), ([0, 1], "third")):
        market = declared(beacon="drand", **SLOTS)
        with_arms(market, {"ana": 2, "bo": 1}).start(1000, "first")
        made = [market.decide(f"r{number}", 1000) for number in range(2)]
        with_arms(market, {"eve": 50}, 1500)
        for number in order:
            market.reward(f"e{number}", made[number].id, float(number), 1500, None)
        market.join("eve", 2000, value)
        held.append([arm for agent, arm in market.session.state.candidates if agent == 2])
        replayed(market.chain.take().lines, DICE)
    assert held[0] == held[1] == held[2] != held[3]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reservoir", "its tests follow those of the others, on pages of their own"),
        ("reservoir-streams", "on pages of its own, at once after the first 52 pages (or after other newcomers)"),
    ],
)
def test_on_pages_the_answer_to_a_join_says_when_the_newcomer_is_shown(desk, name, words):
    own = {"reservoir": {"rounds": 2, "draws": 2}, "reservoir-streams": {"rotations": 2, "blocks": 8}}[name]
    sellers = {"ana": 1, "bo": 1, "cy": 1}
    open_market(desk, sellers, mechanism=name, parameters=own, positions=[1.0, 0.5], horizon=2000)
    register(desk, "eve", "eve-0")
    reply = join(desk)
    assert (reply.status_code, reply.json()["takes_effect"]) == (201, words)
