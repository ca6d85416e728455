"""Withdrawing an arm by the API: what is shown, recorded and replayed, and what carries over to the next season."""

import pytest

from cloneproof.serve.market.replay import Misfit
from cloneproof.serve.offline import replay_all
from support.service import DICE, Desk, changed, declared, open_market, replayed, sqlite, started, with_arms

FEED = "/v1/markets/feed"
SLOTS = {"mechanism": "reservoir", "parameters": {"rounds": 2, "draws": 3, "threshold": 2}}


def withdraw(desk, agent, arm, key=None, reason="sold out"):
    return desk.call("DELETE", f"{FEED}/agents/{agent}/arms/{arm}", {"reason": reason}, key)


def arms_of(shown):
    return {arm for _, arm in shown}


def register(desk, agent, arm):
    return desk.post(f"agents/{agent}/arms", {"arm": arm}).json()


def test_the_reply_to_a_registration_says_when_it_takes_effect(desk):
    desk.post("/v1/markets", spec_body())
    assert desk.post("agents", {"agent": "ana"}).json()["takes_effect"] == "when season 1 starts"
    assert register(desk, "ana", "a")["takes_effect"] == "when season 1 starts"
    desk.post("start")
    late = register(desk, "ana", "b")
    assert (late["season"], late["takes_effect"]) == (
        2, "when season 2 starts: season 1 is running and closed for registration",
    )  # fmt: skip
    assert register(desk, "ana", "a")["takes_effect"] == "it takes part in season 1, which is running"
    desk.post("settle", {"reason": "a test"})
    assert "season 1 is settled" in desk.post("agents", {"agent": "bo"}).json()["takes_effect"]


def spec_body(**changes):
    return {"market": "feed", "horizon": 1000, "wait_rounds": 1000, **SLOTS, **changes}


def test_a_withdrawn_arm_is_shown_no_more_and_its_agent_is_out_once_it_is_reached(desk):
    open_market(desk, {"ana": 1, "bo": 1}, **SLOTS)
    first = desk.decide("first")  # awaits its reward
    mine, other = first["agent"], {"ana": "bo", "bo": "ana"}[first["agent"]]
    reply = withdraw(desk, mine, f"{mine}-0").json()
    assert (reply["duplicate"], reply["season"]) == (False, 1)
    assert reply["takes_effect"].startswith("at once; when a slot that holds it is reached")
    assert reply["promise"].startswith("under this mechanism withdrawing does not pay")
    again = withdraw(desk, mine, f"{mine}-0")
    assert (again.status_code, again.json()) == (200, reply | {"duplicate": True})
    assert desk.reward("late", first["decision"]) == "recorded"
    assert arms_of(desk.shown(20)) == {f"{other}-0"}
    agents = {agent["agent"]: agent for agent in desk.get("progress").json()["agents"]}
    assert [agents[name]["out"] for name in (mine, other)] == [True, False]
    assert [agents[name]["arms"][0]["withdrawn"] for name in (mine, other)] == [True, False]
    assert agents[mine]["balance"] == 400_000
    kinds = [line["entry"]["kind"] for line in desk.get("ledger?limit=1000").json()["lines"]]
    assert kinds.count("withdrawn") == 1
    own = desk.call("GET", f"{FEED}/ledger", key=desk.make_key("agent", mine)).json()["lines"]
    assert [line["entry"] for line in own if line["entry"]["kind"] == "withdrawn"] == [
        {
            "kind": "withdrawn", "at": own[-1]["entry"]["at"], "agent": mine, "arm": f"{mine}-0", "season": 1,
            "by": "platform", "reason": "sold out",
        }
    ]  # fmt: skip


