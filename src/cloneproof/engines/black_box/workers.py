"""Worker processes for black boxes: the parent hands out runs in order, listens, and watches over every call.

A worker that hangs in one call (even in compiled code) is killed, and one that dies is noticed; the state that it
shares says in which call of which round it was. Runs are handed out in order, so when one fails all those before it are
finished or under way: they are waited for, and kept. Therefore the first failing run, and what is kept, are the same
for any number of processes.
"""

from __future__ import annotations

import multiprocessing as mp
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from types import TracebackType
from typing import Any

from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.call_limit import CALL, CALL_STATE_SIZE, CALLS, IDLE, ROUND, RUN, SINCE
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.black_box.failure import BlackBoxError, Place, contract_error, exception_text, timeout_error
from cloneproof.engines.black_box.play import box_of, outcomes_of_runs
from cloneproof.engines.black_box.worker import JobUnreadable, RunDone, RunFailed, work
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.reference import Run
from cloneproof.errors import EngineError, OutOfTimeError

GRACE = 1.0  # seconds; a worker stops a slow call by itself where it can, and then says more about it
LARGEST_BATCH = 32
START_LIMIT = 120.0  # seconds; a worker imports what the policy needs


class UnsendableError(EngineError):
    """A job that another process cannot be told of."""


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    call_state: Any
    unfinished: set[int] = field(default_factory=set)

    def place(self, otherwise: int) -> Place:
        """The call it is in; or, between calls, the start of the run that it would have played next."""
        run = int(self.call_state[RUN])
        if run in self.unfinished:
            return Place(run, int(self.call_state[ROUND]), CALLS[int(self.call_state[CALL])])
        return Place(min(self.unfinished, default=otherwise), 0, CALLS[0])


