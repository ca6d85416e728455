"""Segments by the API: in terms, requests, the ledger, snapshots, replays and metrics; their ends, and further ones."""

import json
import random

import msgspec
import pytest

from cloneproof.errors import Refused
from cloneproof.mechanisms.segment import Segment
from cloneproof.serve.http.monitoring import _segment_rounds
from cloneproof.serve.market.replay import restore, take_snapshot
from cloneproof.serve.market.terms import complete
from support.service import DICE, SECRET, open_market, published, replayed, spec, started, with_arms

TWO = {"code": 0.3, "writing": 0.7}
SLOTS = {"mechanism": "reservoir", "parameters": {"rounds": 2, "draws": 3, "threshold": 2}, "segments": TWO}
RANDOM = {
    "mechanism": "reservoir-index", "parameters": {"draws": 2, "constant": 2.0}, "segments": TWO,
    "ends": "at-random", "horizon": 60, "wait_rounds": 60,
}  # fmt: skip
ARMS = {"ana": 2, "bo": 1}


def ask(desk, request, segment=None):
    return desk.post("decisions", {"request_id": request} | ({} if segment is None else {"segment": segment}))


def test_a_request_names_its_segment(desk):
    open_market(desk, ARMS, **SLOTS)
    assert desk.get("").json()["terms"]["segments"] == TWO
    made = ask(desk, "a", "code").json()
    assert (made["decision"], made["segment"]) == (1, "code")
    assert ask(desk, "a", "writing").json() == made | {"duplicate": True}
    for segment, status, code, words in (
        ("coding", 404, "unknown_segment", "expected one of the 2 segments, got 'coding'; see the terms"),
        (None, 422, "invalid", "expected a segment, such as 'code', got none"),
        ("a b", 422, "invalid", "segment"),
    ):
        reply = ask(desk, f"{segment}", segment)
        assert (reply.status_code, reply.json()["error"]) == (status, code)
        assert words in reply.json()["message"]
    items = [("b", "code"), ("c", "coding"), ("d", "writing"), ("e", None), ("f", "code"), ("c", "coding")]
    body = {"items": [{"request_id": request, "segment": segment} for request, segment in items]}
    results = desk.post("decisions/batch", body).json()["results"]
    assert [one.get("segment", one.get("error")) for one in results] == [
        "code", "unknown_segment", "writing", "invalid", "code", "unknown_segment",
    ]  # fmt: skip
    assert [one["decision"] for one in results if "decision" in one] == [2, 3, 4]
    entries = [line["entry"] for line in desk.get("ledger?limit=100").json()["lines"]]
    assert [one["segment"] for one in entries if one["kind"] == "decision"] == ["code", "code", "writing", "code"]
    assert desk.get("progress").json()["segments"] == [
        {"segment": "writing", "fraction": 0.7, "decisions": 1, "ended": False},
        {"segment": "code", "fraction": 0.3, "decisions": 3, "ended": False},
    ]


def test_a_market_without_segments_refuses_one(desk):
    open_market(desk, ARMS)
    reply = ask(desk, "a", "code")
    assert (reply.status_code, reply.json()["error"]) == (422, "invalid")
    assert "as the market has none" in reply.json()["message"]
    made = ask(desk, "a").json()
    assert "segment" not in made
    assert desk.get("progress").json()["segments"] == []


def whole_season(market, season=1):
    """Play until every segment has ended; how many requests each refused."""
    dice, refused, number = random.Random(season), dict.fromkeys(market.spec.segments, 0), 0
    while not market.over:
        number += 1
        name, at, segment = f"{season}.{number}", 2000 + number, dice.choice(list(refused))
        part = market.session.begun.get(segment)
        if part is not None and part.round == part.last:
            with pytest.raises(Refused, match=f"segment '{segment}' of season {season} has ended") as refusal:
                market.decide(name, at, segment)
            assert (refusal.value.status, refusal.value.code) == (409, "segment_ended")
            refused[segment] += 1
        else:
            market.reward(name, market.decide(name, at, segment).id, float(dice.random() < 0.5), at, None)
    return refused


def two_seasons():
    """A market of two seasons that end at random, the second with one more segment; what was refused, all lines."""
    market = started(ARMS, **RANDOM)
    refused = [whole_season(market)]
    market.settle(9000)
    market.open_season(2, 9000, {"code": 0.2, "writing": 0.5, "maths": 0.3})
    market.start(9000)
    refused.append(whole_season(market, 2))
    return market, refused, market.chain.take().lines


def test_each_segment_ends_by_itself_and_one_may_be_added_between_seasons():
    market, refused, lines = two_seasons()
    assert [set(one) for one in refused] == [{"code", "writing"}, {"code", "writing", "maths"}]
    assert all(sum(one.values()) > 0 for one in refused)
    assert market.spec.segments == {"code": 0.2, "writing": 0.5, "maths": 0.3}
    (opened,) = [json.loads(line) for line in lines if b'"kind":"season"' in line]
    assert opened["segments"] == market.spec.segments
    found = replayed(lines, DICE)
    assert found.market.session.to_json() == market.session.to_json()
    without = replayed(lines, published(lines))
    assert restore(take_snapshot(market), SECRET).spec == market.spec
    assert without.unchecked_from == 1 + next(n for n, line in enumerate(lines) if b'"started"' in line and n > 100)


