"""Logs with segments, and the formats of others: the items that Vowpal Wabbit's positions mean, leaves, states."""

import json
import random
import sqlite3
from collections import defaultdict
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof._clock import budget_clock
from cloneproof.errors import LogError
from cloneproof.logs.originals import studied_segments
from cloneproof.logs.study import study_log
from support.command import run
from support.sizes import LONG

ITEMS = {"news-1": "ana", "news-2": "bo", "music": "cy"}


def decision(dice, tagged=lambda item: {"_tag": item}):
    """A line of Vowpal Wabbit's decision service: a list of actions in an order of its own, and the item taken."""
    listed = dice.sample(sorted(ITEMS), dice.randint(1, 3))
    place, device = dice.randrange(len(listed)), dice.choice(["mobile", "desktop"])
    item, reward = listed[place], float(dice.random() < 0.5)
    line = {
        "_label_cost": -reward, "_label_probability": 0.5, "_label_Action": place + 1, "_labelIndex": place,
        "Timestamp": "2026-09-01T10:00:00.1230000Z", "Version": "1", "EventId": str(dice.random()),
        "a": [place + 1, *(k + 1 for k in range(len(listed)) if k != place)],
        "c": {"User": [{"device": device}], "Geo": {"country/region": "x~y"},
              "_multi": [tagged(each) | {"TAction": {"owner": ITEMS[each], "about": each}} for each in listed]},
        "p": [0.5] * len(listed), "VWState": {"m": "N/A"},
    }  # fmt: skip
    return line, item, device, reward


@pytest.mark.parametrize(("tagged", "column"), [
    (lambda item: {"_tag": item}, "c._multi._tag"),
    (lambda item: {"id": item}, "c._multi.id"),
    (lambda item: {"i": {"constant": 1, "id": item}}, "c._multi.i.id"),
    (lambda item: {}, None),
])  # fmt: skip
def test_vowpal_wabbit_is_read_by_item(tmp_path, tagged, column):
    """Against sums by hand: positions differ between rows, so they would be wrong."""
    dice, rows = random.Random(3), defaultdict(lambda: [0, 0.0])
    lines = []
    for _ in range(300):
        line, item, device, reward = decision(dice, tagged)
        lines.append(json.dumps(line))
        for key in ((item,), (item, device)):
            rows[key][0] += 1
            rows[key][1] += reward
    (tmp_path / "x.json").write_text("\n".join(lines))
    options = {} if column else {"arm": "c._multi.TAction.about"}
    log = cp.read_log(tmp_path / "x.json", agent="c._multi.TAction.owner", segment="c.User.device", **options)
    assert {(arm.agent, arm.arm, arm.rounds, float(arm.total)) for arm in log.arms} == {
        (ITEMS[item], item, *rows[(item,)]) for item in ITEMS
    }
    for name in ("mobile", "desktop"):
        own = {arm.arm: [arm.rounds, float(arm.total)] for arm in log.segment(name).arms}
        assert own == {item: rows[(item, name)] for item in ITEMS}
    assert column is None or f"using `{column}` as the arm" in log.notes
    assert log.columns.propensity == "_label_probability"
    assert cp.read_log(tmp_path / "x.json", owners=ITEMS, arm="c._multi.TAction.about").arms == log.arms


def test_an_action_that_is_not_in_its_list_is_a_fault(tmp_path):
    line = decision(random.Random(1))[0]
    (tmp_path / "x.json").write_text("\n".join(json.dumps(line | {"_label_Action": k}) for k in (1, 9, 0)))
    with pytest.raises(LogError, match=r"no arm \(2 rows"):
        cp.read_log(tmp_path / "x.json", owners=ITEMS)
    assert cp.read_log(tmp_path / "x.json", owners=ITEMS, leave_out=True).rounds == 1


