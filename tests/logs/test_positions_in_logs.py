"""Logs with places: their attention is recovered, and rates are corrected by it."""

import json
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.errors import LogError
from cloneproof.logs.attention import Z95, attention
from cloneproof.logs.study import study_log
from support.sizes import LONG

ATTENTION = (1.0, 0.7, 0.5, 0.3)
SURE = 5.1  # standard errors: three intervals miss with a probability of one in a million


def planted(seed=0, n=120_000, items=12, rates=(0.05, 0.3), **more):
    """Rows of a platform that shows better items in better places; item `low` is good, and never in front."""
    dice = np.random.default_rng(seed)
    rate = np.linspace(*rates, items)
    shown = dice.integers(0, items, n)
    lean = np.linspace(2, 0, 4)[None, :] * np.linspace(0, 1, items)[:, None]  # the better the item, the further up
    chance = np.exp(lean) / np.exp(lean).sum(1, keepdims=True)
    place = (dice.random(n)[:, None] > np.cumsum(chance[shown], 1)).sum(1)
    place[shown == items - 1] = 2 + dice.integers(0, 2, (shown == items - 1).sum())
    click = dice.random(n) < rate[shown] * np.array(ATTENTION)[place]
    names = np.array([f"i{k}" for k in range(items - 1)] + ["low"])
    table = {"agent": shown % 5, "arm": names[shown], "click": click, "rank": place + 1}
    return table | {name: make(shown) for name, make in more.items()}, dict(zip(names.tolist(), rate, strict=True))


def test_planted_attention_and_rates_are_recovered():
    """Where better items stand in better places, the ratio of all clicks is far off, and that within items is not."""
    table, rates = planted()
    log = cp.read_log(table, position="rank")
    assert [each.place for each in log.attention] == [1, 2, 3, 4]
    assert (log.attention[0].attention, log.attention[0].shared) == (1.0, 11)
    for each, truth in zip(log.attention[1:], ATTENTION[1:], strict=True):
        error = math.log(each.high / each.attention) / Z95
        assert abs(math.log(each.attention / truth)) < SURE * error
        assert error < 0.04
    naive = log.attention[1].mean / log.attention[0].mean
    assert naive < log.attention[1].low
    plain = {arm.arm: arm for arm in cp.read_log(table).arms}
    for arm in log.arms:
        rate, slack = rates[arm.arm], SURE * 0.04 * rates[arm.arm]
        assert abs(arm.mean - rate) < SURE * math.sqrt(rate / arm.rounds) + slack
        assert arm.total == plain[arm.arm].total
    best = {
        name: max(own, key=lambda arm: arm.mean).arm
        for name, own in (("corrected", log.arms), ("as shown", plain.values()))
    }
    assert best["corrected"] == "low"
    assert best["as shown"] != "low"
    assert plain["low"].mean < 0.5 * rates["low"] < 0.9 * log.of("1")[-1].mean


def test_intervals_cover_as_often_as_they_say():
    """Of 2,000 intervals at 95 %, for many items of few clicks; outside with a probability of one in a million."""
    dice, covered, runs = np.random.default_rng(3), 0, 2000
    for _ in range(runs):
        rate, n, m = dice.uniform(0.02, 0.2, 40), dice.integers(1, 90, 40), dice.integers(1, 90, 40)
        here, there = dice.binomial(n, 0.5 * rate).tolist(), dice.binomial(m, rate).tolist()
        cells = zip(m.tolist(), there, n.tolist(), here, strict=True)
        found = attention([{1: (m, d), 2: (n, c)} for m, d, n, c in cells], 1, 2)
        covered += found.low <= 0.5 <= found.high
    assert abs(covered / runs - 0.95) < 4.9 * math.sqrt(0.05 * 0.95 / runs)


CELLS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(1, 3), st.booleans()), min_size=1, max_size=40
)


