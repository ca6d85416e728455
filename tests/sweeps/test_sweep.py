"""Sweeps: the bits of asking each point by itself, whatever the workers and the interruptions were."""

import csv
import io
import os
import signal
import subprocess
import sys
import threading

import pytest

import cloneproof as cp
from cloneproof.errors import SweepError
from cloneproof.sweeps import tasks
from cloneproof.sweeps.sweep import Interrupted
from support.disk import full_disk

MARKET = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=200)
SAMPLED = {
    "market": MARKET,
    "mechanism": ["ucb1", "epsilon-greedy"],
    "copies": [{}, {"ana": (2, 1)}],
    "seed": [3, 4],
    "engine": "runs",
    "runs": 400,
}


def test_every_row_has_the_bits_of_evaluate(tmp_path):
    table = cp.sweep(SAMPLED | {"confidence": 0.95}, tmp_path / "points", workers=1)
    assert len(table.rows) == 2 * 2 * 2 * 3
    for row in table.rows:
        copies = {name: tuple(map(int, own.split(","))) for name, own in map(str.split, row["copies"].split("; "))}
        direct = cp.evaluate(
            MARKET,
            cp.mechanism(row["mechanism"]),
            copies,
            "runs",
            search=cp.Search(runs=400, seed=row["seed"]),
            confidence=0.95,
        )
        expected = direct.regret if row["quantity"] == "regret" else direct.payoff[row["agent"]]
        assert {name: row[name] for name in expected.to_dict()} == expected.to_dict()
        assert row["notes"] == "; ".join(direct.notes)


def test_auto_is_exact_where_it_can_be_and_says_why_not(tmp_path):
    grid = {"market": MARKET, "mechanism": ["h-etc-r", "ucb1"], "runs": 50, "horizon": [50, 2000]}
    table = cp.sweep(grid, tmp_path / "points", workers=1)
    for row in table.where(quantity="regret").rows:
        market = MARKET.with_horizon(row["horizon"])
        direct = cp.evaluate(market, cp.mechanism(row["mechanism"], market=market), search=cp.Search(runs=50))
        assert (row["value"], row["error"], row["engine"]) == (direct.regret.value, direct.regret.error, direct.engine)
        assert row["notes"] == "; ".join(direct.notes)
    assert set(table["engine"]) == {"law", "tree", "runs"}


def test_gains_are_paired(tmp_path):
    copies = [{"ana": (2, 1)}, {"ana": (3, 1)}]
    grid = {"market": MARKET, "mechanism": "ucb1", "question": "gain", "agent": "ana", "copies": copies, "runs": 200}
    table = cp.sweep(grid, tmp_path / "points", workers=1)
    for row, own in zip(table.where(quantity="gain").rows, copies, strict=True):
        direct = cp.gain(MARKET, cp.mechanism("ucb1"), "ana", own, search=cp.Search(runs=200), stop_when_decided=False)
        assert (row["value"], row["error"]) == (direct.estimate.value, direct.estimate.error)


def test_audits_keep_verdict_witness_and_scope(tmp_path):
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    grid = {"market": market, "mechanism": ["ucb1", {"name": "etc", "arm_rounds": 1}], "question": "audit"}
    table = cp.sweep(grid, tmp_path / "points", workers=1)
    for row, name in zip(table.where(quantity="gain").rows, ("ucb1", "etc"), strict=True):
        mechanism = cp.mechanism(name, **({"arm_rounds": 1} if name == "etc" else {}))
        direct = cp.audit(market, mechanism)
        assert (row["verdict"], row["scope"]) == (direct.verdict, str(direct.scope))
        assert row["copies"] == f"{direct.worst.agent} {','.join(map(str, direct.worst.copies))}"
        assert (row["value"], row["error"]) == (direct.worst.gain.value, direct.worst.gain.error)


def test_a_second_call_computes_nothing_and_overlaps_are_shared(tmp_path):
    first = cp.sweep(SAMPLED, tmp_path / "points", workers=2)
    assert first.summary.computed == 8
    again = cp.sweep(SAMPLED, tmp_path / "points", workers=1)
    assert (again.summary.computed, again.summary.reused) == (0, 8)
    assert again.to_csv() == first.to_csv()
    more = cp.sweep(SAMPLED | {"seed": [4, 5]}, tmp_path / "points", workers=1)
    assert (more.summary.computed, more.summary.reused) == (4, 4)
    alone = cp.sweep(SAMPLED | {"seed": [4, 5]}, tmp_path / "alone", workers=1)
    assert more.to_csv() == alone.to_csv()


