"""Sweeps: the bits of asking each point by itself, whatever the chunks, the workers and the interruptions were."""

import csv
import io
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof.errors import SweepError
from cloneproof.sweeps import tasks
from cloneproof.sweeps.store import store_status
from cloneproof.sweeps.sweep import Interrupted, Sizes
from support.disk import full_disk

MARKET = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=200)
TINY = Sizes(chunk_bytes=8 * 4 * 97)  # 97 runs of three agents
SAMPLED = {
    "market": MARKET,
    "mechanism": ["ucb1", "epsilon-greedy"],
    "copies": [{}, {"ana": (2, 1)}],
    "seed": [3, 4],
    "engine": "monte-carlo",
    "runs": 400,
}
FEW = SAMPLED | {"mechanism": "ucb1", "copies": {}, "seed": 3, "runs": 700}  # eight chunks


def test_every_row_has_the_bits_of_evaluate(tmp_path):
    table = cp.sweep(SAMPLED | {"confidence": 0.95}, tmp_path, workers=1)
    assert len(table.rows) == 2 * 2 * 2 * 3
    for row in table.rows:
        copies = {name: tuple(map(int, own.split(","))) for name, own in map(str.split, row["copies"].split("; "))}
        direct = cp.evaluate(
            MARKET,
            cp.mechanism(row["mechanism"]),
            copies,
            "monte-carlo",
            search=cp.Search(runs=400, seed=row["seed"]),
            confidence=0.95,
        )
        expected = direct.regret if row["quantity"] == "regret" else direct.payoff[row["agent"]]
        assert {name: row[name] for name in ("value", "error", "kind", "method")} == expected.to_dict()
        assert row["notes"] == "; ".join(direct.notes)


def test_chunks_and_threads_change_nothing(tmp_path):
    plain = cp.sweep(SAMPLED, tmp_path / "plain", workers=1)
    chopped = cp.sweep(SAMPLED, tmp_path / "chopped", workers=3, sizes=TINY)
    assert chopped.summary.computed > 3 * plain.summary.computed
    assert chopped.to_csv() == plain.to_csv()


def test_auto_is_exact_where_it_can_be_and_says_why_not(tmp_path):
    grid = {"market": MARKET, "mechanism": ["h-etc-r", "ucb1"], "runs": 50, "horizon": [50, 2000]}
    table = cp.sweep(grid, tmp_path, workers=1)
    for row in table.where(quantity="regret").rows:
        market = MARKET.with_horizon(row["horizon"])
        direct = cp.evaluate(market, cp.mechanism(row["mechanism"], market=market), search=cp.Search(runs=50))
        assert (row["value"], row["error"], row["engine"]) == (direct.regret.value, direct.regret.error, direct.engine)
        assert row["notes"] == "; ".join(direct.notes)
    assert set(table["engine"]) == {"closed-form", "tree", "monte-carlo"}


def test_gains_are_paired_and_share_the_honest_runs(tmp_path):
    copies = [{"ana": (2, 1)}, {"ana": (3, 1)}]
    grid = {"market": MARKET, "mechanism": "ucb1", "question": "gain", "agent": "ana", "copies": copies, "runs": 200}
    table = cp.sweep(grid, tmp_path, workers=1)
    for row, own in zip(table.where(quantity="gain").rows, copies, strict=True):
        direct = cp.gain(MARKET, cp.mechanism("ucb1"), "ana", own, search=cp.Search(runs=200), stop_when_decided=False)
        assert (row["value"], row["error"]) == (direct.estimate.value, direct.estimate.error)
    assert table.summary.runs == 3 * 200  # honest once, and each of the two deviations


def test_audits_keep_verdict_witness_and_scope(tmp_path):
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    grid = {"market": market, "mechanism": ["ucb1", {"name": "etc", "arm_rounds": 1}], "question": "audit"}
    table = cp.sweep(grid, tmp_path, workers=1)
    for row, name in zip(table.where(quantity="gain").rows, ("ucb1", "etc"), strict=True):
        mechanism = cp.mechanism(name, **({"arm_rounds": 1} if name == "etc" else {}))
        direct = cp.audit(market, mechanism)
        assert (row["verdict"], row["scope"]) == (direct.verdict, str(direct.scope))
        assert row["copies"] == f"{direct.worst.agent} {','.join(map(str, direct.worst.copies))}"
        assert (row["value"], row["error"]) == (direct.worst.gain.value, direct.worst.gain.error)


