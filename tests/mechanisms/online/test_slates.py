"""Sessions whose pages have several places: who stands where, files, late rewards, withdrawals, what is refused."""

from collections import Counter
from itertools import product
from typing import Any

import pytest

import cloneproof as cp
from cloneproof.errors import NobodyLeftError

ARMS = {"ana": 2, "bo": 1, "cy": 3, "di": 1}
BEST = cp.mechanism("reservoir", rounds=3, draws=2, choose="best")


def played(pages: int, places: int = 3, seed: int = 1, rate: Any = None, **options: Any) -> tuple[Any, list[Any]]:
    live = cp.session(options.pop("mechanism", BEST), ARMS, 100, seed, positions=places, **options)
    shown = []
    for page in range(pages):
        slate = live.decide_slate()
        shown.append(slate)
        for each in slate:
            live.reward(each.id, float(rate(page, each)) if rate else 0.0)
    return live, shown


def test_tests_are_in_the_last_place_and_follow_a_fixed_timetable() -> None:
    """Neither counts nor the number of listings change who is tested when."""
    timetables = set()
    for rate, arms in product((None, lambda page, each: each.agent == "bo", lambda page, each: page % 2), (1, 7)):
        live = cp.session(BEST, {**ARMS, "ana": arms}, 100, 4, positions=3)
        tested = []
        for page in range(24):
            slate = live.decide_slate()
            assert [each.place for each in slate] == [1, 2, 3]
            assert [each.phase == "trial" for each in slate] == [False, False, True]
            assert len({each.agent for each in slate[:-1]}) == 2
            tested.append(slate[-1].agent)
            for each in slate:
                live.reward(each.id, float(rate(page, each)) if rate else 0.0)
        timetables.add(tuple(tested))
        assert [each.phase for each in live.decide_slate()] == ["award"] * 3
    assert len(timetables) == 1
    assert Counter(timetables.pop()) == dict.fromkeys(ARMS, 6)


def test_front_places_go_to_the_best_finished_counts_with_their_arms_and_an_agent_under_test_keeps_its_place() -> None:
    best = {"cy": 1.0, "ana": 0.5}
    _, shown = played(30, rate=lambda page, each: best.get(each.agent, 0.0) > (page % 3) / 3)
    held = {each.slot: each for slate in shown for each in slate if each.phase == "trial"}
    for slate in shown[12:24]:  # all have a finished test
        assert [each.agent for each in slate[:2]] == ["cy", "ana"]
        assert all(held[each.slot].arm == each.arm for each in slate[:2])
    assert any(slate[0].agent == slate[-1].agent and slate[0].arm == slate[-1].arm for slate in shown[12:24])
    assert [each.agent for each in shown[-1][:2]] == ["cy", "ana"]


def test_before_tests_are_finished_agents_take_turns_in_front() -> None:
    _, shown = played(3, places=4, seed=9)
    waiting = Counter(each.agent for slate in shown for each in slate if each.phase == "waiting")
    assert sum(waiting.values()) == 9
    assert max(waiting.values()) - min(waiting[name] for name in ARMS) <= 1
    assert {each.phase for each in shown[0]} == {"waiting", "trial"}


def test_with_fewer_agents_than_places_the_last_places_stay_empty() -> None:
    live, shown = played(30, places=9)
    assert {len(slate) for slate in shown} == {4}
    assert {slate[-1].phase for slate in shown[:24]} == {"trial"}
    assert live.round == 4 * 30
    assert (live.pages, live.played) == (30, 30)


def test_segments_have_places_of_their_own() -> None:
    live = cp.session(
        BEST, ARMS, 100, segments={"phone": 0.5, "desk": 0.5}, positions={"phone": 2, "desk": (1, 0.5, 0.5)}
    )
    tested: dict[str, list[str]] = {"phone": [], "desk": []}
    for page in range(48):
        segment = ("phone", "desk")[page % 2]
        slate = live.decide_slate(segment)
        assert len(slate) == (3 if segment == "desk" else 2)
        assert {each.segment for each in slate} == {segment}
        tested[segment].append(slate[-1].agent)
        for each in slate:
            live.reward(each.id, 0.0)
        live = cp.Session.from_json(live.to_json())
    assert Counter(tested["desk"]) == Counter(tested["phone"]) == dict.fromkeys(ARMS, 6)


def test_who_withdraws_is_out_once_its_slot_is_reached_and_the_timetable_stays() -> None:
    """Its places go to the others; agents take turns in its tests; in the end nobody is left."""
    _, before = played(24)
    live = cp.session(BEST, ARMS, 100, 1, positions=3)
    shown = []
    for page in range(24):
        if page == 6:
            live.withdraw("bo", 0)
        slate = live.decide_slate()
        shown.append(slate)
        for each in slate:
            live.reward(each.id, 0.0)
        live = cp.Session.from_json(live.to_json())
    assert "bo" not in {each.agent for slate in shown[7:] for each in slate}
    for old, new in zip(before, shown, strict=True):
        if old[-1].agent != "bo":
            assert (old[-1].agent, old[-1].arm) == (new[-1].agent, new[-1].arm)
        elif len(new) == 3 and new[-1].agent != "bo":
            assert new[-1].phase == "waiting"
    for name, arms in ARMS.items():
        for arm in range(arms):
            live.withdraw(name, arm)
    with pytest.raises(NobodyLeftError):
        live.decide_slate()
    assert live.nobody_left
    assert live.last == 24


def test_a_window_closes_after_so_many_full_pages() -> None:
    live = cp.session(BEST, ARMS, 100, 1, positions=3, window=2)
    first = live.decide_slate()
    for _ in range(2):
        live.decide_slate()
    assert not live.ledger
    live.decide_slate()
    assert [entry.id for entry in live.ledger] == [each.id for each in first]


def test_usual_bandits_show_the_arms_of_highest_index_and_one_place_each_is_kept() -> None:
    live, shown = played(60, mechanism=cp.mechanism("ucb1"), rate=lambda page, each: each.agent == "cy")
    assert Counter(each.agent for slate in shown[-10:] for each in slate)["cy"] >= 20  # all three of its arms
    assert live.pages == 60
    _, shown = played(
        60, mechanism=cp.mechanism("kl-ucb", one_place_each=True), rate=lambda _, each: each.agent == "cy"
    )
    assert all(len({each.agent for each in slate}) == 3 for slate in shown)
    live, shown = played(9, places=9, mechanism=cp.mechanism("thompson"))
    assert {len(slate) for slate in shown} == {7}
    live.withdraw("cy", 0)
    assert ("cy", 0) not in {(each.agent, each.arm) for each in live.decide_slate()}
