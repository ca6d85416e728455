"""Sessions whose pages have several places: who stands where, files, late rewards, withdrawals, what is refused."""

from collections import Counter
from itertools import product
from typing import Any

import pytest

import cloneproof as cp
from cloneproof.errors import NobodyLeftError

ARMS = {"ana": 2, "bo": 1, "cy": 3, "di": 1}
BEST = cp.mechanism("reservoir", rounds=3, draws=2, choose="best")


def played(pages: int, places: Any = 3, seed: int = 1, rate: Any = None, **options: Any) -> tuple[Any, list[Any]]:
    live = cp.session(options.pop("mechanism", BEST), ARMS, 100, seed, positions=places, **options)
    shown = []
    for page in range(pages):
        slate = live.decide_slate()
        shown.append(slate)
        for each in slate:
            live.reward(each.id, float(rate(page, each)) if rate else 0.0)
    return live, shown


STREAMS = cp.mechanism("reservoir-streams", rotations=2, blocks=3)


def test_the_laboratory_gives_every_draw_the_same_places_whatever_happens() -> None:
    """Neither clicks nor the number of listings change who stands where, and each block has each place as often."""
    timetables = set()
    rates: Any = (None, lambda page, each: each.agent == "bo", lambda page, each: page % 2)
    for rate, arms in product(rates, (1, 7)):
        live = cp.session(BEST, {**ARMS, "ana": arms}, 100, 4, positions=(1, 0.5, 0.2))
        stood: list[tuple[str, int]] = []
        for page in range(24):
            slate = live.decide_slate()
            assert [(each.place, each.phase) for each in slate] == [(1, "trial"), (2, "trial"), (3, "trial")]
            assert len({each.agent for each in slate}) == 3
            stood += [(each.agent, each.place) for each in slate]
            for each in slate:
                live.reward(each.id, float(rate(page, each)) if rate else 0.0)
        timetables.add(tuple(stood))
        blocks = [Counter(stood[start : start + 36]) for start in (0, 36)]
        assert blocks == [dict.fromkeys(product(ARMS, (1, 2, 3)), 3)] * 2
        assert {each.phase for each in live.decide_slate()} == {"award"}
    assert len(timetables) == 1


def test_champions_are_the_draws_of_the_best_counts_and_places_go_by_score() -> None:
    best = {"cy": 1.0, "ana": 0.5}
    live, shown = played(24, rate=lambda page, each: best.get(each.agent, 0.0) > (page % 3) / 3)
    counts: Counter[tuple[str, int]] = Counter()
    for page, slate in enumerate(shown):
        for each in slate:
            counts[each.agent, each.slot] += best.get(each.agent, 0.0) > (page % 3) / 3
    slate = live.decide_slate()  # without declared attention by tests alone
    assert [each.agent for each in slate[:2]] == ["cy", "ana"]
    for each in slate:
        assert counts[each.agent, each.slot] == max(counts[each.agent, draw] for draw in (0, 1))


def test_after_the_laboratory_one_provider_a_page_is_designated_and_only_its_click_counts() -> None:
    live = cp.session(BEST, ARMS, 500, 1, positions=(1, 0.5, 0.2))
    counted: Counter[str] = Counter()
    for page in range(424):
        slate = live.decide_slate()
        here = [each.agent for each in slate if live.pending[each.id].arm_counts]
        if page >= 24:
            assert len(here) <= 1
            counted.update(here)
            assert slate[2].agent in here or not here or here[0] in [each.agent for each in slate[:2]]
        for each in slate:
            live.reward(each.id, 0.0)
    behind = [name for name, number in counted.items() if number == 100]  # always in the last place on their turns
    assert len(behind) == 2
    assert all(10 < number < 70 for name, number in counted.items() if name not in behind)  # 20 and 40 of 100 expected
    live, _ = played(30)  # places, but no attention: nothing counts
    live.decide_slate()
    assert not any(each.arm_counts for each in live.pending.values())


def test_late_rewards_of_tests_are_waited_for() -> None:
    live = cp.session(BEST, ARMS, 100, 1, positions=3)
    ids = [each.id for _ in range(24) for each in live.decide_slate()]
    for _ in range(3):
        assert {each.phase for each in live.decide_slate()} == {"waiting"}
    for decision in ids:
        live.reward(decision, 1.0)
    assert {each.phase for each in live.decide_slate()} == {"award"}


def test_with_fewer_agents_than_places_the_last_places_stay_empty() -> None:
    live, shown = played(30, places=9)
    assert {len(slate) for slate in shown} == {4}
    assert live.round == 4 * 30
    assert (live.pages, live.played) == (30, 30)


