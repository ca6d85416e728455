"""The statistics of a log are exact, whatever it is stored in; faults are counted; columns are guessed aloud."""

import csv
import gzip
import io
import json
import random
import tempfile
from collections import defaultdict
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloneproof as cp
from support.command import run
from support.sizes import LONG


def some_rows(count=600, seed=1, rewards=(0, 1)):
    dice = random.Random(seed)
    return [
        {
            "ts": k, "advertiser": f"adv-{dice.randrange(5)}", "campaign": "", "click": dice.choice(rewards),
            "title": f"t{dice.randrange(3)}",
        }
        for k in range(count)
    ]  # fmt: skip


def with_campaigns(rows):
    return [row | {"campaign": f"{row['advertiser']}/{row['ts'] % 3}"} for row in rows]


def by_hand(rows, low=0, high=1):
    """Rounds, sum and squares of each arm, in fractions, without a database."""
    sums = defaultdict(lambda: [0, Fraction(0), Fraction(0)])
    for row in rows:
        reward = (Fraction(str(row["click"])) - low) / (high - low)
        entry = sums[row["advertiser"], row["campaign"]]
        entry[0] += 1
        entry[1] += reward
        entry[2] += reward**2
    return {key: tuple(value) for key, value in sums.items()}


def statistics(log):
    return {(arm.agent, arm.arm): (arm.rounds, arm.total, arm.squares) for arm in log.arms}


def test_every_way_to_store_a_log_gives_the_same_statistics_as_by_hand(tmp_path):
    rows = with_campaigns(some_rows())
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_csv(tmp_path / "x.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "x.csv.gz", index=False)
    frame.to_csv(tmp_path / "[x] *.csv", index=False)
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.table(frame.drop(columns="title")), tmp_path / "x.parquet")
    folder = tmp_path / "parts"
    pq.write_to_dataset(pa.table(frame), folder, partition_cols=["advertiser"])
    halves = tmp_path / "halves"
    halves.mkdir()
    frame[:300].to_csv(halves / "a.csv", index=False)
    frame[300:][["click", "campaign", "title", "advertiser", "ts"]].to_csv(halves / "b.csv", index=False, sep=";")
    expected = by_hand(rows)
    sources = [tmp_path / name for name in ("x.csv", "x.tsv", "x.csv.gz", "[x] *.csv", "x.jsonl", "x.parquet")]
    sources += [folder, halves, str(halves / "*.csv"), [halves / "a.csv", halves / "b.csv"]]
    sources += [frame, pl.from_pandas(frame), pa.table(frame), duckdb.from_df(frame), frame.to_dict("list")]
    told = []
    for source in sources:
        assert statistics(cp.read_log(source, progress=told.append)) == expected, source
    assert all(0 <= part <= 1 for part in told)


def test_decimal_rewards_are_summed_exactly_and_a_range_is_declared(tmp_path):
    rows = with_campaigns(some_rows(rewards=(1, 1.5, 3.7, 4.999999, 5)))
    log = cp.read_log(pd.DataFrame(rows), reward_range=(1, 5))
    assert statistics(log) == by_hand(rows, 1, 5)
    assert "exact" in log.exact
    thirds = cp.read_log({"agent": ["a"], "arm": ["b"], "reward": [1 / 3]})
    assert "rounded" in thirds.exact
    assert abs(thirds.arms[0].total - Fraction(1, 3)) <= Fraction(1, 2_000_000)


NAMES = ["a", "b", "", "abcdefgh", "a" * 40, "ünï", "名", " x", "#x", "it's", "NULL", "7", '"q"', '"a,b"']
REWARDS = ["0", "1", "0.5", "0.000001", "1.000", "00.5", "1e-1", ".5", "", "x", "2", "-1", "nan", "inf", "yes", "1_0x"]
TIMES = ["0", "17", "1700000000", "-3", "12.5", ""]


