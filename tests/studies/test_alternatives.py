"""What engineers do anyway: the page has the study's table, and its short program plays what it says."""

import math
from pathlib import Path

import numpy as np
import pytest

import alternatives as study
import cloneproof as cp

PAGE = (Path(__file__).parents[2] / "docs/which_mechanism.md").read_text(encoding="utf-8")
UNIFORM = (1.0, 1.0)


def played(rates, attention, pages, how, runs=1, prior=UNIFORM):
    """What each seller earns on average; `rates` by seller."""
    where = study.Place(len(rates), 0, prior, attention, (pages,))
    owner = np.repeat(np.arange(len(rates)), [len(own) for own in rates])
    world = study.World(np.concatenate([np.array(own, float) for own in rates]), owner)
    return study.played_on_cpu([world] * runs, where, pages, how, [7]).mean(axis=0)


def test_tables_of_the_page_are_those_of_the_study():
    section = PAGE[PAGE.index("## What engineers do anyway") : PAGE.index("## Over the horizon")]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert len(lines) > 15
    assert set(lines) <= set(study.table(study.read()))


def test_every_row_was_played_often_enough():
    rows = {(row.place, row.rule): row for row in study.read()}
    for place, where in study.PLACES.items():
        for rule, (how, caught) in study.RULES.items():
            if how != study.ONE_EACH or len(where.attention) > 1:
                row = rows[place, rule]
                assert row.runs >= 400
                assert 0 < row.lost_error < 0.01
                assert math.isnan(row.many) != bool(caught)
        assert any("reservoir" in rule for name, rule in rows if name == place)


@pytest.mark.parametrize("how", [study.FLAT, study.POOLED])
def test_in_one_place_it_plays_as_our_sessions_do(how):
    rates, prior = [(0.2, 0.7), (0.5, 0.5)], UNIFORM
    agents = [cp.Agent(name, prior=[cp.Point(rate) for rate in own]) for name, own in zip("ab", rates, strict=True)]
    thompson = cp.rule("thompson")
    made = cp.bandit(arm=thompson) if how == study.FLAT else cp.bandit(agent=thompson, arm=thompson)
    search = cp.Search(runs=600, bounds="asymptotic")
    told = cp.evaluate(cp.Market(agents, 150), made, engine="runs", search=search).payoff
    found = played(rates, (1.0,), 150, how, runs=600, prior=prior)
    assert abs(found[0] - told["a"].value) < told["a"].error + 4
    assert abs(found[1] - told["b"].value) < told["b"].error + 4


def test_pages_count_attention_and_one_place_a_seller_is_that():
    sure = [(1.0, 1.0, 1.0), (0.0,), (0.0,)]
    flat, one_each = (played(sure, (1.0, 0.5), 60, how) for how in (study.FLAT, study.ONE_EACH))
    assert one_each[0] <= 60  # one place a page, at most the first
    assert flat[0] > 80
    assert one_each.sum() == one_each[0]
    assert played([(1.0,)], (1.0, 0.5), 10, study.POOLED)[0] == 10  # one seller fills one place


def test_a_ratio_has_its_error_by_the_delta_method():
    above, below = np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0])
    assert study.ratio(above, below) == (1.0, 0.0)
    assert study.percent(0.0734, 0.0005) == "+7.3 ± 0.1 %"
    assert study.percent(-1.8, 0.034) == "−180 ± 3 %"