def test_a_second_call_computes_nothing_and_overlaps_are_shared(tmp_path):
    first = cp.sweep(SAMPLED, tmp_path, workers=2, sizes=TINY)
    assert first.summary.runs == 8 * 400
    again = cp.sweep(SAMPLED, tmp_path, workers=1)
    assert (again.summary.computed, again.summary.reused) == (0, first.summary.computed)
    assert again.to_csv() == first.to_csv()
    more = cp.sweep(SAMPLED | {"runs": 600, "seed": [4, 5]}, tmp_path, workers=2, sizes=TINY)
    assert more.summary.runs == 4 * 200 + 4 * 600  # of seed 4 only what is beyond 400
    fewer = cp.sweep(SAMPLED | {"runs": 123}, tmp_path, workers=1)
    assert fewer.summary.computed == 0
    alone = cp.sweep(SAMPLED | {"runs": 123}, tmp_path / "alone", workers=1)
    assert fewer.to_csv() == alone.to_csv()


def test_two_sweeps_at_the_same_time_share_a_store(tmp_path):
    done = []
    both = [
        threading.Thread(target=lambda: done.append(cp.sweep(FEW, tmp_path / "both", workers=1, sizes=TINY)))
        for _ in range(2)
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    alone = cp.sweep(FEW, tmp_path / "alone", workers=1)
    assert [table.to_csv() for table in done] == [alone.to_csv()] * 2
    assert store_status(tmp_path / "both").complete


def test_gains_and_evaluations_share_runs_where_nothing_is_stratified(tmp_path):
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.4))], horizon=100)
    grid = {"market": market, "mechanism": "ucb1", "copies": {"ana": (2,)}, "runs": 100}
    assert cp.sweep(grid | {"engine": "monte-carlo"}, tmp_path, workers=1).summary.runs == 100
    assert cp.sweep(grid | {"question": "gain", "agent": "ana"}, tmp_path, workers=1).summary.runs == 100


def test_points_that_ask_the_same_are_computed_once(tmp_path):
    exact = {"market": MARKET, "mechanism": "h-etc-r", "confidence": [0.9, 0.99]}
    assert cp.sweep(exact, tmp_path / "exact", workers=1).summary.computed == 1
    mixed = {"market": MARKET, "mechanism": "thompson", "grid": [{"runs": 100, "engine": "monte-carlo"}, {"runs": 300}]}
    table = cp.sweep(mixed, tmp_path / "mixed", workers=1)
    assert table.summary.runs == 300
    assert len(table.where(quantity="regret").rows) == 2


ACCIDENTS = (lambda old: old[:-3], lambda old: b"", lambda old: old + b"x", lambda old: None,
             lambda old: bytes([old[0] ^ 1]) + old[1:], lambda old: "text")  # fmt: skip


def damaged(folder):
    """Change what is stored of six chunks, each as another accident would, without a new digest."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as file, file:
        rows = file.execute("SELECT rowid, key, first, runs, contents FROM chunks ORDER BY rowid").fetchall()
        rows = rows[: len(ACCIDENTS)]
        for (row, *_, contents), change in zip(rows, ACCIDENTS, strict=True):
            file.execute("UPDATE chunks SET contents = ? WHERE rowid = ?", (change(contents), row))
    return {f"{key}-{first}-{runs}" for _, key, first, runs, _ in rows}


def test_damaged_chunks_are_named_and_computed_again(tmp_path):
    first = cp.sweep(FEW, tmp_path, workers=1, sizes=TINY)
    names = damaged(tmp_path)
    status = store_status(tmp_path)
    assert set(status.damaged) == names
    assert not status.complete
    again = cp.sweep(FEW, tmp_path, workers=1, sizes=TINY)
    assert set(again.summary.damaged) == names
    assert 0 < again.summary.runs < first.summary.runs
    assert again.to_csv() == first.to_csv()
    assert store_status(tmp_path).complete


def test_a_damaged_file_is_one_sentence_or_computed_again(tmp_path):
    """Bytes of the store overwritten: in its head, its tables, or in the chunks, which are computed again."""
    first = cp.sweep(FEW, tmp_path, workers=1, sizes=TINY)
    file = tmp_path / "store.sqlite"
    whole = file.read_bytes()
    for at in (0, 20, 4096 + 3):
        file.write_bytes(whole[:at] + b"\x5a" * 1000 + whole[at + 1000 :])
        for use in (lambda: cp.sweep(FEW, tmp_path, workers=1), lambda: store_status(tmp_path)):
            with pytest.raises(SweepError, match="expected an undamaged store"):
                use()
    file.write_bytes(whole)
    with closing(sqlite3.connect(file)) as connection:
        ((contents,),) = connection.execute("SELECT contents FROM chunks LIMIT 1").fetchall()
    at = whole.index(contents[:400])
    file.write_bytes(whole[:at] + b"\x5a" * 400 + whole[at + 400 :])
    assert len(store_status(tmp_path).damaged) == 1
    assert cp.sweep(FEW, tmp_path, workers=1, sizes=TINY).to_csv() == first.to_csv()


def test_ctrl_c_keeps_what_was_computed_and_says_how_to_go_on(tmp_path):
    grid = SAMPLED | {"runs": 200_000, "mechanism": ["thompson"], "copies": [{}], "seed": [3]}
    handled = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored

    sent = []

    def interrupt(state):
        if state.chunks >= 3 and not sent:
            sent.append(state.chunks)
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(Interrupted, match="the same command goes on from there"):
            cp.sweep(grid, tmp_path, workers=2, sizes=Sizes(chunk_bytes=8 * 4 * 500), progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, handled)
    runs = store_status(tmp_path).runs
    assert 0 < runs < 200_000
    small = grid | {"runs": runs // 2}
    assert cp.sweep(small, tmp_path, workers=1).to_csv() == cp.sweep(small, tmp_path / "alone", workers=1).to_csv()
    assert "interrupted" in (tmp_path / "sweep.log").read_text(encoding="utf-8")


KILLED = """
import os, signal, sys
import cloneproof as cp
from cloneproof.sweeps.sweep import Sizes
market = cp.load_market(sys.argv[1])
def kill(state):
    if state.chunks >= 5:
        os.kill(os.getpid(), signal.SIGKILL)
