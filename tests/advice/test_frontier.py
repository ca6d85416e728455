"""The frontier: rows that no other beats, promises that are kept apart, and what is ranked first."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.advice.assessment import ONE_PLACE
from cloneproof.advice.frontier import frontier, marked
from cloneproof.advice.recommendation import FrontierRow
from cloneproof.advice.regret import best_reward
from cloneproof.laws.best import best_round
from cloneproof.report.page import html_page
from cloneproof.report.recommendation import copies_words, price_rows
from cloneproof.report.text import text
from cloneproof.runs.estimate import Estimate
from support import command
from support.advised import without_long_questions
from support.clocks import ticking

ANA_AND_BO = cp.Market(
    [cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=200
)
PAGES = cp.Market([cp.Agent(name, 2, cp.Discrete([0.1, 0.4], [0.5, 0.5])) for name in "abcd"], 3000, positions=(1, 0.5))
USUAL = {"thompson", "kl-ucb", "ucb1", "h-thompson"}


def number(value, error=0.0):
    return Estimate(value, error, "exact", "")


def row(name, lost, found=None, at_most=None, error=0.0):
    named = replace(cp.mechanism("thompson"), name=name)
    return FrontierRow(named, number(lost), at_most, None if found is None else number(found, error), (2, 1), 3)


@pytest.fixture(scope="module")
def advised():
    with ticking(0.0), without_long_questions("frontier"):
        return cp.recommend(ANA_AND_BO, search=cp.Search(seconds=3))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_a_mark_is_on_what_no_other_beats_in_both(pairs):
    rows = marked(row(f"rule {k}", lost, float(gain)) for k, (lost, gain) in enumerate(pairs))
    assert [each.lost.value for each in rows] == sorted(lost for lost, _ in pairs)
    for each in rows:
        point = each.lost.value, each.gain
        beaten = any(a <= point[0] and b <= point[1] and (a, b) != point for a, b in pairs)
        assert each.best == (not beaten)


def test_what_is_measured_beats_nothing_that_is_proven():
    rows = [row("proven", 0.3, at_most=0.0), row("dominated", 0.4, at_most=0.0), row("measured", 0.1, -0.2)]
    best = {each.name: each.best for each in marked([*rows, row("ceiling", 0.2, at_most=0.1), row("paid", 0.2, 1.0)])}
    assert best == {"proven": True, "dominated": False, "measured": True, "ceiling": True, "paid": False}


def test_words_say_what_is_known_of_copies():
    assert copies_words(row("a", 0.1, at_most=0.0)) == "nothing, proven"
    assert copies_words(row("a", 0.1, at_most=0.07)) == "at most +7.0% (proven)"
    assert copies_words(row("a", 0.1, 0.4, error=0.1)).startswith("pays +40 ± 10")
    assert copies_words(row("a", 0.1, 0.04, error=0.1)).endswith("of 3")
    assert [*price_rows([row("a", 0.1)], "b")] == []
    rows = [row("a", 0.1, at_most=0.0), row("b", 0.05, -0.1), row("c", 0.02, 1.0, error=0.1)]
    (calm, ask), (paid, avoid) = price_rows(rows, "a")
    assert (calm, ask) == (
        "b loses 5.0 % where a, proven, loses 10.0 %; nothing tried pays there",
        "its promise is weaker: measured",
    )
    assert (paid.startswith("c loses 2.0 % and pays a copier +100 ± 10"), avoid) == (True, "do not run it")


def test_usual_bandits_are_always_there_and_thompson_pays(advised):
    by_name = {each.name: each for each in advised.frontier}
    assert by_name.keys() > {*USUAL, "reservoir", "reservoir-contest"}
    assert by_name["thompson"].pays
    assert by_name["thompson"].promise == "measured"
    assert by_name["reservoir"].promise == "proven"
    best = best_reward(ANA_AND_BO)
    for entry in advised.ranked:
        assert by_name[entry.name].lost.value == pytest.approx(entry.regret.value / best)
    played = cp.evaluate(ANA_AND_BO, by_name["thompson"].mechanism, engine="runs", search=cp.Search(runs=2000))
    assert abs(by_name["thompson"].lost.value - played.regret.value / best) < by_name["thompson"].lost.error


def test_the_answer_has_the_price_of_its_promise(advised):
    answer, findings, *_ = advised.sections()
    assert len(text([answer]).splitlines()) <= 4
    assert answer.title == f"Run {advised.choice.name}"
    (table,) = findings.parts
    assert table.columns == ("finding", "what to do")
    assert any("pays a copier" in finding for finding, _ in table.rows)
    assert max(map(len, str(advised).splitlines())) <= 100
    command.schema("recommend").validate(json.loads(json.dumps(advised.to_dict(), allow_nan=False)))
    assert "Clicks lost against what copies gain" in html_page(advised)


def test_pages_have_rows_by_runs_and_one_place_each():
    market = PAGES.with_horizon(500)
    with ticking(0.0):
        rows, slow = frontier(market, (), (), 1.0, 0)
    by_name = {each.name: each for each in rows}
    assert by_name.keys() == {*USUAL, "epsilon-greedy", "h-ucb", "reservoir", "reservoir-streams", ONE_PLACE}
    assert slow == []
    assert by_name["thompson"].pays
    assert not by_name["h-thompson"].pays


def test_segments_with_pages_of_their_own_add_up():
    shares = {"phone": 0.5, "desk": 0.5}
    market = cp.Market(PAGES.agents, 4000, segments=shares, positions={"phone": (1, 0.5), "desk": (1, 0.7, 0.5)})
    with ticking(0.0):
        advised = cp.recommend(market, search=cp.Search(seconds=3))
    parts = [each.choice.regret.value for each in advised.by_segment.values()]
    assert advised.choice.regret.value == pytest.approx(sum(parts))
    by_name = {each.name: each for each in advised.frontier}
    assert by_name["reservoir"].promise == "proven"
    assert advised.pooled is None


def test_pages_have_seasons():
    with ticking(0.0), without_long_questions():
        advised = cp.recommend(PAGES, drift=1000, search=cp.Search(seconds=1))
        settled = cp.recommend(ANA_AND_BO.with_horizon(2000), drift=500, search=cp.Search(seconds=1))
    assert advised.seasons.length < PAGES.horizon
    assert "run it in seasons of" in " ".join(str(settled).split())
    assert best_round([agent.priors for agent in PAGES.agents], PAGES.places) == pytest.approx(
        best_reward(PAGES) / 3000
    )
