"""Chunks of runs of a black box, in this process or shared among worker processes, with the same bits."""

from __future__ import annotations

import ast
import pickle
import sys
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import TracebackType

import numpy as np

from cloneproof._checks import count as whole_number
from cloneproof._processes import process_pool
from cloneproof.engines.black_box.contract import BlackBoxError, BlackBoxJob, Player, exception_text
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.reference import Run
from cloneproof.errors import EngineError, OutOfTimeError

LARGEST_BATCH = 32  # runs that a worker is sent at a time
_players: dict[bytes, Player] = {}  # of a worker: the job that it plays


class UnsendableError(EngineError):
    """A job that cannot be sent to another process; the text says why, and is empty if that is expected."""


def _play(message: bytes, runs: range) -> list[Run]:
    """Some runs of a job, in a worker."""
    if message not in _players:
        _players.clear()
        try:
            _players[message] = Player(pickle.loads(message))
        except Exception as error:
            raise UnsendableError(exception_text(error)) from None
    return [_players[message].run(run) for run in runs]


class Workers:
    """Worker processes, started when first needed; a context manager. `runs` plays a chunk on them.

    >>> with Workers(2) as workers:
    ...     workers.pool is None
    True
    """

    def __init__(self, processes: int) -> None:
        self.processes = whole_number(processes, "the number of processes", error=EngineError)
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.pool is not None:
            for process in list((self.pool._processes or {}).values()):
                process.kill()
            self.pool.shutdown(wait=False, cancel_futures=True)
        self.pool = None

    def runs(self, job: BlackBoxJob, first: int, count: int, deadline: Deadline) -> list[Run]:
        """The runs of a chunk; raises the error of the first that fails."""
        message = _message(job)
        self.pool = self.pool or process_pool(self.processes)
        size = max(1, min(LARGEST_BATCH, count // (4 * self.processes)))
        batches = [range(k, min(k + size, first + count)) for k in range(first, first + count, size)]
        try:
            played = [self.pool.submit(_play, message, runs) for runs in batches]
            return [run for future in played for run in self._result(job, future, deadline)]
        except BaseException:
            self.close()  # what is under way is not wanted any more
            raise

    def _result(self, job: BlackBoxJob, future: Future[list[Run]], deadline: Deadline) -> list[Run]:
        try:
            return future.result(deadline.left)
        except TimeoutError:
            raise OutOfTimeError(f"black box {job.mechanism.name!r} had no time to go on; give it more") from None
        except BrokenProcessPool:
            raise BlackBoxError(
                f"black box {job.mechanism.name!r}: expected its worker processes to live, got the end of one; look "
                "for a crash in the policy, or leave threads out"
            ) from None


def _message(job: BlackBoxJob) -> bytes:
    """The job for a worker, or an `UnsendableError`.

    A worker imports the main module of its parent. A notebook or `python -c` has none to import, and a script without
    `if __name__ == "__main__"` would start again.
    """
    try:
        message = pickle.dumps(job)
    except Exception as error:
        raise UnsendableError(exception_text(error)) from None
    script = getattr(sys.modules["__main__"], "__file__", None)
    if not (b"__main__" not in message if script is None else _is_guarded(Path(script))):
        raise UnsendableError("")
    return message


def _is_guarded(script: Path) -> bool:
    try:
        tests = [node.test for node in ast.parse(script.read_bytes()).body if isinstance(node, ast.If)]
    except (OSError, SyntaxError, ValueError):
        return False
    return any(isinstance(name, ast.Name) and name.id == "__name__" for test in tests for name in ast.walk(test))


def black_box_outcomes(
    job: BlackBoxJob, first: int, count: int, workers: Workers | None = None, deadline: Deadline | None = None
) -> Outcomes:
    """Runs first .. first + count - 1 of a job whose mechanism is a `BlackBox`; `OutOfTimeError` after the deadline.

    Without workers they are played in this process. So is a job that cannot be sent: with a warning for a lambda, say,
    and silently for a notebook or a script without a main guard. One chunk at a time, since threads would share the
    global generators.
    """
    first = whole_number(first, "the first run", 0, error=EngineError)
    count = whole_number(count, "the number of runs", error=EngineError)
    deadline = deadline or Deadline()
    if deadline.spent:
        raise OutOfTimeError(f"black box {job.mechanism.name!r} had no time for run {first}; give it more")
    player, runs = Player(job, deadline), list[Run]()
    if workers is not None:
        try:
            runs = workers.runs(job, first, count, deadline)
        except UnsendableError as refusal:
            if str(refusal):
                warnings.warn(
                    f"expected black box {job.mechanism.name!r} to be picklable for worker processes, got {refusal}; "
                    "define its factory in a module of its own; meanwhile the runs are played in this process",
                    stacklevel=2,
                )
    runs = runs or [player.run(run) for run in range(first, first + count)]
    payoff, served = (
        np.array([list(getattr(run, field).values()) for run in runs]).reshape(count, len(job.market.agents))
        for field in ("payoff", "served")
    )
    return Outcomes(payoff, np.array([run.regret for run in runs]), served)
