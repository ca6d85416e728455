"""A real Dask scheduler with workers in processes of their own, killed in the middle of things."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof._sources import code_version
from cloneproof.errors import SweepError
from cloneproof.sweeps.store import open_store, store_status
from support.dask_processes import Processes, eventually

pytest.importorskip("distributed")

SIZE = int(os.environ.get("CLONEPROOF_CLUSTER_SIZE", "1"))
GRID = {
    "mechanism": ["ucb1", "h-ucb", "rh-ucb"],
    "copies": [{}, {"ana": [3]}],
    "seed": [1, 2],
    "engine": "monte-carlo",
    "runs": 200 * SIZE,
}
MARKET = """
horizon = 10000
agents = [{ name = "ana", originals = 1, prior = { uniform = [0.0, 1.0] } },
          { name = "bo", originals = 1, prior = { point = 0.6 } }]
"""
DRIVER = """
import json, sys
import cloneproof as cp
from cloneproof.sweeps.driver import Sizes
grid, store, cluster = sys.argv[1:]
sizes = Sizes(chunk_bytes=8 * 3 * 20)
table = cp.sweep(json.loads(grid), store, cluster=cluster, sizes=sizes)
print(json.dumps([table.summary.computed, table.summary.runs]))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Processes(tmp_path_factory.mktemp("dask")) as running:
        yield running


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    path = tmp_path_factory.mktemp("grid") / "market.toml"
    path.write_text(MARKET, encoding="utf-8")
    return GRID | {"market": str(path)}


def driver(grid, store, cluster):
    command = [sys.executable, "-c", DRIVER, json.dumps(grid), str(store), cluster.address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def stored(store):
    with open_store(store, code_version()) as opened:
        return set(opened.chunks())


def runs_of(pieces):
    return {(key, run) for key, first, runs in pieces for run in range(first, first + runs)}


def test_a_killed_worker_and_a_killed_driver_change_no_bit_and_nothing_is_computed_twice(cluster, grid, tmp_path):
    workers = [cluster.worker(), cluster.worker()]
    store, total = tmp_path / "store", 12 * GRID["runs"]
    first = driver(grid, store, cluster)
    eventually(lambda: len(stored(store)) >= 12)
    had = stored(store)
    time.sleep(0.5)  # Dask computes a stored result again if its worker dies before the driver has released it
    workers[0].kill()
    dead = time.time()
    eventually(lambda: len(stored(store)) >= len(had) + 12)
    first.kill()
    first.communicate(timeout=30)
    killed, kept = time.time(), stored(store)
    assert runs_of(had) < runs_of(kept)
    assert 0 < len(runs_of(kept)) < total
    cluster.worker()
    second = driver(grid, store, cluster)
    computed, runs = json.loads(second.communicate(timeout=300)[0])
    assert second.returncode == 0
    assert runs == total - len(runs_of(kept))
    assert computed == len(stored(store)) - len(kept)
    work = cluster.computed()
    assert len({process for _, process, *_ in work}) >= 2  # the third may come when all is handed out
    for when, known in ((dead, had), (killed, kept)):
        later = runs_of(chunk for began, _, *chunk in work if began > when)
        assert later
        assert not later & runs_of(known)
    done = sum(runs for *_, runs in work)
    assert done - total <= (2 + 4) * 20  # in flight: two chunks of the worker, four of the driver
    shared = cp.sweep(grid, store, workers=1)
    alone = cp.sweep(grid, tmp_path / "alone", workers=1)
    assert shared.summary.computed == 0
    assert shared.to_csv() == alone.to_csv()
    assert store_status(store).complete


def test_a_worker_of_another_version_is_refused_with_both_versions(cluster, grid, tmp_path):
    root = Path(cp.__file__).parent
    shutil.copytree(root, tmp_path / "cloneproof", ignore=shutil.ignore_patterns("__pycache__"))
    inside = tmp_path / "cloneproof" / "_version.py"
    inside.write_text(inside.read_text(encoding="utf-8").replace('"0.1.0"', '"0.0.7"'), encoding="utf-8")
    older = cluster.worker(sources=tmp_path, logged=False)
    with pytest.raises(SweepError) as refusal:
        cp.sweep(grid, tmp_path / "store", cluster=cluster.address)
    assert f"driver ({code_version()}), got the worker tcp://" in str(refusal.value)
    assert "with another (cloneproof 0.0.7, sources" in str(refusal.value)
    older.kill()
    assert store_status(tmp_path / "store").chunks == 0


def test_nobody_at_the_address(grid, tmp_path, monkeypatch):
    from cloneproof.sweeps import driver as module

    monkeypatch.setattr(module, "CONNECT_SECONDS", 1)
    with pytest.raises(SweepError, match=r"expected a Dask scheduler at tcp://127\.0\.0\.1:9"):
        cp.sweep(grid, tmp_path, cluster="tcp://127.0.0.1:9")


def test_nothing_but_the_cluster_needs_dask(grid, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SweepError, match=r"pip install 'cloneproof\[cluster\]'"):
        cp.sweep(grid, tmp_path, cluster="tcp://127.0.0.1:9")
    script = (
        "import sys, cloneproof, cloneproof.sweeps.sweep; print([n for n in ('dask', 'pyarrow') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
