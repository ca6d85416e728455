"""Sweeps: the bits of asking each point by itself, whatever the chunks, the workers and the interruptions were."""

import csv
import io
import itertools
import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof.errors import SweepError
from cloneproof.sweeps.code_version import code_version
from cloneproof.sweeps.execution import tasks as work
from cloneproof.sweeps.execution.agenda import Sizes
from cloneproof.sweeps.execution.sweep_run import Interrupted
from cloneproof.sweeps.storage.chunk_store import open_store
from cloneproof.sweeps.storage.store_status import store_status

MARKET = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=200)
TINY = Sizes(chunk_bytes=8 * 4 * 97)  # 97 runs of three agents
SAMPLED = {
    "market": MARKET,
    "mechanism": ["ucb1", "epsilon-greedy"],
    "copies": [{}, {"ana": (2, 1)}],
    "seed": [3, 4],
    "engine": "monte-carlo",
    "runs": 700,
}


def test_every_row_has_the_bits_of_evaluate(tmp_path):
    table = cp.sweep(SAMPLED | {"confidence": 0.95}, tmp_path, workers=1)
    assert len(table.rows) == 2 * 2 * 2 * 3
    for row in table.rows:
        copies = {name: tuple(map(int, own.split(","))) for name, own in map(str.split, row["copies"].split("; "))}
        direct = cp.evaluate(
            MARKET, cp.mechanism(row["mechanism"]), copies, "monte-carlo", runs=700, seed=row["seed"], confidence=0.95
        )
        expected = direct.regret if row["quantity"] == "regret" else direct.payoff[row["agent"]]
        assert {name: row[name] for name in ("value", "error", "kind", "method")} == expected.to_dict()
        assert row["notes"] == "; ".join(direct.notes)


@pytest.mark.parametrize("workers", [1, 3])
def test_chunks_and_threads_change_nothing(tmp_path, workers):
    plain = cp.sweep(SAMPLED, tmp_path / "plain", workers=1)
    chopped = cp.sweep(SAMPLED, tmp_path / "chopped", workers=workers, sizes=TINY)
    assert chopped.summary.computed > 3 * plain.summary.computed
    assert chopped.to_csv() == plain.to_csv()


def test_auto_is_exact_where_it_can_be_and_says_why_not(tmp_path):
    grid = {"market": MARKET, "mechanism": ["h-etc-r", "ucb1"], "runs": 50, "horizon": [50, 2000]}
    table = cp.sweep(grid, tmp_path, workers=1)
    for row in table.where(quantity="regret").rows:
        market = MARKET.with_horizon(row["horizon"])
        direct = cp.evaluate(market, cp.mechanism(row["mechanism"], market=market), runs=50)
        assert (row["value"], row["error"], row["engine"]) == (direct.regret.value, direct.regret.error, direct.engine)
        assert row["notes"] == "; ".join(direct.notes)
    assert set(table["engine"]) == {"closed-form", "tree", "monte-carlo"}


def test_gains_are_paired_and_share_the_honest_runs(tmp_path):
    copies = [{"ana": (2, 1)}, {"ana": (3, 1)}]
    grid = {"market": MARKET, "mechanism": "ucb1", "question": "gain", "agent": "ana", "copies": copies, "runs": 200}
    table = cp.sweep(grid, tmp_path, workers=1)
    for row, own in zip(table.where(quantity="gain").rows, copies, strict=True):
        direct = cp.gain(MARKET, cp.mechanism("ucb1"), "ana", own, runs=200, stop_when_decided=False)
        assert (row["value"], row["error"]) == (direct.estimate.value, direct.estimate.error)
    assert table.summary.runs == 3 * 200  # honest once, and each of the two deviations


def test_audits_keep_verdict_witness_and_scope(tmp_path):
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    grid = {"market": market, "mechanism": ["ucb1", {"name": "etc", "arm_rounds": 1}], "question": "audit"}
    table = cp.sweep(grid, tmp_path, workers=1)
    for row, name in zip(table.where(quantity="gain").rows, ("ucb1", "etc"), strict=True):
        mechanism = cp.mechanism(name, **({"arm_rounds": 1} if name == "etc" else {}))
        direct = cp.audit(market, mechanism)
        assert (row["verdict"], row["scope"]) == (direct.verdict, direct.scope)
        assert row["copies"] == f"{direct.worst.agent} {','.join(map(str, direct.worst.copies))}"
        assert (row["value"], row["error"]) == (direct.worst.gain.value, direct.worst.gain.error)


