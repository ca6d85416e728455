"""`cloneproof sweep` as a user meets it: real processes, exit codes, an example grid, Ctrl-C."""

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support import command

EXAMPLE = Path(__file__).parents[2] / "examples" / "grids" / "copies.toml"
COMMAND = [sys.executable, "-c", "from cloneproof.cli import main; main()", "sweep"]
GRID = f"""
market = {{ horizon = 300, agents = [{{ name = "ana", originals = 1, prior = {{ uniform = [0.0, 1.0] }} }}] }}
mechanism = "thompson"
engine = "runs"
runs = 20_000
seed = {list(range(300))}
"""  # a minute of work, the first part of which is soon stored


def sweep(*arguments):
    return command.run("sweep", *arguments)


def test_the_example_runs_resumes_and_reports(tmp_path):
    store, output = tmp_path / "store", tmp_path / "table.csv"
    small = tmp_path / "small.toml"
    text = EXAMPLE.read_text(encoding="utf-8").replace("runs = 400", "runs = 8").replace("[1000, 4000]", "[100, 4000]")
    text = text.replace('"ucb1", "h-ucb", ', "")  # minutes of compiling, which the tests of sweeps have
    small.write_text(text.replace("../creators.toml", str(EXAMPLE.parents[1] / "creators.toml")), encoding="utf-8")
    done = sweep(small, "--store", store, "--output", output, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert "few runs" in done.stdout
    rows = list(csv.DictReader(output.read_text(encoding="utf-8").splitlines()))
    assert len({row["point"] for row in rows}) == 16
    verdicts = {(row["mechanism"], row["horizon"]): row["verdict"] for row in rows if row["question"] == "audit"}
    assert verdicts["h-etc-r", "4000"] == "exploitable"
    assert verdicts["reservoir", "4000"] == "clone-proof"
    data = json.loads(sweep(small, "--store", store, "--json").stdout)
    assert data["summary"]["computed"] == 0
    assert [row["value"] for row in data["rows"]] == [float(row["value"]) for row in rows]


def test_ctrl_c_at_a_terminal_says_how_to_go_on(tmp_path):
    grid, store = tmp_path / "grid.toml", tmp_path / "store"
    grid.write_text(GRID, encoding="utf-8")
    leader, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "160"}
    process = subprocess.Popen(
        [*COMMAND, str(grid), "--store", str(store), "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=environment,
        text=True,
    )
    os.close(terminal)
    with ThreadPoolExecutor(1) as reader:  # a terminal that nobody reads fills up, and the command would wait for room
        reading = reader.submit(command.everything, leader)
        while process.poll() is None and not (store.exists() and store.stat().st_size):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=60)[0]
        said = reading.result()
    os.close(leader)
    assert (process.returncode, out) == (130, "")
    words = " ".join(said.decode().split())
    assert "of 300 points" in words
    assert "the same command goes on from there" in words