def test_two_sweeps_at_the_same_time_share_a_store(tmp_path):
    done = []
    both = [
        threading.Thread(target=lambda: done.append(cp.sweep(SAMPLED, tmp_path / "both", workers=1))) for _ in range(2)
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    alone = cp.sweep(SAMPLED, tmp_path / "alone", workers=1)
    assert [table.to_csv() for table in done] == [alone.to_csv()] * 2
    assert cp.sweep(SAMPLED, tmp_path / "both", workers=1).summary.computed == 0


def test_points_that_ask_the_same_are_computed_once(tmp_path):
    twice = {"market": MARKET, "mechanism": "thompson", "engine": "runs", "runs": [300, 300.0, 100]}
    table = cp.sweep(twice, tmp_path / "points", workers=1)
    assert (table.summary.points, table.summary.computed) == (3, 2)
    assert len(table.where(quantity="regret").rows) == 3


def test_ctrl_c_keeps_what_was_computed_and_says_how_to_go_on(tmp_path):
    handled = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored

    def interrupt(state):
        if state.finished == 3:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(Interrupted, match=r"3 points of this run are stored .* goes on from there"):
            cp.sweep(SAMPLED, tmp_path / "points", workers=1, progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, handled)
    after = cp.sweep(SAMPLED, tmp_path / "points", workers=1)
    assert (after.summary.reused, after.summary.computed) == (3, 5)
    assert after.to_csv() == cp.sweep(SAMPLED, tmp_path / "alone", workers=1).to_csv()


KILLED = """
import os, signal, sys
import cloneproof as cp
market = cp.load_market(sys.argv[1])
def kill(state):
    if state.finished == 5:
        os.kill(os.getpid(), signal.SIGKILL)
cp.sweep({"market": market, "mechanism": "ucb1", "engine": "runs", "runs": 70, "seed": list(range(8))},
         sys.argv[2], workers=1, progress=kill)
"""


def test_a_killed_driver_leaves_a_store_that_goes_on_to_the_bit(tmp_path):
    cp.save_market(MARKET, tmp_path / "market.toml")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "market.toml"), str(tmp_path / "store")]
    assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL
    grid = {"market": MARKET, "mechanism": "ucb1", "engine": "runs", "runs": 70, "seed": list(range(8))}
    after = cp.sweep(grid, tmp_path / "store", workers=1)
    assert (after.summary.reused, after.summary.computed) == (5, 3)
    assert after.to_csv() == cp.sweep(grid, tmp_path / "alone", workers=1).to_csv()


def test_a_full_disk_ends_a_sweep_with_a_sentence_and_a_usable_store(tmp_path):
    alone = cp.sweep(SAMPLED, tmp_path / "alone", workers=1)  # also compiles what writes to a cache of its own
    room = (tmp_path / "alone").stat().st_size // 2
    with full_disk(room), pytest.raises(SweepError, match=r"^expected room and rights to use the store.*again"):
        cp.sweep(SAMPLED, tmp_path / "store", workers=1)
    after = cp.sweep(SAMPLED, tmp_path / "store", workers=1)
    assert 0 < after.summary.reused < 8
    assert after.to_csv() == alone.to_csv()


def test_a_refused_point_does_not_stop_the_others(tmp_path):
    grid = {"market": MARKET, "mechanism": ["ucb1", "h-etc-r"], "engine": "law"}
    table = cp.sweep(grid, tmp_path / "points", workers=1)
    refused, answered = table.rows[0], table.rows[1]
    assert (refused["quantity"], refused["value"], refused["engine"]) == ("refused", None, "refused")
    assert "an exact law expects" in refused["notes"]
    assert answered["engine"] == "law"


def test_a_failing_worker_is_one_sentence(tmp_path, monkeypatch):
    def broken(*task):
        raise MemoryError("no room")

    monkeypatch.setattr(tasks, "answer", broken)
    with pytest.raises(SweepError, match="got MemoryError: no room"):
        cp.sweep(SAMPLED, tmp_path / "points", workers=1)


def test_progress_ends_at_all(tmp_path):
    seen = []
    cp.sweep(SAMPLED, tmp_path / "points", workers=1, progress=lambda state: seen.append(state.line))
    assert seen == [f"{k} of 8 points, 0 of them were there" for k in range(1, 9)]


def test_tables_are_columns_rows_and_files(tmp_path):
    table = cp.sweep(SAMPLED | {"runs": 20}, tmp_path / "store", workers=1)
    read = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [float(row["value"]) for row in read] == table["value"]
    table.write(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text(encoding="utf-8") == table.to_csv()
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(dict(table))
    assert frame.groupby("quantity").size().to_dict() == {"payoff": 16, "regret": 8}
    parquet = pytest.importorskip("pyarrow.parquet")
    table.write(tmp_path / "table.parquet")
    assert parquet.read_table(tmp_path / "table.parquet").to_pydict() == dict(table)
    with pytest.raises(SweepError, match=r"ends in \.csv or \.parquet"):
        table.write(tmp_path / "table.xls")
    with pytest.raises(SweepError, match="expected a folder"):
        table.write(tmp_path / "nowhere" / "table.csv")
    with pytest.raises(SweepError, match="did you mean 'quantity'"):
        table.where(quantiy="regret")
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setitem(sys.modules, "pyarrow.parquet", None)
        with pytest.raises(SweepError, match=r"cloneproof\[parquet\]"):
            table.write(tmp_path / "table.parquet")
