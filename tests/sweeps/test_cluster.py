"""Sweeps on executors: a real Dask scheduler with two worker processes, one killed; broken pools; other versions."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof._lib.files import code_version
from cloneproof.errors import SweepError
from cloneproof.sweeps.sweep import Interrupted, cluster
from support.sizes import LONG

SCRIPT = Path(__file__).parents[2] / "examples" / "grids" / "slurm.sh"
MARKET = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=200)
GRID = {"market": MARKET, "mechanism": "ucb1", "engine": "runs", "runs": 70, "seed": list(range(8))}

LONG_GRID = """
market = "market.toml"
mechanism = "ucb1"
engine = "runs"
runs = 300
seed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
"""
SRUN = """#!/bin/bash
trap 'kill $(jobs -p)' EXIT
trap 'exit 143' TERM
for _ in $(seq "$SLURM_NTASKS"); do "$@" & done
wait
"""

DRIVER = """#!/bin/bash
until [ -e go ]; do sleep .1; done  # until both workers are there
"""
ACTIVATE = "cloneproof-env/bin/activate"


@pytest.fixture
def slurm(tmp_path):
    """The job of `slurm.sh`, with two tasks on this machine as Slurm would start them; and its scheduler's address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = Path(sys.executable).parent / "cloneproof"
    stand_ins = {
        "srun": SRUN,
        "hostname": "#!/bin/bash\necho 127.0.0.1\n",
        "cloneproof": DRIVER + f'exec {driver} "$@"',
    }
    for name, text in ({f"bin/{name}": text for name, text in stand_ins.items()} | {ACTIVATE: ""}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    cp.save_market(MARKET.with_horizon(3000), tmp_path / "market.toml")
    (tmp_path / "grid.toml").write_text(LONG_GRID, encoding="utf-8")
    folders = f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    ours = {name: str(tmp_path) for name in ("HOME", "SCRATCH", "TMPDIR")} | {"PATH": folders}
    ours |= {"SLURM_NTASKS": "2", "SLURM_JOB_ID": str(port + 20_000)}
    with (tmp_path / "log").open("w") as log:
        job = subprocess.Popen(
            ["bash", str(SCRIPT)], cwd=tmp_path, env=os.environ | ours, stdout=log, stderr=log, start_new_session=True
        )
    yield job, f"tcp://127.0.0.1:{20_000 + (port + 20_000) % 40_000}"
    with suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)  # as Slurm ends what a job leaves behind
    job.wait()


@pytest.mark.skipif(not LONG, reason="five processes of Dask to start, and one to kill; make test-long")
def test_a_killed_worker_of_a_slurm_job_changes_no_bit_and_its_points_are_computed_again(slurm, tmp_path):
    from distributed import Client

    job, address = slurm
    with Client(address, timeout=120, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=120)
        pids = client.run(os.getpid)
        (tmp_path / "go").touch()
        victim, held = None, ()
        while not held:  # a worker that has stopped with something to compute
            assert job.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
            busy = [worker for worker, keys in client.processing().items() if keys]
            if busy:
                victim = victim or busy[-1]
                os.kill(pids[victim], signal.SIGSTOP)
                held = client.processing()[victim]
            time.sleep(0.1)
        os.kill(pids[victim], signal.SIGKILL)
    assert job.wait(240) == 0, (tmp_path / "log").read_text(encoding="utf-8")
    assert len((tmp_path / "points.jsonl").read_text().splitlines()) == 10  # those of the dead worker by the other
    alone = cp.sweep(tmp_path / "grid.toml", tmp_path / "alone", workers=1)
    assert (tmp_path / "table.csv").read_text(encoding="utf-8") == alone.to_csv()


def test_a_cluster_is_started_here_and_gives_the_bits_of_one_core(tmp_path):
    grid = {"market": MARKET, "mechanism": "h-etc-r", "copies": [{}, {"ana": (2, 1)}]}
    with cluster("local:1") as executor:
        shared = cp.sweep(grid, tmp_path / "shared", executor=executor)
        assert executor.submit(os.getpid).result() != os.getpid()
    assert shared.summary.computed == 2
    assert shared.to_csv() == cp.sweep(grid, tmp_path / "alone", workers=1).to_csv()


@pytest.mark.skipif(not LONG, reason="a process to start and kill; make test-long")
def test_a_pool_whose_process_is_killed_is_one_sentence_and_the_next_run_goes_on(tmp_path):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:

        def kill(state):
            if state.finished >= 3 and pool._processes:
                os.kill(next(iter(pool._processes)), signal.SIGKILL)

        with pytest.raises(SweepError, match=r"^expected workers .* got BrokenProcessPool"):
            cp.sweep(GRID, tmp_path / "store", executor=pool, progress=kill)
    after = cp.sweep(GRID, tmp_path / "store", workers=1)
    assert 3 <= after.summary.reused < 8
    assert after.to_csv() == cp.sweep(GRID, tmp_path / "alone", workers=1).to_csv()


class Submit:
    """Nothing but `submit`: computes the first tasks at once, and leaves the others waiting."""

    def __init__(self, first=10**6):
        self.first, self.futures = first, []

    def submit(self, task, *arguments):
        self.futures.append(Future())
        if len(self.futures) <= self.first:
            self.futures[-1].set_result(task(*arguments))
        return self.futures[-1]


def test_ctrl_c_keeps_what_came_back_and_cancels_the_rest(tmp_path):
    executor = Submit(3)

    def interrupt(state):
        if state.finished == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="3 points of this run are stored"):
        cp.sweep(GRID, tmp_path / "points", executor=executor, workers=2, progress=interrupt)
    assert cp.sweep(GRID, tmp_path / "points", workers=1).summary.reused == 3
    assert [future.cancelled() for future in executor.futures[3:]] == [True] * (len(executor.futures) - 3)


def test_an_error_of_one_task_cancels_the_others(tmp_path):
    executor = Submit(1)

    def fail(state):
        executor.futures[1].set_exception(ConnectionError("nobody there.\nTraceback"))

    with pytest.raises(SweepError, match="got ConnectionError: nobody there;"):
        cp.sweep(GRID, tmp_path / "points", executor=executor, workers=2, progress=fail)
    assert [future.cancelled() for future in executor.futures[2:]] == [True] * (len(executor.futures) - 2)


def test_a_worker_of_another_version_is_refused_before_it_computes(tmp_path):
    other = "cloneproof 0.0.7, sources 0123"

    class OfAnotherDriver(Submit):
        """Workers get tasks of another version, and one that they would fail at."""

        def submit(self, task, version, *arguments):
            assert version == code_version()
            return super().submit(task, other, *[None for _ in arguments])

    with pytest.raises(SweepError) as refusal:
        cp.sweep(GRID, tmp_path / "points", executor=OfAnotherDriver())
    assert f"driver's version ({other}), got another ({code_version()})" in str(refusal.value)
    assert (tmp_path / "points").read_text() == ""


def test_nobody_at_the_address_and_no_dask_are_one_sentence_each(monkeypatch):
    import dask

    sentence = r"^expected a Dask scheduler at tcp://127\.0\.0\.1:9, got .*start one"
    with dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}), pytest.raises(SweepError, match=sentence):
        cluster("tcp://127.0.0.1:9").__enter__()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SweepError, match=r"pip install 'cloneproof\[cluster\]'"):
        cluster("local:2").__enter__()
