"""Counting rows by reward first gives the sums of the rows themselves, also where rows have faults."""

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cloneproof as cp
from cloneproof.logs.reader import statistics
from cloneproof.logs.reader.columns import chosen_columns
from cloneproof.logs.reader.few_rewards import counted_rows
from cloneproof.logs.reader.sources import log_source

START = datetime(2026, 3, 1)


def some_table(reward, time, odd, count=400):
    dice = random.Random(5)

    def value(usual, *others):
        return dice.choice(others) if odd and dice.random() < 0.1 else usual

    agents = [value(f"adv-{dice.randrange(4)}", None, "") for _ in range(count)]
    columns = {
        "agent": agents,
        "arm": [value(f"{agent}/{dice.randrange(3)}", None, "") for agent in agents],
        "click": pa.array([value(dice.randrange(2), None, 100, -1) for _ in range(count)], reward),
    }
    if time is not None:
        moments = [value(dice.randrange(10**6), None) for _ in range(count)]
        if time != pa.int64():
            moments = [None if each is None else START + timedelta(seconds=each) for each in moments]
        columns["ts"] = pa.array(moments, time)
    return pa.table(columns)


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("time", [None, pa.int64(), pa.timestamp("us"), pa.date32()])
@pytest.mark.parametrize("reward", [pa.int8(), pa.int64()])
def test_the_same_by_both_ways(tmp_path, monkeypatch, reward, time, odd):
    pq.write_table(some_table(reward, time, odd), tmp_path / "x.parquet")
    source, scale = log_source(tmp_path / "x.parquet"), statistics.checked_scale((0, 1))
    columns = chosen_columns(list(source.columns), {})
    terms = statistics.row_terms(source, columns, scale)
    assert counted_rows(source, columns, terms.whole, terms.time) is not None
    asked = {"leave_out": True, "cache": False}
    sums, log = statistics.arm_sums(source, columns, scale, terms), cp.read_log(tmp_path / "x.parquet", **asked)
    monkeypatch.setattr(statistics, "counted_rows", lambda *_: None)
    plain = statistics.arm_sums(source, columns, scale, terms)
    assert sorted(map(repr, sums)) == sorted(map(repr, plain))
    assert cp.read_log(tmp_path / "x.parquet", **asked) == log
    assert bool(log.faults) == odd


def test_squares_of_small_numbers_fit():
    """Products of 8-bit numbers are 8-bit numbers in DuckDB."""
    log = cp.read_log(pa.table({"agent": ["a"] * 2, "arm": ["b"] * 2, "rating": pa.array([50, 100], pa.int8()),
                                "title": ["t"] * 2}), limits=(0, 100), same="title")  # fmt: skip
    assert float(log.arms[0].squares) == 1.25


def test_many_values_are_not_counted_one_by_one(tmp_path):
    pq.write_table(
        pa.table({"agent": ["a"] * 1000, "arm": ["b"] * 1000, "click": list(range(1000))}), tmp_path / "x.pq"
    )
    source, scale = log_source(tmp_path / "x.pq"), statistics.checked_scale((0, 1000))
    columns = chosen_columns(list(source.columns), {})
    terms = statistics.row_terms(source, columns, scale)
    assert counted_rows(source, columns, terms.whole, terms.time) is None