def test_growthbook_has_leaves_and_the_weight_of_the_variation_that_was_served(tmp_path):
    rows = {
        "variation_id": ["0", "1", "1"], "leaf_id": [3, 3, 4], "converted": [1, 0, 1], "bandit_version": [1, 1, 2],
        "variation_weights": [[0.25, 0.75], [0.25, 0.75], [0.5, 0.5]],
    }  # fmt: skip
    owners = {"0": "ana", "1": "bo"}
    table = cp.read_log(pa.table(rows), owners=owners)
    lines = [",".join(rows), *(f'{v},{leaf},{c},{b},"{w}"' for v, leaf, c, b, w in zip(*rows.values(), strict=True))]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    for log in (table, cp.read_log(tmp_path / "x.csv", owners=owners)):
        assert (log.columns.arm, log.columns.segment) == ("variation_id", ("leaf_id",))
        assert sorted((each.arm, each.weights) for each in log.propensities) == [("0", 4.0), ("1", 4 / 3), ("1", 2.0)]
        assert list(log.segments) == ["3", "4"]
    named = {"variation_id": ["control", "blue"], "variation_weights": [[0.5, 0.5]] * 2, "converted": [1, 0]}
    assert cp.read_log(named, owners={"control": "ana", "blue": "bo"}).columns.propensity is None


def test_states_of_litellm_are_sums_of_signals_by_type_of_request():
    states = {
        "router_name": ["r"] * 3, "request_type": ["writing", "writing", "general"], "model_name": ["a", "b", "a"],
        "alpha": [3.0, 0.0, 2.0], "beta": [1.0, 2.5, 0.0], "total_samples": [4, 3, 2],
    }  # fmt: skip
    log = cp.read_log(states, owners={"a": "ana", "b": "bo"})
    assert [(arm.arm, arm.rounds, arm.total) for arm in log.arms] == [("a", 6, 5), ("b", 3, 0)]
    assert {name: [arm.rounds for arm in arms] for name, arms in log.segments.items()} == {
        "writing": [4, 3],
        "general": [2],
    }
    assert any("signal of LiteLLM" in note for note in log.notes)


def test_states_of_a_router_are_a_log(tmp_path):
    place, owners = tmp_path / "state.json", {"a": "ana", "b": "bo"}

    def read(states):
        place.write_text(json.dumps(states, indent=1))
        log = cp.read_log(place, owners=owners)
        return {arm.arm: (arm.rounds, arm.total) for arm in log.arms}, sorted(log.segments or ())

    flat = {"a": {"alpha": 4, "beta": 3, "seen": "x"}, "b": {"alpha": 1, "beta": 2}}
    assert read(flat) == ({"a": (5, 3), "b": (1, 0)}, [])
    assert read(flat | {"b": {"alpha": 0, "beta": 2}}) == ({"a": (7, 4), "b": (2, 0)}, [])  # counts, without a prior
    assert read({"code": flat, "writing": flat}) == ({"a": (10, 6), "b": (2, 0)}, ["code", "writing"])
    cell = {"request_type": "general", "model": "a", "alpha": 9.0, "beta": 6.0, "samples": 5, "quality_mean": 0.6}
    shown = {"router_name": "r", "cells": [cell, cell | {"model": "b", "alpha": 5.0, "beta": 8.0, "samples": 3}]}
    assert read(shown) == ({"a": (5, 4), "b": (3, 0)}, ["general"])
    rows = [{"request_type": "code", "model_name": "a", "alpha": 3, "beta": 1}]  # LiteLLM's table: beyond the prior
    assert read(rows) == ({"a": (4, 3)}, ["code"])
    assert read({"a": {"successes": 3, "failures": 1}}) == ({"a": (4, 3)}, [])


