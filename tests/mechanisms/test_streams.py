"""Streams on pages, rule by rule: the timetable, verdicts, late clicks, turns, guests and absences."""

from collections import Counter

import pytest

import cloneproof as cp

ROTATIONS, BLOCKS, TURNS = 2, 3, 6
PLACES = (1.0, 0.5)
FOUR = {"ana": 2, "bo": 2, "cy": 2, "di": 2}
SETTLES = ROTATIONS * ((BLOCKS + 1) * len(FOUR) - 1)
CYCLE = ROTATIONS * (len(FOUR) + 1)


def opened(pages=400, **changes):
    made = cp.mechanism("reservoir-streams", **{"rotations": ROTATIONS, "blocks": BLOCKS, "turns": TURNS} | changes)
    return cp.session(made, FOUR, pages, 3, positions=PLACES)


def shown(live, pages, clicked=lambda page, each: False):
    """Who was in each place of the next pages; each click is sent at once."""
    slates = []
    for _ in range(pages):
        slate = live.decide_slate()
        slates.append({each.place: each.agent for each in slate})
        for each in slate:
            live.reward(each.id, float(clicked(live.pages - 1, each)))
    return slates


def test_places_follow_the_timetable_and_the_first_stretches_that_are_cut_count_for_nothing():
    live = opened()
    names = [list(FOUR)[i] for i in live.state.order]
    for page in range(ROTATIONS * (len(FOUR) * BLOCKS + 1)):
        for each in live.decide_slate():
            place = (names.index(each.agent) + page // ROTATIONS) % len(FOUR)
            assert each.place == 1 + place
            began = page // ROTATIONS - place
            counts = 0 <= began < BLOCKS * len(FOUR)
            assert live.pending[each.id].arm_counts == counts
            assert each.phase == ("trial" if counts else "waiting")


@pytest.mark.parametrize(("clicks", "draws"), [((0, 0, 0), 3), ((1, 1, 1), 0), ((3, 0, 0), 0), ((2, 0, 0), 1)])
def test_a_verdict_costs_a_click_and_a_draw_without_any_is_over(clicks, draws):
    live, left = opened(), list(clicks)
    first = live.state.order[0]  # whose blocks begin at pages 0, 8 and 16, and whose last verdict is at page 24

    def clicked(page, each):
        block = page // (ROTATIONS * len(FOUR))
        if each.agent != list(FOUR)[first] or block == len(left) or not left[block]:
            return False
        left[block] -= 1
        return True

    shown(live, ROTATIONS * len(FOUR) * BLOCKS, clicked)
    assert live.state.verdicts[first] == BLOCKS - 1
    shown(live, 1)
    assert (live.state.verdicts[first], live.state.draw[first]) == (BLOCKS, draws)


def test_a_click_counts_until_the_verdict_after_its_own_and_later_it_is_paid_and_told_late():
    live, whole = opened(), ROTATIONS * len(FOUR)
    first = live.state.order[0]
    name = list(FOUR)[first]
    kept = [each.id for _ in range(ROTATIONS * 2) for each in live.decide_slate() if each.agent == name]
    live.reward(kept[0], 1.0)
    live.reward(kept[1], 1.0)
    shown(live, whole - ROTATIONS * 2 + 1)  # the verdict on this block has fallen, and the draw stands
    assert (live.state.verdicts[first], live.state.draw[first], live.state.score[first]) == (1, 0, 2)
    assert live.reward(kept[2], 1.0) is None
    assert live.state.score[first] == 3
    shown(live, whole)
    paid = live.payoff[name]
    assert live.reward(kept[3], 1.0) == "late"
    assert live.state.score[first] == 2
    assert live.payoff[name] == paid + 1.0


def test_after_the_laboratory_only_the_designated_one_counts_and_verdicts_follow_its_turns():
    live, rounds, counted = opened(), 3, Counter()
    shown(live, SETTLES)
    names = [list(FOUR)[i] for i in live.state.order]
    for page in range(len(FOUR) * TURNS * rounds):
        slate = live.decide_slate()
        if page == 0:
            assert live.state.verdicts == [BLOCKS] * 4
        designated = names[page % len(FOUR)]
        assert designated in [each.agent for each in slate]
        for each in slate:
            if live.pending[each.id].arm_counts:
                assert each.agent == designated
                counted[designated, each.place] += 1
            live.reward(each.id, 0.0)
    shown(live, 1)
    assert live.state.verdicts == [BLOCKS + rounds] * 4
    assert any(number == TURNS * rounds for (_, place), number in counted.items() if place == 2)  # always behind
    assert 0 < sum(number for (_, place), number in counted.items() if place == 1) < TURNS * rounds  # half of these


def test_guests_have_laboratories_of_their_own_one_after_the_other_and_then_are_in_the_order():
    """Two have room in a cycle of ten pages, at its pages 0 and 4; a third waits for one of them."""
    live = opened()
    shown(live, 5)
    for name in ("eve", "flo", "gus"):
        live.join(name, 2)
    early = shown(live, SETTLES - 5)
    assert not {"eve", "flo", "gus"} & {agent for page in early for agent in page.values()}
    pages = shown(live, CYCLE * BLOCKS)
    for name, start in (("eve", 0), ("flo", 4)):
        stood = {(page, place) for page, slate in enumerate(pages) for place, agent in slate.items() if agent == name}
        laboratory = {(10 * cycle + start + into, 1 + into // 2) for cycle in range(BLOCKS) for into in range(4)}
        assert stood == laboratory
    assert not any("gus" in slate.values() for slate in pages)
    assert live.state.order[4:] == []
    later = shown(live, 4)
    assert [next(place for place, agent in slate.items() if agent == "gus") for slate in later] == [1, 1, 2, 2]
    assert live.state.order[4:] == [4]
    assert live.state.verdicts[4] == BLOCKS


def test_who_is_paused_misses_blocks_and_turns_of_its_round_and_comes_back_with_a_whole_one():
    live = opened()
    order = live.state.order
    first, last = (list(FOUR)[order[k]] for k in (0, 3))
    shown(live, 1)
    live.pause(first)
    assert [sorted(slate) for slate in shown(live, 3)] == [[2], [1], [1]]  # the place of who is away stays empty
    live.resume(first)
    assert first not in {agent for slate in shown(live, 4) for agent in slate.values()}
    assert shown(live, 1) == [{1: first, 2: list(FOUR)[order[1]]}]  # its next block begins, and one was judged
    assert (live.state.verdicts[order[0]], live.state.draw[order[0]]) == (1, 1)
    shown(live, SETTLES - 9)
    while live.state.called:
        shown(live, 1)
    before = live.state.turns[:]
    live.pause(last)
    live.resume(last)
    assert last not in {agent for slate in shown(live, 4) for agent in slate.values()}
    assert live.state.turns[order[3]] == before[order[3]] + 1  # missed, and counted
    live.pause(first)
    shown(live, 4)
    missed = live.state.turns[order[0]]
    shown(live, 8)
    assert live.state.turns[order[0]] == missed  # whole rounds are not
    live.resume(first)
    again = cp.Session.from_json(live.to_json())
    assert shown(again, 30) == shown(live, 30)
