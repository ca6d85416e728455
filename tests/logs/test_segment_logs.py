"""Logs with segments."""

import json
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.logs.originals import studied_segments
from cloneproof.logs.study import study_log
from support.clocks import ticking
from support.command import run
from support.sizes import LONG


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


def test_a_study_has_rates_gains_and_advice_by_segment_and_in_total():
    with ticking(0.0):
        study = study_of_two_devices(lambda market: cp.mechanism("etc", arm_rounds=2))
    assert study.market.segments == pytest.approx({"phone": 0.75, "desk": 0.25}, abs=0.02)
    for name, rate in (("phone", 0.3), ("desk", 0.2)):  # of three items
        prior = study.market.segment(name).agents[0].prior
        assert prior.mean == pytest.approx(rate, abs=0.05)
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
