"""Advice at registration: what the reply names, who may read it, and that nothing else depends on titles."""

from cloneproof.serve.market.replay import restore, take_snapshot
from cloneproof.serve.offline import replay_all
from support.service import DICE, SECRET, Desk, declared, replayed, sqlite


def opened(titles):
    market = declared()
    market.register_agent("ana", 1000)
    for arm, title in titles.items():
        market.register_arm("ana", arm, 1000, None, title)
    return market


def test_titles_are_stored_with_the_arm_and_neither_dice_nor_replay_depend_on_them():
    market, plain = opened({"a": "Stone mug", "b": "NEW stone mug"}), opened({"a": None, "b": None})
    assert market.register_arm("ana", "a", 1000, None, "Stone mug") is None  # known already
    assert market.register_arm("ana", "a", 1000, None, "Stone cup").title == "Stone cup"
    assert market.start(1500).registered == plain.start(1500).registered
    assert restore(take_snapshot(market), SECRET).registry.titles() == [
        ("ana", "a", "Stone cup"), ("ana", "b", "NEW stone mug")]  # fmt: skip
    lines = market.chain.take().lines
    assert any(b'"title":"Stone cup"' in line for line in lines)
    assert replayed(lines, DICE).market.registry.titles()


def served(desk, market, **terms):
    """The replies to three registrations by the platform, and to one by an agent with a key of its own."""
    base = f"/v1/markets/{market}"
    assert desk.post("/v1/markets", {"market": market, "mechanism": "ucb1", "horizon": 9, **terms}).status_code == 201
    for agent in ("ana", "bo"):
        desk.post(f"{base}/agents", {"agent": agent})
    listed = (("ana", "a", "Copper kettle"), ("ana", "b", "NEW copper kettle"), ("bo", "x", "COPPER KETTLE!"))
    replies = [
        desk.post(f"{base}/agents/{agent}/arms", {"arm": arm, "title": title}).json() for agent, arm, title in listed
    ]
    key = desk.post("/v1/keys", {"role": "agent", "agent": "bo"}).json()["key"]
    own = desk.post(f"{base}/agents/bo/arms", {"arm": "y", "title": "Copper Kettle (sale)"}, key=key).json()
    return [reply["likely_copies"] for reply in (*replies, own)]


def test_a_registration_is_answered_with_likely_copies_and_is_never_refused_for_them(tmp_path):
    place = str(tmp_path / "market.db")
    with Desk(sqlite(place)) as desk:
        first, second, third, own = served(desk, "private")
        assert first == []
        assert [(one["agent"], one["arm"]) for one in second] == [("ana", "a")]
        assert second[0]["reason"] == "the same words; filler: new"
        assert {(one["agent"], one["arm"]) for one in third} == {("ana", "a"), ("ana", "b")}
        assert [(one["agent"], one["arm"]) for one in own] == [("bo", "x")]  # nothing of anybody else's
        *_, told = served(desk, "open", copy_advice="agents")
        assert [(one["reason"], one["agent"], one["arm"]) for one in told if one["agent"] != "bo"] == [
            ("a listing like this is registered", None, None)  # neither whose they are nor that there are two
        ]
    assert all(found.fits for found in replay_all(place))
