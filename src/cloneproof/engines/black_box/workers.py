"""Worker processes for black boxes: the parent hands out runs in order, listens, and watches over every call.

A worker that hangs in one call (even in compiled code) is killed, and one that dies is noticed; the board that it wrote
says in which call of which round it was. Runs are handed out in order, so when one fails all those before it are
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
from cloneproof.engines.black_box.call_limit import BOARD_SIZE, CALL, CALLS, IDLE, ROUND, RUN, SINCE
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.black_box.failure import BlackBoxError, Place, broke, overtime, said
from cloneproof.engines.black_box.play import box_of, collected
from cloneproof.engines.black_box.worker import RunDone, RunFailed, Unreadable, work
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.reference import Run
from cloneproof.errors import EngineError

GRACE = 1.0  # seconds; a worker stops a slow call by itself where it can, and then says more about it
LARGEST_BATCH = 32
START_LIMIT = 120.0  # seconds; a worker imports what the policy needs


class UnsendableError(EngineError):
    """A job that another process cannot be told of."""


@dataclass
class _Worker:
    process: SpawnProcess
    line: Connection
    board: Any
    left: set[int] = field(default_factory=set)

    def place(self, otherwise: int) -> Place:
        """The call it is in; or, between calls, the start of the run that it would have played next."""
        run = int(self.board[RUN])
        if run in self.left:
            return Place(run, int(self.board[ROUND]), CALLS[int(self.board[CALL])])
        return Place(min(self.left, default=otherwise), 0, CALLS[0])


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
            worker.line.close()
        self.alive, self.job = [], None

    def outcomes(self, job: BlackBoxJob, first: int, count: int, tick: Callable[[], object] = lambda: None) -> Outcomes:
        """The chunk; see `black_box_outcomes`."""
        try:
            self._tell(job)
            done, error = _Chunk(self.alive, box_of(job), first, count, tick).played()
        except BaseException:
            self.close()  # what is under way is not wanted any more
            raise
        kept = collected(job, [done[run] for run in range(first, error.run if error else first + count)])
        if error is None:
            return kept
        self.close()
        error.first, error.partial = first, kept
        raise error

    def _tell(self, job: BlackBoxJob) -> None:
        """Make every worker know the job."""
        box = box_of(job)
        try:
            told = pickle.dumps(job)
        except Exception as error:
            raise _unsendable(box, said(error)) from None
        if told == self.job:
            return
        if not self.alive:
            self.alive = [_started() for _ in range(self.processes)]
        try:
            for worker in self.alive:
                worker.line.send(told)
            for worker in self.alive:
                if not worker.line.poll(START_LIMIT):
                    raise EOFError
                answer = worker.line.recv()
                if isinstance(answer, Unreadable):
                    raise _unsendable(box, answer.reason)
        except (EOFError, OSError):
            raise EngineError(
                f"expected worker processes for black box {box.name!r} to start, got one that did not; "
                "in a script, start the work under if __name__ == '__main__', elsewhere leave processes out"
            ) from None
        self.job = told


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

    def played(self) -> tuple[dict[int, Run], BlackBoxError | None]:
        """The runs that are done, among them all before the first failure, and that failure."""
        for worker in list(self.workers):
            self._hand_out(worker)
        while any(run < self.end for worker in self.workers for run in worker.left):
            pause = min(GRACE, self.box.call_limit) / 4
            for line in wait([worker.line for worker in self.workers], timeout=pause):
                self._listen(next(worker for worker in self.workers if worker.line is line))
            self._watch()
        return self.done, self.error

    def _hand_out(self, worker: _Worker) -> None:
        runs = range(self.next, min(self.next + self.batch, self.end))
        if runs:
            self.next = runs.stop
            worker.left = set(runs)
            try:
                worker.line.send(runs)
            except OSError:
                self._died(worker)

    def _listen(self, worker: _Worker) -> None:
        try:
            news = worker.line.recv()
        except (EOFError, OSError):
            self._died(worker)
            return
        if isinstance(news, RunFailed):
            error = BlackBoxError(news.message, news.number)
            error.add_note(f"In the worker process:\n{news.trace}")
            self._lost(worker, error)
        elif isinstance(news, RunDone):
            worker.left.discard(news.number)
            self.done[news.number] = news.run
            if news.number < self.end:
                self.tick()
            if not worker.left:
                self._hand_out(worker)

    def _died(self, worker: _Worker) -> None:
        worker.process.join()
        got = f"the end of its process (exit code {worker.process.exitcode})"
        place = worker.place(self.next)
        self._lost(worker, broke(self.box.name, place, "an answer", got, "look for a crash in the policy"))

    def _watch(self) -> None:
        """Kill whoever has been in one call for too long."""
        for worker in list(self.workers):
            since = worker.board[SINCE]
            if monotonic() - since > self.box.call_limit + GRACE and not worker.line.poll():
                worker.process.kill()
                self._lost(worker, overtime(self.box.name, worker.place(self.next), self.box.call_limit))

    def _lost(self, worker: _Worker, error: BlackBoxError) -> None:
        """No run from the failing one on is wanted any more."""
        self.workers.remove(worker)
        if error.run < self.end:
            self.error, self.end = error, error.run


def _started() -> _Worker:
    # Spawned, not forked: threads and compiled code do not survive a fork.
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    board = context.RawArray("d", BOARD_SIZE)
    board[SINCE] = IDLE
    process = context.Process(target=work, args=(theirs, board), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, board)


def _unsendable(box: BlackBox, reason: str) -> UnsendableError:
    return UnsendableError(
        f"expected black box {box.name!r} to be picklable for use in worker processes, got {reason}; "
        "define its factory at the top of a module; meanwhile the runs are played in this process"
    )