@pytest.mark.parametrize(
    ("segments", "words"),
    [
        ({"code": 0.5, "maths": 0.5}, "expected all segments of the market, got none for 'writing'"),
        ({"code": 0.5, "writing": 0.6}, "add up to 1, got a sum of 1.1"),
    ],
)
def test_further_segments_that_do_not_fit_change_nothing(segments, words):
    market = started(ARMS, **SLOTS)
    with pytest.raises(Refused, match="other segments, which are fixed"):
        market.open_season(1, 2000, {"code": 0.2, "writing": 0.5, "maths": 0.3})
    market.end(2000, "a test")
    market.settle(2000)
    before = market.chain.head
    with pytest.raises(Refused, match=words):
        market.open_season(2, 2000, segments)
    assert (market.chain.head, market.spec.segments, market.season) == (before, TWO, 1)
    assert market.open_season(2, 2000, TWO).segments == TWO


def test_parameters_may_be_a_segments_own():
    own = {"code": {"fraction": 0.3, "parameters": {"draws": 5}}, "writing": 0.7}
    terms = complete(spec(seed=None, **(SLOTS | {"segments": own})))
    filled = {"rounds": 2, "draws": 5, "threshold": 2}
    assert terms.segments["code"].parameters.items() >= filled.items()
    assert terms.segments["writing"].parameters["draws"] == 3
    assert complete(terms) == terms
    market = started(ARMS, **(SLOTS | {"segments": own}))
    for name in TWO:
        market.decide(name, 2000, name)
    assert [part.mechanism.arm.draws for part in market.session.begun.values()] == [5, 3]
    few, many = (market.session.begun[name].state.slots for name in ("writing", "code"))
    assert [slots[:3] for slots in many] == [slots[:3] for slots in few]
    replayed(market.chain.take().lines, DICE)
    same = complete(spec(seed=None, **(SLOTS | {"segments": {"code": {"fraction": 0.3}, "writing": 0.7}})))
    assert same.segments == TWO  # nothing of their own


def test_metrics_have_few_labels(desk):
    names = [f"query-{number:03}" for number in range(100)]
    open_market(desk, ARMS, **(SLOTS | {"segments": dict.fromkeys(names, 0.01)}))
    for number, name in enumerate(names):
        assert ask(desk, name, name).status_code == 200, number
    text = desk.call("GET", "/metrics").text
    lines = [line for line in text.splitlines() if line.startswith("cloneproof_segment_rounds{")]
    assert len(lines) == 11
    assert 'cloneproof_segment_rounds{market="feed",segment=""} 90.0' in lines
    assert 'cloneproof_segment_rounds{market="feed",segment="query-003"} 1.0' in lines


class Counted(dict):
    """A mapping that counts how often it is gone through."""

    passes = 0

    def items(self):
        self.passes += 1
        return super().items()


def many(number, **more):
    """A market with so many segments, which count."""
    names = [f"s{k}" for k in range(number)]
    own = {"segments": dict.fromkeys(names, 1 / number)} | more
    market = started(ARMS, mechanism="reservoir", parameters={"rounds": 2, "draws": 3}, **own)
    counted = {key: Counted(getattr(market.spec, key)) for key in own}
    market.spec = msgspec.structs.replace(market.spec, **counted)
    return market, counted


def test_metrics_and_decisions_go_through_the_segments_once():
    """Once for each segment would hold every market: 10,000 of them took 24 s."""
    market, counted = many(40)
    assert len(list(_segment_rounds(market))) == 11
    assert counted["segments"].passes <= 2
    market, counted = many(40, positions={f"s{k}": 2 for k in range(40)})
    for number in range(40):
        market.decide(f"r{number}", 2000, f"s{number}")
    assert counted["segments"].passes <= 2
    assert counted["positions"].passes <= 4  # twice by whom they are checked


def test_joining_and_withdrawing_cost_the_same_however_many_segments_have_begun(monkeypatch):
    """Each segment hears of it when it is needed next: thousands at once held every market for seconds."""
    market, _ = many(40)
    for number in range(40):
        market.decide(f"r{number}", 2000, f"s{number}")
    told = []
    monkeypatch.setattr(
        Segment, "join", lambda self, *args, join=Segment.join: (told.append(self.name), join(self, *args))
    )
    with_arms(market, {"eve": 1, "fay": 1})
    market.join("eve", 2000)
    market.withdraw_arm("eve", "eve-0", 2000)
    market.join("fay", 2000)
    assert set(told) <= {"s0"}  # which says that the season is not decided
    market.decide("next", 2000, "s3")
    assert set(told) <= {"s0", "s3"}
    found = restore(take_snapshot(market), SECRET)
    assert len(set(told)) == 40
    assert found.session.to_json() == market.session.to_json()