cp.sweep({"market": market, "mechanism": "ucb1", "engine": "monte-carlo", "runs": 700, "seed": [3, 4]}, sys.argv[2],
         workers=1, sizes=Sizes(chunk_bytes=8 * 4 * 97), progress=kill)
"""


def test_a_killed_driver_leaves_a_store_that_goes_on_to_the_bit(tmp_path):
    cp.save_market(MARKET, tmp_path / "market.toml")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "market.toml"), str(tmp_path / "store")]
    assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL
    status = store_status(tmp_path / "store")
    assert (status.chunks, status.damaged, status.complete) == (5, (), False)
    grid = {"market": MARKET, "mechanism": "ucb1", "engine": "monte-carlo", "runs": 700, "seed": [3, 4]}
    after = cp.sweep(grid, tmp_path / "store", workers=1)
    assert after.summary.runs == 2 * 700 - status.runs
    assert after.to_csv() == cp.sweep(grid, tmp_path / "alone", workers=1).to_csv()


def test_a_full_disk_ends_a_sweep_with_a_sentence_and_a_usable_store(tmp_path):
    grid = {"market": MARKET, "mechanism": "ucb1", "engine": "monte-carlo", "runs": 2000}
    alone = cp.sweep(grid, tmp_path / "alone", workers=1)  # also compiles what writes to a cache of its own
    with full_disk(60_000), pytest.raises(SweepError, match=r"^expected room and rights to use the store.*again"):
        cp.sweep(grid, tmp_path / "store", workers=1, sizes=TINY)
    before = store_status(tmp_path / "store")
    assert before.damaged == ()
    after = cp.sweep(grid, tmp_path / "store", workers=1)
    assert after.summary.runs == 2000 - before.runs
    assert after.to_csv() == alone.to_csv()


def test_a_refused_point_does_not_stop_the_others(tmp_path):
    grid = {"market": MARKET, "mechanism": ["ucb1", "h-etc-r"], "engine": "closed-form"}
    table = cp.sweep(grid, tmp_path, workers=1)
    refused, answered = table.rows[0], table.rows[1]
    assert (refused["quantity"], refused["value"], refused["engine"]) == ("refused", None, "refused")
    assert "closed-form engine expects" in refused["notes"]
    assert answered["engine"] == "closed-form"


def test_a_failing_worker_is_one_sentence(tmp_path, monkeypatch):
    def broken(*task):
        raise MemoryError("no room")

    monkeypatch.setattr(tasks, "work", broken)
    with pytest.raises(SweepError, match="got MemoryError: no room"):
        cp.sweep(SAMPLED, tmp_path, workers=1)


def test_processes_give_the_same_bits(tmp_path):
    """Where not everything is sampled; two chunks."""
    grid = {"market": MARKET, "mechanism": ["h-etc-r", "thompson"], "runs": 60}
    assert cp.sweep(grid, tmp_path / "two", workers=2).to_csv() == cp.sweep(grid, tmp_path / "one", workers=1).to_csv()


def test_progress_ends_at_all_and_never_goes_back(tmp_path):
    seen = []
    cp.sweep(FEW, tmp_path, workers=2, sizes=TINY, progress=lambda state: seen.append(replace(state)))
    assert (seen[-1].finished, seen[-1].missing, seen[-1].runs) == (1, 1, 700)
    assert seen[-1].fraction == pytest.approx(1)
    assert seen[-1].left_seconds == pytest.approx(0, abs=1e-6)
    runs = [state.runs for state in seen]
    assert runs == sorted(runs)


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