def test_a_second_call_computes_nothing_and_overlaps_are_shared(tmp_path):
    first = cp.sweep(SAMPLED, tmp_path, workers=2, sizes=TINY)
    assert first.summary.runs == 8 * 700
    again = cp.sweep(SAMPLED, tmp_path, workers=1)
    assert (again.summary.computed, again.summary.reused) == (0, first.summary.computed)
    assert again.to_csv() == first.to_csv()
    more = cp.sweep(SAMPLED | {"runs": 900, "seed": [4, 5]}, tmp_path, workers=2, sizes=TINY)
    assert more.summary.runs == 4 * 200 + 4 * 900  # of seed 4 only what is beyond 700
    fewer = cp.sweep(SAMPLED | {"runs": 123}, tmp_path, workers=1)
    assert fewer.summary.computed == 0
    alone = cp.sweep(SAMPLED | {"runs": 123}, tmp_path / "alone", workers=1)
    assert fewer.to_csv() == alone.to_csv()


def test_two_sweeps_at_the_same_time_share_a_store(tmp_path):
    done = []
    both = [
        threading.Thread(target=lambda: done.append(cp.sweep(SAMPLED, tmp_path / "both", workers=1, sizes=TINY)))
        for _ in range(2)
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    alone = cp.sweep(SAMPLED, tmp_path / "alone", workers=1)
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


def test_damaged_chunks_are_named_and_computed_again(tmp_path):
    first = cp.sweep(SAMPLED, tmp_path, workers=1, sizes=TINY)
    files = sorted(path for path in tmp_path.glob("chunks/*/*"))
    for path in files[::5]:
        path.write_bytes(path.read_bytes()[:-3])
    status = store_status(tmp_path)
    assert set(status.damaged) == {str(path) for path in files[::5]}
    assert not status.complete
    again = cp.sweep(SAMPLED, tmp_path, workers=1, sizes=TINY)
    assert set(again.summary.damaged) == set(status.damaged)
    assert 0 < again.summary.runs < first.summary.runs
    assert again.to_csv() == first.to_csv()
    assert store_status(tmp_path).complete


def test_a_folder_in_place_of_a_chunk_is_one_sentence(tmp_path):
    first = cp.sweep(SAMPLED, tmp_path, workers=1)
    victim = sorted(tmp_path.glob("chunks/*/*"))[0]
    victim.unlink()
    victim.mkdir()
    assert store_status(tmp_path).damaged == (str(victim),)
    with pytest.raises(SweepError, match=rf"expected a chunk in {victim}, got .* remove it and run"):
        cp.sweep(SAMPLED, tmp_path, workers=1)
    victim.rmdir()
    (tmp_path / "chunks" / "zz").touch()  # a stray file among the folders is nobody's chunk
    assert cp.sweep(SAMPLED, tmp_path, workers=1).to_csv() == first.to_csv()


WHOLE = {"market": MARKET.with_horizon(8), "mechanism": "h-etc-r"}


@pytest.mark.parametrize("question", ["evaluate", "audit"])
def test_a_forged_chunk_with_a_right_checksum_is_one_sentence(tmp_path, question):
    """Each value of a stored result in turn is something else: refused with the file's name, or computed again."""
    grid = WHOLE | {"question": question} | ({"max_copies": 2, "agent": "ana"} if question == "audit" else {})
    first = cp.sweep(grid, tmp_path, workers=1)
    store = open_store(tmp_path, code_version())
    (chunk,) = store.chunks()
    stored = json.loads(store.read(chunk))
    refusals = []
    for forged in [[], {}, {"refusals": 0}, *other_values(stored)]:
        store.write(chunk, json.dumps(forged).encode())
        try:
            cp.sweep(grid, tmp_path, workers=1).to_csv()
        except SweepError as problem:
            refusals.append(str(problem))
    assert len(refusals) > 5
    assert all(chunk.name in words for words in refusals)
    store.write(chunk, b"\xff")
    assert cp.sweep(grid, tmp_path, workers=1).to_csv() == first.to_csv()


def other_values(data):
    """Copies of JSON data in which one place has another kind of value, for every place."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        for other in (None, 7, "x", [None], {"x": 1}):
            changed = data.copy()
            changed[key] = other
            yield changed
        if isinstance(value, dict | list):
            for inner in other_values(value):
                changed = data.copy()
                changed[key] = inner
                yield changed


def test_rows_of_another_length_are_computed_again(tmp_path):
    first = cp.sweep(SAMPLED, tmp_path, workers=1)
    store = open_store(tmp_path, code_version())
    chunk = next(store.chunks())
    store.write(chunk, store.read(chunk) * 2)
    again = cp.sweep(SAMPLED, tmp_path, workers=1)
    assert again.summary.damaged == (store.path(chunk),)
    assert again.to_csv() == first.to_csv()


def test_a_store_of_another_version_is_refused_and_stays_usable(tmp_path, monkeypatch):
    from cloneproof.sweeps import code_version as version

    first = cp.sweep(SAMPLED, tmp_path, workers=1)
    api = sys.modules["cloneproof.sweeps.sweep"]
    monkeypatch.setattr(api, "code_version", lambda: "cloneproof 9.9.9")
    with pytest.raises(SweepError, match=r"cloneproof 9\.9\.9.*written by another \(cloneproof 0\.1\.0"):
        cp.sweep(SAMPLED, tmp_path, workers=1)
    monkeypatch.setattr(api, "code_version", version.code_version)
    assert cp.sweep(SAMPLED, tmp_path, workers=1).to_csv() == first.to_csv()


def test_a_worker_of_another_version_computes_nothing(monkeypatch):
    with pytest.raises(SweepError, match=r"driver \(cloneproof 9\.9\.9\), got a worker with another \(cloneproof 0\.1"):
        work.work("cloneproof 9.9.9", {}, [], 1.0, 1.0)


def test_ctrl_c_keeps_what_was_computed_and_says_how_to_go_on(tmp_path):
    grid = SAMPLED | {"runs": 200_000, "mechanism": ["thompson"], "copies": [{}], "seed": [3]}
    sizes = Sizes(chunk_bytes=8 * 4 * 500)

    def interrupt():
        while not any(tmp_path.glob("chunks/*/*")):
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(Interrupted, match="the same command goes on from there"):
        cp.sweep(grid, tmp_path, workers=2, sizes=sizes)
    killer.join()
    runs = store_status(tmp_path).runs
    assert 0 < runs < 200_000
    small = grid | {"runs": runs // 2}
    assert cp.sweep(small, tmp_path, workers=1).to_csv() == cp.sweep(small, tmp_path / "alone", workers=1).to_csv()
    assert "interrupted" in (tmp_path / "sweep.log").read_text(encoding="utf-8")


def test_a_full_disk_ends_a_sweep_with_a_sentence_and_a_usable_store(tmp_path, monkeypatch):
    writes, real = itertools.count(), os.write

    def full(handle, data):
        if next(writes) == 20:
            real(handle, data[:5])
            raise OSError(28, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(SweepError, match=r"expected room for a chunk.*No space left on device"):
        cp.sweep(SAMPLED, tmp_path, workers=1, sizes=TINY)
    monkeypatch.undo()
    before = store_status(tmp_path)
    assert before.chunks == 20
    assert before.damaged == ()
    after = cp.sweep(SAMPLED, tmp_path, workers=1)
    assert after.summary.runs == 8 * 700 - before.runs
    assert after.to_csv() == cp.sweep(SAMPLED, tmp_path / "alone", workers=1).to_csv()


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

    monkeypatch.setattr(work, "work", broken)
    with pytest.raises(SweepError, match="expected a worker to compute a chunk, got MemoryError: no room"):
        cp.sweep(SAMPLED, tmp_path, workers=1)


def test_processes_give_the_same_bits(tmp_path):
    grid = {"market": MARKET, "mechanism": ["h-etc-r", "thompson"], "runs": 300}
    assert cp.sweep(grid, tmp_path / "two", workers=2).to_csv() == cp.sweep(grid, tmp_path / "one", workers=1).to_csv()


@pytest.mark.parametrize("workers", [0, 1.5, "two"])
def test_bad_workers(tmp_path, workers):
    with pytest.raises(SweepError, match="whole number of workers"):
        cp.sweep(SAMPLED, tmp_path, workers=workers)


def test_progress_ends_at_all_and_never_goes_back(tmp_path):
    seen = []
    cp.sweep(SAMPLED, tmp_path, workers=2, sizes=TINY, progress=lambda state: seen.append(replace(state)))
    assert (seen[-1].finished, seen[-1].missing, seen[-1].runs) == (8, 8, 8 * 700)
    assert seen[-1].fraction == pytest.approx(8)
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
    with pytest.raises(SweepError, match="unknown column 'quantiy'; did you mean 'quantity'"):
        table.where(quantiy="regret")
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setitem(sys.modules, "pyarrow.parquet", None)
        with pytest.raises(SweepError, match=r"cloneproof\[parquet\]"):
            table.write(tmp_path / "table.parquet")
