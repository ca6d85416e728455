"""Slates by the API: in terms, requests, rewards, the ledger, snapshots, and replays."""

from cloneproof.serve.offline import replay_all
from support.service import Desk, open_market, sqlite

PAGES = {
    "mechanism": "reservoir", "parameters": {"rounds": 2, "draws": 3}, "positions": [1.0, 0.6, 0.4], "horizon": 200,
}  # fmt: skip
DEVICES = PAGES | {"segments": {"phone": 0.7, "desk": 0.3}, "positions": {"phone": 2, "desk": [1.0, 0.6, 0.4]}}
STREAMS = PAGES | {"mechanism": "reservoir-streams", "parameters": {"rotations": 2, "blocks": 4}}
ARMS = {"ana": 2, "bo": 1, "cy": 3, "dee": 2}


def ask(desk, request, path="slates", **more):
    return desk.post(path, {"request_id": request} | more)


def test_a_page_has_a_decision_and_a_reward_for_each_place(desk):
    open_market(desk, ARMS, **PAGES)
    made = ask(desk, "a").json()
    assert (made["kind"], made["empty"], made["duplicate"]) == ("slate", [], False)
    assert [(one["decision"], one["place"]) for one in made["decisions"]] == [(1, 1), (2, 2), (3, 3)]
    assert [one["phase"] for one in made["decisions"]] == ["trial"] * 3
    again = ask(desk, "a").json()
    assert again["duplicate"]
    assert [one["arm"] for one in again["decisions"]] == [one["arm"] for one in made["decisions"]]
    results = desk.post("slates/batch", {"items": [{"request_id": name} for name in "bcb"]}).json()["results"]
    assert [(one["duplicate"], one["decisions"][0]["decision"]) for one in results] == [
        (False, 4),
        (False, 7),
        (True, 4),
    ]
    for number, worth in ((2, 1.0), (3, 0.0)):
        body = {"event_id": f"e{number}", "decision": number, "request_id": "a", "value": worth}
        assert desk.post("rewards", body).json()["result"] == "recorded"
        assert desk.post("rewards", body).json()["result"] == "duplicate"
    body = {"event_id": "other", "decision": 4, "request_id": "a", "value": 1.0}
    assert desk.post("rewards", body).json()["error"] == "other_request"
    found = desk.get("progress").json()
    assert (found["round"], found["decisions"], found["pending"]) == (3, 9, 7)
    assert 'cloneproof_season_rounds{market="feed"} 3.0' in desk.call("GET", "/metrics").text


def test_places_without_a_provider_are_told(desk):
    open_market(desk, {"ana": 2, "bo": 1}, **PAGES)
    made = ask(desk, "a").json()
    assert ([one["place"] for one in made["decisions"]], made["empty"]) == ([1, 2], [3])
    line = desk.get("ledger?limit=100").json()["lines"][-1]["entry"]
    assert (line["kind"], line["places"], len(line["shown"])) == ("slate", 3, 2)


def test_decisions_and_slates_refuse_each_other(desk):
    open_market(desk, ARMS, **PAGES)
    open_market(desk, ARMS, market="plain")
    for path, wanted in (
        ("/v1/markets/feed/decisions", "a call of slates"),
        ("/v1/markets/plain/slates", "no positions"),
    ):
        reply = desk.post(path, {"request_id": "a"})
        assert (reply.status_code, reply.json()["error"]) == (409, "positions")
        assert wanted in reply.json()["message"]
        (one,) = desk.post(f"{path}/batch", {"items": [{"request_id": "a"}]}).json()["results"]
        assert one == reply.json()
    assert desk.get("progress").json()["decisions"] == 0


def test_an_agent_sees_its_own_places_only(desk):
    open_market(desk, ARMS, **PAGES)
    for name in "abcd":
        ask(desk, name)
    key = desk.post("/v1/keys", {"role": "agent", "agent": "ana"}).json()["key"]
    lines = [line["entry"] for line in desk.get("ledger?limit=100", key).json()["lines"]]
    pages = [line for line in lines if line["kind"] == "slate"]
    assert pages
    assert all("id" not in page and {one["agent"] for one in page["shown"]} == {"ana"} for page in pages)
    assert len({one["id"] for page in pages for one in page["shown"]}) == sum(len(page["shown"]) for page in pages)


def test_a_restart_answers_with_the_same_page_and_goes_on_with_the_next(tmp_path):
    place = tmp_path / "market.db"
    desk = Desk(sqlite(place, interval=5))
    open_market(desk, ARMS, **DEVICES)
    for number, way in enumerate((Desk.crash, Desk.close)):
        page = ask(desk, f"{number}", segment="desk").json()
        assert [one["decision"] for one in page["decisions"]] == [3 * number + place for place in (1, 2, 3)]
        way(desk)
        desk = Desk(sqlite(place, interval=5))
        again = page | {"duplicate": True, "decisions": [one | {"duplicate": True} for one in page["decisions"]]}
        assert ask(desk, f"{number}", segment="desk").json() == again
        assert desk.get("progress").json()["page"] == page
    desk.close()
    assert replay_all(str(place))[0].fits