class Workers:
    """That many processes, started when first needed; a context manager. `outcomes` plays a chunk on them.

    >>> with Workers(2) as workers:
    ...     len(workers.alive)
    0
    """

    def __init__(self, processes: int) -> None:
        if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
            raise EngineError(f"expected a whole number of processes from 1, got {processes!r}; use e.g. 2")
        self.processes = processes
        self.alive: list[_Worker] = []
        self.job: bytes | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every worker, at once."""
        for worker in self.alive:
            worker.process.kill()
        for worker in self.alive:
            worker.process.join()
            worker.connection.close()
        self.alive, self.job = [], None

    def outcomes(
        self,
        job: BlackBoxJob,
        first: int,
        count: int,
        tick: Callable[[], object] = lambda: None,
        until: float | None = None,
    ) -> Outcomes:
        """The chunk; see `black_box_outcomes`."""
        try:
            self._send_job(job, until)
            done, error = _Chunk(self.alive, box_of(job), first, count, tick).play(until)
        except BaseException:
            self.close()  # what is under way is not wanted any more
            raise
        kept = outcomes_of_runs(job, [done[run] for run in range(first, error.run if error else first + count)])
        if error is None:
            return kept
        self.close()
        error.first, error.partial = first, kept
        raise error

    def _send_job(self, job: BlackBoxJob, until: float | None) -> None:
        """Make every worker know the job, for which it imports what the policy needs."""
        box = box_of(job)
        try:
            message = pickle.dumps(job)
        except Exception as error:
            raise _unsendable_error(box, exception_text(error)) from None
        if message == self.job:
            return
        if not self.alive:
            self.alive = [_start_worker() for _ in range(self.processes)]
        try:
            for worker in self.alive:
                worker.connection.send(message)
            for worker in self.alive:
                if not worker.connection.poll(START_LIMIT if until is None else max(0.0, until - monotonic())):
                    if until is not None:
                        raise OutOfTimeError(f"black box {box.name!r} had no time to start; give it more")
                    raise EOFError
                answer = worker.connection.recv()
                if isinstance(answer, JobUnreadable):
                    raise _unsendable_error(box, answer.reason)
        except (EOFError, OSError):
            raise EngineError(
                f"expected worker processes for black box {box.name!r} to start, got one that did not; "
                "in a script, start the work under if __name__ == '__main__', elsewhere leave processes out"
            ) from None
        self.job = message


class _Chunk:
    """One chunk on the way: what is done, what is left, and the first failure so far."""

    def __init__(
        self, workers: list[_Worker], box: BlackBox, first: int, count: int, tick: Callable[[], object]
    ) -> None:
        self.workers, self.box, self.tick = list(workers), box, tick
        self.next, self.end = first, first + count
        self.batch = max(1, min(LARGEST_BATCH, count // (4 * len(workers))))
        self.done: dict[int, Run] = {}
        self.error: BlackBoxError | None = None

    def play(self, until: float | None = None) -> tuple[dict[int, Run], BlackBoxError | None]:
        """The runs that are done, among them all before the first failure, and that failure."""
        for worker in list(self.workers):
            self._hand_out(worker)
        while any(run < self.end for worker in self.workers for run in worker.unfinished):
            pause = min(GRACE, self.box.call_limit) / 4
            pause = pause if until is None else max(0.0, min(pause, until - monotonic()))
            for ready in wait([worker.connection for worker in self.workers], timeout=pause):
                self._receive(next(worker for worker in self.workers if worker.connection is ready))
            self._kill_overdue()
            if until is not None and monotonic() > until:
                raise OutOfTimeError(f"black box {self.box.name!r} had no time for run {self.next}; give it more")
        return self.done, self.error

    def _hand_out(self, worker: _Worker) -> None:
        runs = range(self.next, min(self.next + self.batch, self.end))
        if runs:
            self.next = runs.stop
            worker.unfinished = set(runs)
            try:
                worker.connection.send(runs)
            except OSError:
                self._report_death(worker)

    def _receive(self, worker: _Worker) -> None:
        try:
            report = worker.connection.recv()
        except (EOFError, OSError):
            self._report_death(worker)
            return
        if isinstance(report, RunFailed):
            error = BlackBoxError(report.message, report.number)
            error.add_note(f"In the worker process:\n{report.trace}")
            self._drop_worker(worker, error)
        elif isinstance(report, RunDone):
            worker.unfinished.discard(report.number)
            self.done[report.number] = report.run
            if report.number < self.end:
                self.tick()
            if not worker.unfinished:
                self._hand_out(worker)

    def _report_death(self, worker: _Worker) -> None:
        worker.process.join()
        got = f"the end of its process (exit code {worker.process.exitcode})"
        place = worker.place(self.next)
        error = contract_error(self.box.name, place, "an answer", got, "look for a crash in the policy")
        self._drop_worker(worker, error)

    def _kill_overdue(self) -> None:
        """Kill whoever has been in one call for too long."""
        for worker in list(self.workers):
            since = worker.call_state[SINCE]
            if monotonic() - since > self.box.call_limit + GRACE and not worker.connection.poll():
                worker.process.kill()
                self._drop_worker(worker, timeout_error(self.box.name, worker.place(self.next), self.box.call_limit))

    def _drop_worker(self, worker: _Worker, error: BlackBoxError) -> None:
        """No run from the failing one on is wanted any more."""
        self.workers.remove(worker)
        if error.run < self.end:
            self.error, self.end = error, error.run


def _start_worker() -> _Worker:
    # Spawned, not forked: threads and compiled code do not survive a fork.
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    call_state = context.RawArray("d", CALL_STATE_SIZE)
    call_state[SINCE] = IDLE
    process = context.Process(target=work, args=(theirs, call_state), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, call_state)


def _unsendable_error(box: BlackBox, reason: str) -> UnsendableError:
    return UnsendableError(
        f"expected black box {box.name!r} to be picklable for use in worker processes, got {reason}; "
        "define its factory at the top of a module; meanwhile the runs are played in this process"
    )
