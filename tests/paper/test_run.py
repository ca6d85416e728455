"""A run that is killed goes on where it stopped, and nobody can tell from what it wrote."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cloneproof.paper import findings
from cloneproof.paper.findings import rows
from cloneproof.paper.run_rows import reproduce
from support.sizes import LONG

HERE = Path(__file__).parent
SCRIPT = """
import sys
from cloneproof.paper import findings
findings.ROWS_PACKAGE = "planted_rows"
from cloneproof.paper.run_rows import reproduce
reproduce(sys.argv[1])
"""


def started(out):
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(out)], env=os.environ | {"PYTHONPATH": path})


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.setattr(findings, "ROWS_PACKAGE", "planted_rows")
    rows.cache_clear()
    yield
    rows.cache_clear()


def written(out):
    return {name: (out / name).read_bytes() for name in ("report.html", "results.json")}


def test_killed_and_continued_it_writes_the_same_bytes(tmp_path, planted):
    reproduce(tmp_path / "whole")
    out, dice = tmp_path / "killed", random.Random(7)
    for rows_before in (1, dice.randint(2, 3)) if LONG else (2,):
        process = started(out)
        while len(list((out / "rows").glob("row-*.json"))) < rows_before:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (out / "results.json").exists()
    before = {path: path.stat().st_mtime_ns for path in (out / "rows").glob("row-*.json")}
    reproduce(out)
    assert written(out) == written(tmp_path / "whole")
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())  # none was run again
    assert list(json.loads((out / "timings.json").read_text())["seconds"]) == ["row-1", "row-2", "row-3", "row-4"]


def test_a_stored_row_counts_only_for_its_own_setting(tmp_path, planted):
    assert list(reproduce(tmp_path, ["row-2"])["rows"]) == ["row-2"]
    assert list(reproduce(tmp_path, ["row-1"])["rows"]) == ["row-1", "row-2"]
    other = reproduce(tmp_path, ["row-2"], seed=1)
    assert other["rows"]["row-2"]["checks"][0]["evidence"][0]["value"]["value"] == pytest.approx(1.2)
    assert list(other["rows"]) == ["row-2"]  # row-1 was stored with another seed
    (tmp_path / "rows" / "row-2.json").write_text('{"key": 1')
    assert reproduce(tmp_path, ["row-2"])["rows"]["row-2"]["verdict"] == "confirmed"