def test_without_slots_the_arm_is_skipped_and_the_reply_says_that_nothing_is_promised(desk):
    open_market(desk, {"ana": 2, "bo": 1}, mechanism="ucb1", parameters={})
    reply = withdraw(desk, "ana", "ana-1").json()
    assert reply["takes_effect"] == "at once; the mechanism skips it"
    assert reply["promise"] == "none: nothing is promised about withdrawals under this mechanism"
    assert arms_of(desk.shown(20)) == {"ana-0", "bo-0"}


def test_the_platform_says_why_it_withdraws_and_a_replay_counts_it(tmp_path):
    """Withdrawing whoever leads would be a way to choose who is paid; by an agent it needs no reason."""
    path = str(tmp_path / "market.db")
    with Desk(sqlite(path)) as desk:
        open_market(desk, {"ana": 2, "bo": 2, "cy": 1}, **SLOTS)
        ana = desk.make_key("agent", "ana")
        refused = withdraw(desk, "bo", "bo-0", reason=None)
        assert (refused.status_code, refused.json()["error"]) == (422, "no_reason")
        assert withdraw(desk, "ana", "ana-0", ana, reason=None).status_code == 200
        for arm in ("bo-0", "bo-1"):
            assert withdraw(desk, "bo", arm, reason="a complaint").status_code == 200
        assert withdraw(desk, "bo", "bo-1", reason=None).json()["duplicate"]
        desk.shown(4)
        lines = [line["entry"] for line in desk.get("ledger?limit=100").json()["lines"]]
    told = [(line["agent"], line["by"], line.get("reason")) for line in lines if line["kind"] == "withdrawn"]
    assert told == [("ana", "agent", None), ("bo", "platform", "a complaint"), ("bo", "platform", "a complaint")]
    (found,) = replay_all(path)
    words = "withdrawals by agents: 1, by the platform: 2, because of 'a complaint' (2)"
    assert found.fits
    assert words in found.statement
    assert [(one["agent"], one["arm"], one["reason"]) for one in found.forced] == [
        ("bo", "bo-0", "a complaint"), ("bo", "bo-1", "a complaint"),
    ]  # fmt: skip


def test_the_platform_pauses_with_a_reason_and_a_replay_counts_it(tmp_path):
    path = str(tmp_path / "market.db")
    with Desk(sqlite(path)) as desk:

        def pause(agent, key=None, **body):
            return desk.post(f"agents/{agent}/pause", body, key)

        open_market(desk, {"ana": 2, "bo": 2, "cy": 1}, **SLOTS)
        for body, status, error in (
            ({}, 422, "invalid"),
            ({"reason": "down", "arm": "bo-9"}, 409, "not_playing"),
            ({"reason": "down", "arm": 3}, 422, "invalid"),
            ({"reason": " \n"}, 422, "invalid"),
        ):
            reply = pause("bo", **body)
            assert (reply.status_code, reply.json()["error"]) == (status, error)
        assert pause("ana", desk.make_key("agent", "ana"), reason="mine is down").status_code == 403
        assert pause("bo", reason="down").status_code == 200
        assert pause("bo", reason="down again").status_code == 200  # which changes nothing
        assert "bo-0" not in (names := arms_of(desk.shown(12)))
        assert "bo-1" not in names
        assert pause("bo", reason="up", resume=True).status_code == 200
        assert pause("cy", arm="cy-0", reason="sold out").status_code == 200
        assert "cy-0" not in arms_of(desk.shown(6))
        told = [
            each["entry"] for each in desk.get("ledger?limit=100").json()["lines"] if each["entry"]["kind"] == "pause"
        ]
    assert [(one["agent"], one.get("arm"), one.get("resumed", False)) for one in told] == [
        ("bo", None, False), ("bo", None, True), ("cy", "cy-0", False),
    ]  # fmt: skip
    (found,) = replay_all(path)
    assert found.fits
    assert "pauses by agents: 0, by the platform: 2, because of 'down' (1), 'sold out' (1)" in found.statement