@pytest.mark.parametrize("name", ["h-thompson", "thompson", "ucb1"])
def test_a_view_counts_as_the_attention_of_its_place(name: str) -> None:
    """Whatever the order of the rewards, and across a file; a mean is clicks by attention."""
    attention, seen, clicks = (1.0, 0.7, 0.1), Counter[Any](), Counter[Any]()
    live, late = cp.session(cp.mechanism(name), ARMS, 60, 3, positions=attention), list[Any]()
    for page in range(60):
        late += live.decide_slate()
        for _ in range(len(late) // 2):
            one = late.pop(page % len(late))
            reward = float(one.id % 3 == 0)
            live.reward(one.id, reward)
            for who in (one.agent, (one.agent, one.arm)):
                seen[who, one.place] += 1
                clicks[who] += reward
        live = cp.Session.from_json(live.to_json())
    level = live.state.agents if name == "h-thompson" else live.state.level
    whom: list[Any] = [(agent, arm) for agent, arms in ARMS.items() for arm in range(arms)]
    if name == "h-thompson":
        for (agent, arm), own in ((each, live.state.inner[list(ARMS).index(each[0])]) for each in whom):
            weighed = sum(weight * seen[(agent, arm), place] for place, weight in enumerate(attention, 1))
            assert own.seen[arm] == pytest.approx(weighed)
        whom = list(ARMS)
    for k, who in enumerate(whom):
        weighed = sum(weight * seen[who, place] for place, weight in enumerate(attention, 1))
        assert level.seen[k] == pytest.approx(weighed)
        assert level.means[k] == pytest.approx(clicks[who] / weighed if weighed else 0.0)


def test_on_two_levels_an_agent_has_one_place_and_its_best_arm() -> None:
    made = cp.bandit(agent=cp.rule("steady-kl-ucb", horizon=100), arm=cp.rule("kl-ucb", clock="completed"))
    _, shown = played(80, mechanism=made, rate=lambda page, each: each.agent == "cy" and each.arm == 1)
    assert all(len({each.agent for each in slate}) == 3 for slate in shown)
    assert all(slate[0].agent == "cy" for slate in shown[-20:])
    assert Counter(slate[0].arm for slate in shown[-20:]).most_common(1)[0][0] == 1


def test_segments_have_places_of_their_own() -> None:
    live = cp.session(
        BEST, ARMS, 100, segments={"phone": 0.5, "desk": 0.5}, positions={"phone": 2, "desk": (1, 0.5, 0.5)}
    )
    for page in range(48):
        segment = ("phone", "desk")[page % 2]
        slate = live.decide_slate(segment)
        assert [each.phase for each in slate] == ["trial"] * (3 if segment == "desk" else 2)
        assert {each.segment for each in slate} == {segment}
        for each in slate:
            live.reward(each.id, 0.0)
        live = cp.Session.from_json(live.to_json())
    assert {name: part.state.attention for name, part in live.begun.items()} == {"phone": None, "desk": (1, 0.5, 0.5)}
    assert {each.phase for each in live.decide_slate("desk")} == {"award"}


@pytest.mark.parametrize("mechanism", [BEST, STREAMS])
def test_who_withdraws_is_out_once_its_draw_is_reached_and_the_rotation_stays(mechanism: cp.Mechanism) -> None:
    """Absent agents stand in for it, for nothing; nobody else's places change, and in the end nobody is left."""
    _, before = played(24, mechanism=mechanism)
    live = cp.session(mechanism, ARMS, 100, 1, positions=3)
    shown = []
    for page in range(24):
        if page == 6:
            live.withdraw("bo", 0)
        slate = live.decide_slate()
        shown.append(slate)
        for each in slate:
            live.reward(each.id, 0.0)
        live = cp.Session.from_json(live.to_json())
    since = 9 if mechanism is BEST else 15  # when the draw of hers is over that was shown before
    assert "bo" not in {each.agent for slate in shown[since:] for each in slate}
    for old, new in zip(before[since:], shown[since:], strict=True):
        assert len({each.agent for each in new}) == 3
        for one, other in zip(old, new, strict=True):
            if one.agent == "bo":
                assert other.phase == "waiting"
            else:
                assert (one.agent, one.arm, one.phase) == (other.agent, other.arm, other.phase)
    assert "bo" not in {each.agent for _ in range(8) for each in live.decide_slate()}
    for name, arms in ARMS.items():
        for arm in range(arms):
            live.withdraw(name, arm)
    with pytest.raises(NobodyLeftError):
        live.decide_slate()
    assert live.nobody_left
    assert live.last == 32


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