@settings(max_examples=100 if LONG else 12)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y"]), st.sampled_from(["p", "q", "r"]), st.booleans()),
        min_size=1, max_size=40,
    )
)  # fmt: skip
def test_segments_add_up_to_the_log(rows):
    arm, first, second, click = zip(*rows, strict=True)
    table = {"agent": arm, "arm": arm, "device": first, "place": second, "click": np.array(click, np.int8)}
    log = cp.read_log({name: list(values) for name, values in table.items()}, segment=["device", "place"])
    crossed = defaultdict(int)
    for name, one, two, _ in rows:
        crossed[name, f"{one} / {two}"] += 1
    assert crossed == {(own.arm, name): own.rounds for name, arms in log.segments.items() for own in arms}
    for each in log.arms:
        parts = [own for arms in log.segments.values() for own in arms if own.place == each.place]
        assert (each.rounds, each.total) == (sum(p.rounds for p in parts), sum(p.total for p in parts))
    assert cp.read_log({name: list(values) for name, values in table.items()}).arms == log.arms


@pytest.mark.parametrize("apart", [False, True])
def test_a_note_says_when_rates_differ_and_no_segment_was_named(apart):
    """That items are shown in different mixes of segments is no difference."""
    dice = np.random.default_rng(5)
    n = 4000
    arm = dice.integers(0, 4, n)
    mobile = dice.random(n) < 0.2 + 0.2 * arm
    click = dice.random(n) < 0.2 + 0.1 * arm + 0.15 * (mobile & apart)
    table = {"agent": arm, "arm": arm, "click": click, "device": np.where(mobile, "mobile", "desktop")}
    notes = [note for note in cp.read_log(table).notes if "rates differ" in note]
    assert len(notes) == apart
    assert not apart or "--segment device" in notes[0]
    assert not [note for note in cp.read_log(table, segment="device").notes if "rates differ" in note]


def test_columns_that_cannot_be_segments_are_no_fault_of_a_log(tmp_path):
    """A vector, a header that is there twice, one value, and successes in a small cell only."""
    rows = {
        "agent": ["ana"] * 3,
        "arm": ["x"] * 3,
        "click": [1, 0, 1],
        "device": [[1.0, 2.0]] * 3,
        "country": ["a"] * 3,
    }
    assert cp.read_log(pa.table(rows)).rounds == 3
    (tmp_path / "x.csv").write_text("agent,arm,click,device,device\nana,x,1,a,b\nana,x,0,a,c\n")
    assert cp.read_log(tmp_path / "x.csv").rounds == 2
    few = {"agent": ["ana"] * 700, "arm": ["x"] * 700, "click": [1] * 50 + [0] * 650}
    assert cp.read_log(few | {"device": ["a"] * 50 + ["b"] * 325 + ["c"] * 325}).rounds == 700


def test_the_command_shows_segments_and_places(tmp_path):
    rows = [f"a{k % 3},i{k % 3},{int(k % 7 < 4)},d{k % 2},p{k % 5},{1 + k % 4 // 2}" for k in range(600)]
    (tmp_path / "x.csv").write_text("\n".join(["agent,arm,click,device,place,rank", *rows]))
    asked = ["--segment", "device", "--segment", "place", "--position", "rank", "--statistics"]
    done = run("log", tmp_path / "x.csv", *asked)
    words = " ".join(done.stdout.split())
    assert done.returncode == 0
    for text in ("segment: device x place", "d1 / p4", "attention", "position: rank"):
        assert text in words


def study_of_two_devices(policy, n=10_000, **options):
    """A log in which an item of ana's, good on phones only, is listed under three names with one title."""
    dice = np.random.default_rng(8)
    names = ["a", "a2", "a3", "b", "c"]
    rates = {"phone": [0.4, 0.4, 0.4, 0.2, 0.3], "desk": [0.1, 0.1, 0.1, 0.3, 0.2]}
    arm, phone = dice.integers(0, 5, n), dice.random(n) < 0.75
    click = dice.random(n) < np.where(phone, np.array(rates["phone"])[arm], np.array(rates["desk"])[arm])
    table = {
        "agent": np.array(["ana", "ana", "ana", "bo", "cy"])[arm], "arm": np.array(names)[arm], "click": click,
        "device": np.where(phone, "phone", "desk"), "title": np.array(["same"] * 3 + ["b", "c"])[arm],
    }  # fmt: skip
    log = cp.read_log(table, segment="device", same="title")
    return study_log(log, policy, "etc", horizon=60, seconds=1.5, **options)