def test_a_replay_refuses_a_withdrawal_by_the_platform_without_a_reason():
    *_, lines = played()
    at = next(n for n, line in enumerate(lines) if b'"withdrawn"' in line)
    forced = [*lines[:at], changed(lines[at], n=at + 1, by="platform")]
    with pytest.raises(Misfit, match="expected a reason"):
        replayed(forced, DICE)


def test_a_withdrawn_arm_is_in_no_later_season_unless_it_is_registered_again(desk):
    open_market(desk, {"ana": 3, "bo": 1}, **SLOTS, max_arms=3)
    for arm in ("ana-0", "ana-1"):
        withdraw(desk, "ana", arm)
    assert register(desk, "ana", "new")["season"] == 2  # in the place of one that is withdrawn
    again = register(desk, "ana", "ana-1")
    assert (again["season"], again["duplicate"]) == (2, False)
    assert desk.post("agents/ana/arms", {"arm": "one more"}).status_code == 422
    assert desk.post("agents/ana/arms", {"arm": "more"}).json()["error"] == "quota"
    assert not {"ana-0", "ana-1", "new"} & arms_of(desk.shown(30))
    desk.post("settle", {"reason": "a test"})
    desk.post("seasons", {"season": 2})
    assert [arm["arm"] for arm in desk.get("agents/ana").json()["arms"]] == ["ana-1", "ana-2", "new"]
    withdraw(desk, "ana", "new")  # before the start: as if it had never been registered
    assert withdraw(desk, "ana", "new").json()["takes_effect"] == "season 2 starts without it"
    assert [arm["arm"] for arm in desk.get("agents/ana").json()["arms"] if not arm["withdrawn"]] == ["ana-1", "ana-2"]
    desk.post("start")
    assert arms_of(desk.shown(40)) <= {"ana-1", "ana-2", "bo-0"}


def test_with_nobody_left_nothing_is_served_whatever_happens_then(tmp_path):
    """Also after a crash, from the ledger alone, and after a restart, from a snapshot; a settlement needs no reason."""
    path = tmp_path / "market.db"
    desk = Desk(sqlite(path))
    open_market(desk, {"ana": 1}, **SLOTS)
    made = desk.decide("first")
    withdraw(desk, "ana", "ana-0")
    for way in (Desk.crash, Desk.close, Desk.close):
        refused = desk.post("decisions", {"request_id": "second"})
        assert (refused.status_code, refused.json()["error"]) == (409, "nobody_left")
        assert refused.json()["message"] == "withdrawals have left nobody to serve in season 1; settle it"
        way(desk)
        desk = Desk(sqlite(path))
        desk.reward("e", made["decision"])
    kinds = [line["entry"]["kind"] for line in desk.get("ledger").json()["lines"]]
    assert kinds[4:] == ["decision", "withdrawn", "nobody", "reward"]
    assert desk.post("settle").status_code == 200
    desk.close()
    assert replay_all(str(path))[0].fits


def played():
    """A market in which Ana withdraws her champion, with its lines."""
    market = started({"ana": 2, "bo": 1}, **SLOTS)
    for number in range(8):
        entry = market.decide(f"r{number}", 2000)
        market.reward(f"e{number}", entry.id, 1.0, 2000, None)
    market.withdraw_arm(entry.agent, entry.arm, 2000)
    for number in range(8, 12):
        market.decide(f"r{number}", 3000)
    return market, entry, market.chain.take().lines


def test_a_session_that_was_prepared_for_other_arms_is_not_used():
    """While a large season is prepared, an arm may be withdrawn and another one registered."""
    market = with_arms(declared(**SLOTS), {"ana": 2})
    registered = market.registry.participants(1)
    prepared = market.open_session(registered)
    market.withdraw_arm("ana", "ana-0", 1000)
    market.register_arm("ana", "other", 1000)
    assert market.registry.participants(1) == registered
    market.start(2000, None, prepared)
    market.decide("r", 2000)
    replayed(market.chain.take().lines, DICE)