@settings(deadline=None, max_examples=25 if LONG else 12, derandomize=True)
@given(
    st.lists(st.tuples(*map(st.sampled_from, (NAMES, NAMES, REWARDS, TIMES))), min_size=1, max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(",;\t|"),
)
def test_rows_are_kept_and_left_out_as_by_hand(rows, ending, delimiter):
    """Every row, with whatever stands in it, by Python's own CSV and numbers."""
    rows = [("a", "b", "1", "5"), *rows]
    text = "".join(delimiter.join(row) + ending for row in [("agent", "arm", "click", "ts"), *rows])
    kept = defaultdict(lambda: [0, Fraction(0), Fraction(0), []])
    for agent, arm, told, time in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
        reward = "1" if told == "yes" else told
        with suppress(ValueError):
            if agent and arm and 0 <= float(reward) <= 1:
                entry = kept[agent, arm]
                moment, value = float(time), Fraction(reward)
                kept[agent, arm] = [entry[0] + 1, entry[1] + value, entry[2] + value**2, [*entry[3], moment]]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "x.csv").write_bytes(text.encode())
        log = cp.read_log(f"{folder}/x.csv", local_arms=True, leave_out=True)
    found = {(arm.agent, arm.arm): [arm.rounds, arm.total, arm.squares, arm.first, arm.last] for arm in log.arms}
    assert found == {key: [*sums, min(at), max(at)] for key, (*sums, at) in kept.items() if at}
    assert log.rows == len(rows) == log.rounds + log.left_out


def test_aggregated_rows_and_owners(tmp_path):
    (tmp_path / "x.csv").write_text("campaign,impressions,clicks\na,100,7\nb,50,2\na,10,1\n")
    (tmp_path / "owners.csv").write_text("campaign,advertiser\na,ana\nb,bo\n")
    log = cp.read_log(tmp_path / "x.csv", owners=tmp_path / "owners.csv")
    assert statistics(log) == {("ana", "a"): (110, 8, 8), ("bo", "b"): (50, 2, 2)}


def test_faults_are_counted_and_the_rest_is_read(tmp_path):
    (tmp_path / "x.csv").write_text(
        "agent,arm,click\nana,a,1\n,a,1\nana,,1\nana,a,\nana,a,2\nana,a,x\nana,a\nana,a,1,1\nana,a,0\n,a,1\n"
    )
    log = cp.read_log(tmp_path / "x.csv", leave_out=True)
    assert statistics(log) == {("ana", "a"): (2, 1, 1)}
    assert log.rows == 10
    assert log.left_out == 8
    counts = {fault.kind: fault.count for fault in log.faults}
    assert counts["no agent"] == 2
    assert sum(counts.values()) == 8
    assert next(fault for fault in log.faults if fault.kind == "no agent").first == "in row 2 of x.csv"


def test_guesses_are_said_and_known_formats_recognised():
    obd = {"timestamp": ["2019-11-24 00:00:02"], "item_id": [7], "position": [1], "click": [0]}
    log = cp.read_log(obd, owners={"7": "shirts"})
    assert log.columns.arm == "item_id"
    assert "using `click` as the reward" in log.notes
    assert cp.read_log({"action": [1], "reward": [1.0], "agent": ["a"]}).columns.arm == "action"


def test_an_arm_with_two_agents_is_a_fault_unless_names_are_local():
    rows = {"agent": ["ana", "bo", "bo"], "arm": ["1", "1", "2"], "click": [1, 0, 1]}
    assert len(cp.read_log(rows, local_arms=True).arms) == 3
    assert [arm.arm for arm in cp.read_log(rows, leave_out=True).arms] == ["2"]


def test_squares_of_small_numbers_fit():
    """Products of 8-bit numbers are 8-bit numbers in DuckDB."""
    ratings = pa.table({"agent": ["a"] * 2, "arm": ["b"] * 2, "rating": pa.array([50, 100], pa.int8())})
    assert float(cp.read_log(ratings, reward_range=(0, 100)).arms[0].squares) == 1.25


