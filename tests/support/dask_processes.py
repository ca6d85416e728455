"""A Dask scheduler and workers as separate processes on loopback, with a log of what each worker computed."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

LOGGED = """
import json, os, time
from cloneproof.sweeps import tasks

plain = getattr(tasks, "plain", tasks.work)  # Dask may load this file twice
tasks.plain = plain

def logged(*question):
    started = time.time()
    done = plain(*question)
    with open(os.environ["COMPUTED_LOG"], "a") as log:
        log.write(json.dumps([started, os.getpid(), *done.chunk]) + "\\n")
    return done

tasks.work = logged
"""


class Processes:
    """A context manager; `worker` starts one more, `computed` says what workers have done so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "computed.log"
        self.started, self.readers = [], {}
        (folder / "logged.py").write_text(LOGGED, encoding="utf-8")

    def __enter__(self):
        self.scheduler = self._dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.address = self._said(self.scheduler, r"Scheduler at:\s+(tcp://\S+)")
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.kill()
        for process in self.started:
            process.wait(30)
            self.readers[process].join(30)
            process.stderr.close()

    def worker(self, sources: Path | None = None, logged: bool = True):
        more = ["--preload", str(self.folder / "logged.py")] if logged else []
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder))
        worker = self._dask("worker", self.address, *options, *more, sources=sources)
        self._said(worker, r"Registered to")
        return worker

    def computed(self):
        """(when it began, process, key, first run, runs) of every piece."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines]

    def _dask(self, *arguments, sources: Path | None = None):
        environment = os.environ | {"COMPUTED_LOG": str(self.log), "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "0"}
        if sources is not None:
            environment["PYTHONPATH"] = str(sources)
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def _said(self, process, pattern):
        """Wait for a line of its log; then read on, so that the pipe never fills."""
        seen = []
        for line in process.stderr:
            seen.append(line)
            match = re.search(pattern, line)
            if match:
                self.readers[process] = threading.Thread(target=process.stderr.read, daemon=True)
                self.readers[process].start()
                return match[1] if match.groups() else ""
        raise AssertionError("".join(seen))


def eventually(what, seconds: float = 60.0):
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)