@settings(max_examples=100 if LONG else 8)
@given(CELLS)
def test_sums_by_place_against_fractions(rows):
    """Rates, rounds and the fault of places that nothing is known of, against a second computation in fractions."""
    cells = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for arm, segment, place, click in rows:
        cells[arm, segment][place][0] += 1
        cells[arm, segment][place][1] += click
    first, known = min(place for _, _, place, _ in rows), {}
    for place in {place for _, _, place, _ in rows}:
        sums = [Fraction(0), Fraction(0)]
        for own in (own for own in cells.values() if {place, first} <= set(own)):
            (n, c), (m, d) = own[place], own[first]
            sums[0] += Fraction(c * m, n + m)
            sums[1] += Fraction(d * n, n + m)
        if all(sums) or place == first:
            known[place] = Fraction(1) if place == first else sums[0] / sums[1]
    arm, segment, place, click = (list(column) for column in zip(*rows, strict=True))
    table = {"agent": arm, "arm": arm, "device": segment, "rank": place, "click": [int(each) for each in click]}
    lost = sum(each not in known for each in place)
    if lost:
        with pytest.raises(
            LogError, match=rf"shares no item with place {first} that earned something in both \({lost} row"
        ):
            cp.read_log(table, position="rank", segment="device")
    log = cp.read_log(table, position="rank", segment="device", leave_out=True)
    assert {each.place: each.attention for each in log.attention} == pytest.approx(
        {k: float(v) for k, v in known.items()}
    )
    assert (log.rows, log.left_out) == (len(rows), lost)
    for each in log.arms:
        own = [cell for (name, _), cell in cells.items() if name == each.arm]
        seen = sum(known.get(place, 0) * n for cell in own for place, (n, _) in cell.items())
        clicks = sum(c for cell in own for place, (_, c) in cell.items() if place in known)
        assert each.total == clicks <= each.rounds
        assert each.rounds >= math.ceil(seen)
        assert each.rounds == math.ceil(seen) or each.rounds <= math.ceil(seen) + clicks
        parts = [part for arms in log.segments.values() for part in arms if part.place == each.place]
        assert (each.rounds, each.total) == (sum(p.rounds for p in parts), sum(p.total for p in parts))


def test_rows_of_many_rounds_and_one_place_are_the_same_log():
    table, _ = planted(n=3000)
    cells = defaultdict(lambda: [0, 0])
    for agent, arm, click, rank in zip(*table.values(), strict=True):
        cells[agent, arm, rank][0] += 1
        cells[agent, arm, rank][1] += click
    agent, arm, rank = zip(*cells, strict=True)
    shown, clicks = zip(*cells.values(), strict=True)
    whole = {"agent": agent, "arm": arm, "rank": rank, "impressions": shown, "clicks": clicks}
    one, two = cp.read_log({k: list(v) for k, v in whole.items()}, position="rank"), cp.read_log(table, position="rank")
    assert (one.attention, one.arms) == (two.attention, two.arms)
    front = cp.read_log(table | {"rank": np.ones(3000, int)}, position="rank")
    assert front.arms == cp.read_log(table).arms


def test_segments_are_told_apart_within_places():
    """That phones see other places than desks is no difference of rates."""
    table, _ = planted(n=40_000)
    table["device"] = np.where(table["rank"] + np.arange(len(table["rank"])) % 3 > 3, "phone", "desk")
    assert any("rates differ" in note for note in cp.read_log(table).notes)
    assert not any("rates differ" in note for note in cp.read_log(table, position="rank").notes)


def study_of_pages(policy, name, **more):
    table, _ = planted(n=20_000, items=5)
    return study_log(cp.read_log(table | more, position="rank"), policy, name, horizon=40, seconds=10)


def test_a_study_is_of_pages_with_the_attention_of_the_log():
    study = study_of_pages(lambda market: cp.mechanism("reservoir", rounds=2, draws=2), "reservoir")
    log = study.log
    assert study.market.places == study.recommendation.market.places == log.positions
    assert study.recommendation.market.horizon == round(log.rounds / sum(log.positions))
    assert {each.title for each in study.sections()} >= {"Places", "What to run instead"}
    (table,) = [
        part for each in study.sections() if each.title == "Places" for part in each.parts if part.kind == "table"
    ]
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4"]
    json.dumps(study.to_dict())


def test_a_policy_without_pages_is_judged_with_one_place():
    study = study_of_pages(lambda market: cp.mechanism("etc", arm_rounds=2), "etc")
    assert study.market.places == ()
    assert study.recommendation.market.places == study.log.positions
    assert any("with the first place of a page only" in note for note in study.notes)