def test_a_log_that_is_not_read_in_time_is_left_with_a_sentence(tmp_path):
    """Kilobytes of gzip, and a million rows: a bomb that used to be read to its end, whatever --seconds said."""
    row = b"".join(b"agent-%d,arm-%d,1\n" % (k % 7, k % 7) for k in range(10_000))
    with gzip.open(tmp_path / "x.csv.gz", "wb") as file:
        file.write(b"agent,arm,click\n")
        for _ in range(100):
            file.write(row)
    done = run("log", tmp_path / "x.csv.gz", "--seconds", "0.01")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "expected to read the log within 0.01 s, got about" in done.stderr
    assert len(cp.read_log(tmp_path / "x.csv.gz").arms) == 7


def test_titles_that_nobody_named_are_a_doubt():
    """ "Nothing looks like copies" would else be said of a log whose titles were not compared."""
    rows = {"agent": ["a", "b"], "arm": ["x", "y"], "title": ["Oak tray", "Oak tray"], "click": [1, 0]}
    (doubt,) = cp.read_log(rows).columns.doubts
    assert doubt.endswith("is not compared: name it by --same title")
    assert not cp.read_log(rows, same="title").columns.doubts
    assert not cp.read_log(rows, arm="title", local_arms=True).columns.doubts


def test_times_tell_dates_and_how_late_rewards_come(tmp_path):
    """Exponential delays of two hours on average, in a log of 28 days; numbers of seconds tell the same."""
    dice, rows = np.random.default_rng(1), 20_000
    shown = 1_780_000_000 + np.sort(dice.uniform(0, 28 * 86_400, rows)).round()
    click = dice.random(rows) < 0.2
    came = shown + dice.exponential(7200, rows)
    table = pd.DataFrame({"shop": "a", "item": dice.choice(["x", "y"], rows), "click": np.where(click, "yes", "no")})
    numbers = table.assign(shown_at=shown, clicked_at=np.where(click, came, np.nan))
    dates = table.assign(
        shown_at=pd.to_datetime(shown, unit="s"), clicked_at=pd.to_datetime(came, unit="s").where(click)
    )
    for own in (numbers, dates):
        own.to_csv(tmp_path / "x.csv", index=False)
        log = cp.read_log(tmp_path / "x.csv")
        assert log.dates == "28 May to 25 June 2026"
        assert sum(arm.total for arm in log.arms) == click.sum()
        assert log.delays is not None
        assert [hours for _, hours in log.delays.points] == pytest.approx(-2 * np.log([0.5, 0.2, 0.05]), rel=0.1)
        assert log.delays.lasts == pytest.approx(28 * 24, rel=0.01)
    assert cp.read_log(table).delays is None


def test_items_never_shown_count_if_their_owners_are_named():
    log = cp.read_log({"item": ["x", "y"], "click": [1, 0]}, owners={"x": "ana", "y": "bo", "z": "bo"})
    assert [(arm.place, arm.rounds) for arm in log.arms] == [(("ana", "x"), 1), (("bo", "y"), 1), (("bo", "z"), 0)]


def test_all_missing_columns_are_named_at_once_with_the_command():
    rows = {"shop_name": ["a"], "ean": ["x"], "was_clicked": [1]}
    with pytest.raises(cp.errors.LogError, match="expected columns for the agent, the arm and the reward, got none"):
        cp.read_log(rows)
    with pytest.raises(cp.errors.LogError, match="FILE --agent shop_name --arm COLUMN --reward was_clicked`, or say"):
        cp.read_log(rows)
    log = cp.read_log({"shop": ["a"], "model": ["x"], "converted": ["true"]})
    assert (log.columns.agent, log.columns.arm, log.arms[0].total) == ("shop", "model", 1)