def test_a_study_has_rates_findings_gains_and_advice_by_segment_and_in_total():
    with budget_clock(None):
        study = study_of_two_devices(lambda market: cp.mechanism("etc", arm_rounds=2))
    assert study.market.segments == pytest.approx({"phone": 0.75, "desk": 0.25}, abs=0.02)
    for name, rate in (("phone", 0.3), ("desk", 0.2)):  # of three items
        prior = study.market.segment(name).agents[0].prior
        assert prior.mean == pytest.approx(rate, abs=0.05)
    assert set(study.by_segment) == {"phone", "desk"}
    assert study.verdict.verdict == "exploitable"
    gains = [each.value for each in study.verdict.by_segment.values()]
    assert sum(gains) == pytest.approx(study.verdict.worst.gain.value)
    assert study.recommendation.choice.regret.value == pytest.approx(
        sum(each.choice.regret.value for each in study.recommendation.by_segment.values()), rel=0.2
    )
    (shown,) = [
        part for each in study.sections() if each.title == "By segment" for part in each.parts if part.kind == "table"
    ]
    assert [row[0] for row in shown.rows] == ["phone", "desk", "all"]
    json.dumps(study.to_dict())


def test_small_segments_are_pooled_in_a_study():
    rows = {"agent": ["a"] * 55, "arm": ["x"] * 55, "click": [1, 0, 0, 0, 1] * 11}
    rows["query"] = [f"q{k}" for k in range(10) for _ in range(k + 1)]
    found = studied_segments(cp.read_log(rows, segment="query"))
    assert {name: own.rounds for name, own in found.items()} == {
        "q9": 10,
        "q8": 9,
        "q7": 8,
        "q6": 7,
        "q5": 6,
        "5 others": 15,
    }
    assert sum(own.arms[0].total for own in found.values()) == 22


def database_of(place, *statements):
    with closing(sqlite3.connect(place)) as database, database:
        for statement, *rows in statements:
            database.execute(statement)
            table = statement.split()[2]
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})" if rows else "", rows)
    return place


def counted(log):
    return {arm.arm: (arm.rounds, arm.total) for arm in log.arms}


def test_counts_of_a_router_are_read_from_sqlite(tmp_path):
    owners = {"a": "ana", "b": "bo"}
    rows = [("a", 9.0, 3.0), ("b", 5.0, 7.0)]
    beyond = {"a": (10, 8.0), "b": (10, 4.0)}  # the prior Beta(1, 1)
    made = database_of(tmp_path / "x.db", ("CREATE TABLE arms (arm_id TEXT, alpha REAL, beta REAL)", *rows))
    assert counted(cp.read_log(made, owners=owners)) == beyond
    made = database_of(tmp_path / "y.db", ("CREATE TABLE arms (model TEXT, successes REAL, failures REAL)", *rows))
    assert counted(cp.read_log(made, owners=owners)) == {"a": (12, 9.0), "b": (12, 5.0)}
    table = "CREATE TABLE requests (id INTEGER, platform TEXT, model_id TEXT, status TEXT)"  # freellmapi's
    kinds = ["success", "success", "error", "canceled", "timeout"]
    asked = [(k, "groq", f"m{k % 2}", kinds[k % 5]) for k in range(20)]
    log = cp.read_log(database_of(tmp_path / "z.db", (table, *asked)), owners={"groq/m0": "ana", "groq/m1": "bo"})
    assert counted(log) == {"groq/m0": (8, 4.0), "groq/m1": (8, 4.0)}
