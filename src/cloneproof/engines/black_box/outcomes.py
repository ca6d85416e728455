"""Chunks of runs of a black box: the same signature, and the same purity, as the compiled kernels have.

Runs are played in this process, in lockstep, or by worker processes.

Lockstep. A factory may have a function `many(views)`, besides being called with a view: the policy that it returns
plays a run for each view, as arrays:

    select_many() -> array of arms, one a run
    update_many(arms, rewards)               both arrays

A policy that decides alike comes to the same payoffs, bit for bit. That is checked once for each factory, on one run,
where a policy of one run can be made as well.

Worker processes. The parent hands out runs in order, listens, and watches over every call. A worker that hangs in one
call (even in compiled code) is killed, and one that dies is noticed; the state that it shares says in which call of
which round it was. When a run fails all those before it are finished or under way: they are waited for, and kept. So
the first failing run, and what is kept, are the same for any number of processes.
"""

from __future__ import annotations

import ast
import multiprocessing as mp
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, MutableSequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from time import monotonic
from types import ModuleType, TracebackType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._checks import count as whole_number
from cloneproof.engines.black_box.contract import (
    CALL,
    CALL_STATE_SIZE,
    CALLS,
    IDLE,
    MAKE,
    ROUND,
    RUN,
    SELECT,
    SINCE,
    UPDATE,
    BlackBox,
    BlackBoxError,
    BlackBoxJob,
    CallPlace,
    Player,
    box_of,
    contract_error,
    exception_text,
    finished_run,
    open_world,
    outcomes_of_runs,
    short_repr,
    timeout_error,
)
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.monte_carlo.job import Outcomes, uniforms
from cloneproof.engines.reference import Run
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.market.rewards import bernoulli
from cloneproof.mechanisms.online.levels import ONE, ticks


def work(connection: Connection, call_state: MutableSequence[float]) -> None:
    """Serve until the connection is closed: a job as bytes, or a range of its runs.

    The answers are, to a job, None or why it makes no sense here; then for each run its number and the run, or its
    number, what went wrong, and the traceback, after which the worker stops.
    """
    player: Player | None = None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair, and it ends us
    with suppress(EOFError, BrokenPipeError):
        while True:
            order = connection.recv()
            if isinstance(order, bytes):
                try:
                    player, reason = Player(pickle.loads(order), call_state), None
                except Exception as error:
                    reason = exception_text(error)
                connection.send(reason)
                continue
            assert player is not None
            for number in order:
                try:
                    connection.send((number, player.run(number)))
                except BlackBoxError as error:
                    connection.send((number, str(error), "".join(traceback.format_exception(error))))
                    return


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

    def place(self, otherwise: int) -> CallPlace:
        """The call it is in; or, between calls, the start of the run that it would have played next."""
        run = int(self.call_state[RUN])
        if run in self.unfinished:
            return CallPlace(run, int(self.call_state[ROUND]), CALLS[int(self.call_state[CALL])])
        return CallPlace(min(self.unfinished, default=otherwise), 0, CALLS[0])


class Workers:
    """That many processes, started when first needed; a context manager. `outcomes` plays a chunk on them.

    >>> with Workers(2) as workers:
    ...     len(workers.alive)
    0
    """

    def __init__(self, processes: int) -> None:
        self.processes = whole_number(processes, "the number of processes", error=EngineError)
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
        deadline: Deadline | None = None,
    ) -> Outcomes:
        """The chunk; see `black_box_outcomes`."""
        try:
            deadline = deadline or Deadline()
            self._send_job(job, deadline)
            done, error = _Chunk(self.alive, box_of(job), first, count, tick).play(deadline)
        except BaseException:
            self.close()  # what is under way is not wanted any more
            raise
        kept = outcomes_of_runs(job, [done[run] for run in range(first, error.run if error else first + count)])
        if error is None:
            return kept
        self.close()
        error.first, error.partial = first, kept
        raise error

    def _send_job(self, job: BlackBoxJob, deadline: Deadline) -> None:
        """Make every worker know the job, for which it imports what the policy needs."""
        box = box_of(job)
        try:
            message = pickle.dumps(job)
        except Exception as error:
            raise _unsendable_error(box, exception_text(error)) from None
        if message == self.job:
            return
        importable = main_is_importable()
        if b"__main__" in message and not importable:
            raise _unsendable_error(box, "one that was typed in, or whose script has no if __name__ == '__main__'")
        if not self.alive:
            self.alive = [_start_worker(importable) for _ in range(self.processes)]
        try:
            for worker in self.alive:
                worker.connection.send(message)
            for worker in self.alive:
                if not worker.connection.poll(deadline.within(START_LIMIT)):
                    if deadline.spent:
                        raise OutOfTimeError(f"black box {box.name!r} had no time to start; give it more")
                    raise EOFError
                reason = worker.connection.recv()
                if reason is not None:
                    raise _unsendable_error(box, reason)
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

    def play(self, deadline: Deadline) -> tuple[dict[int, Run], BlackBoxError | None]:
        """The runs that are done, among them all before the first failure, and that failure."""
        for worker in list(self.workers):
            self._hand_out(worker)
        while any(run < self.end for worker in self.workers for run in worker.unfinished):
            pause = deadline.within(min(GRACE, self.box.call_limit) / 4)
            for ready in wait([worker.connection for worker in self.workers], timeout=pause):
                self._receive(next(worker for worker in self.workers if worker.connection is ready))
            self._kill_overdue()
            if deadline.spent:
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
        number, result, *trace = report
        if trace:
            error = BlackBoxError(result, number)
            error.add_note(f"In the worker process:\n{trace[0]}")
            self._drop_worker(worker, error)
            return
        worker.unfinished.discard(number)
        self.done[number] = result
        if number < self.end:
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


def main_is_importable() -> bool:
    """Whether another process can import the main module without starting its work: a script that guards it.

    A worker imports the main module of its parent. A notebook and `python -c` have none to import; a script without
    `if __name__ == "__main__"` would start all over again.
    """
    try:
        tree = ast.parse(Path(getattr(sys.modules["__main__"], "__file__", None) or "").read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    tests = [node.test for node in tree.body if isinstance(node, ast.If)]
    return any(isinstance(name, ast.Name) and name.id == "__name__" for test in tests for name in ast.walk(test))


def _is_typed_in(factory: Any) -> bool:  # noqa: ANN401 (anything that can be called)
    """Whether a factory, or what it is made of, is defined in the main module."""
    factory = getattr(factory, "func", factory)  # of a partial
    return "__main__" in (getattr(factory, "__module__", None), type(factory).__module__)


@contextmanager
def _hidden_main() -> Iterator[None]:
    """While a worker is started, the main module is an empty one, which it need not import."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _start_worker(with_main: bool) -> _Worker:
    # Spawned, not forked: threads and compiled code do not survive a fork.
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    call_state = context.RawArray("d", CALL_STATE_SIZE)
    call_state[SINCE] = IDLE
    process = context.Process(target=work, args=(theirs, call_state), daemon=True)
    with nullcontext() if with_main else _hidden_main():
        process.start()
    theirs.close()
    return _Worker(process, ours, call_state)


def _unsendable_error(box: BlackBox, reason: str) -> UnsendableError:
    return UnsendableError(
        f"expected black box {box.name!r} to be picklable for use in worker processes, got {reason}; "
        "define its factory in a module of its own; meanwhile the runs are played in this process"
    )


MOST_RUNS: Final = 4096  # at a time
CHUNK: Final = 256
_agreed: dict[int, object] = {}  # factories whose two ways to play agreed, by their id
_unsendable: dict[int, object] = {}  # and those that no worker process can be told of


class _Tapes(NamedTuple):
    """Of each run (rows) and arm: the stream of its rewards, its mean and how often it was pulled."""

    streams: npt.NDArray[np.uint64]
    means: FloatArray
    pulls: IntArray


def lockstep_chunk(box: BlackBox) -> int | None:
    """The runs of a chunk for a policy in lockstep, to which many runs cost little more than one; None for others."""
    many = isinstance(box, BlackBox) and callable(getattr(box.factory, "many", None))
    return CHUNK if many else None


def lockstep_runs(job: BlackBoxJob, first: int, count: int, deadline: Deadline | None = None) -> list[Run]:
    """Runs first, .., first + count - 1."""
    player, done = Player(job, deadline=deadline), list[Run]()
    for begin in range(first, first + count, MOST_RUNS):
        done += _play(player, range(begin, min(begin + MOST_RUNS, first + count)))
    if id(job.mechanism.factory) not in _agreed:
        _check_against_one(player, first, done[0])
        _agreed[id(job.mechanism.factory)] = job.mechanism.factory
    return done


def _play(player: Player, runs: range) -> list[Run]:
    job, call_state = player.job, player.limit.call_state
    worlds = [open_world(job, run) for run in runs]
    tapes = _Tapes(
        np.array([[arm.tape for arm in world.arms] for world in worlds], np.uint64),
        np.array([[arm.mean for arm in world.arms] for world in worlds]),
        np.zeros((len(worlds), len(worlds[0].arms)), np.int64),
    )
    clicks, everyone = job.market.family.quantile is bernoulli.quantile, np.arange(len(worlds))
    paid: Any = np.zeros(tapes.pulls.shape, np.int64 if clicks else object)  # clicks, or ticks
    call_state[RUN], call_state[ROUND], call_state[CALL] = runs.start, 0, MAKE
    with player.limit:
        select, update = _methods(player, [world.view for world in worlds])
        for round_ in range(1, job.market.horizon + 1):
            call_state[ROUND], call_state[CALL] = round_, SELECT
            if player.deadline.spent:
                raise OutOfTimeError(f"black box {player.box.name!r} had no time for round {round_}; give it more")
            arms = _labels(player, player.ask(select), tapes.pulls.shape)
            rewards = _rewards(job, tapes, arms)
            tapes.pulls[everyone, arms] += 1
            paid[everyone, arms] += (
                rewards.astype(np.int64) if clicks else np.array(list(map(ticks, rewards.tolist())), object)
            )
            call_state[CALL] = UPDATE
            player.ask(update, arms, rewards)
    earned, done = (paid.astype(object) * ONE if clicks else paid).tolist(), []
    for world, pulls, sums_of_arms in zip(worlds, tapes.pulls.tolist(), earned, strict=True):
        sums = [0] * len(job.market.agents)
        for arm, number, ticks_earned in zip(world.arms, pulls, sums_of_arms, strict=True):
            arm.pulls = number
            sums[arm.agent] += ticks_earned
        done.append(finished_run(job, world, sums))
    return done


def _methods(player: Player, views: list[Any]) -> list[Callable[..., Any]]:
    factory: Any = player.box.factory
    policy = player.ask(factory.many, views)
    methods: list[Any] = [getattr(policy, name, None) for name in ("select_many", "update_many")]
    if not all(map(callable, methods)):
        raise contract_error(
            player.box.name, player.place, "an object with select_many() and update_many(arms, rewards)",
            short_repr(policy), "return one, or leave `many` out",
        )  # fmt: skip
    return methods


def _labels(player: Player, answer: Any, shape: tuple[int, ...]) -> IntArray:  # noqa: ANN401 (theirs to break)
    """The arms of all runs as whole numbers; arrays of JAX and lists will do."""
    runs, count = shape
    try:
        labels = np.asarray(answer)
    except Exception:
        labels = np.zeros(0)
    whole = labels.shape == (runs,) and labels.dtype.kind in "iu"
    if not whole or labels.min() < 0 or labels.max() >= count:
        got = f"{labels.dtype} of shape {labels.shape}" if not whole else f"arms from {labels.min()} to {labels.max()}"
        raise contract_error(
            player.box.name, player.place, f"{runs} arms from 0 to {count - 1}, one a run", got,
            "return an array of whole numbers",
        )  # fmt: skip
    return labels.astype(np.int64)


def _rewards(job: BlackBoxJob, tapes: _Tapes, arms: IntArray) -> FloatArray:
    """The next reward of each run's tape."""
    rows, sample = np.arange(len(arms)), job.market.family.sample
    means, u = tapes.means[rows, arms], uniforms(tapes.streams[rows, arms], tapes.pulls[rows, arms].astype(np.uint64))
    if job.market.family.quantile is bernoulli.quantile:
        return (u < means).astype(np.float64)
    return np.array([sample(*each) for each in zip(means.tolist(), u.tolist(), strict=True)])


def _check_against_one(player: Player, run: int, lockstep: Run) -> None:
    """Refuse a policy that decides otherwise alone than in lockstep."""
    alone = Player(player.job, deadline=player.deadline).run(run)
    if alone != lockstep:
        raise contract_error(
            player.box.name, player.place, f"the same run {run} from select_many as from select",
            f"payoffs {lockstep.payoff} and {alone.payoff}", "make both decide alike, e.g. by view.seed",
        )  # fmt: skip


Tick = Callable[[], object]


def black_box_outcomes(
    job: BlackBoxJob,
    first: int,
    count: int,
    processes: int | Workers | None = None,
    tick: Tick | None = None,
    deadline: Deadline | None = None,
) -> Outcomes:
    """Runs first .. first + count - 1 of a job whose mechanism is a `BlackBox`.

    Without `processes` they are played here. A number of processes starts that many workers for this chunk; many
    chunks share them with `Workers`. What comes out is the same in each case. A job that cannot be sent to another
    process (a lambda for a factory, say) is played here, with one warning. So is, without a word, one that was typed
    into a notebook or a script that does its work at the top, and a policy that plays many runs in lockstep. `tick` is
    called once a run. From the deadline on, it raises `OutOfTimeError`.

    One chunk at a time: two threads would share the global dice and, in `Workers`, the lines. Outside of the main
    thread, and on Windows, only worker processes can stop a call that never returns (see `CallLimit`).

    Where a run fails, the `BlackBoxError` names the first that does and holds the outcomes of those before it.
    """
    first = whole_number(first, "the first run", 0, error=EngineError)
    count = whole_number(count, "the number of runs", error=EngineError)
    if deadline is not None and deadline.spent:
        raise OutOfTimeError(f"black box {job.mechanism.name!r} had no time for run {first}; give it more")
    tick = tick or (lambda: None)
    if lockstep_chunk(job.mechanism) is not None:
        return outcomes_of_runs(job, lockstep_runs(job, first, count, deadline))
    if processes is None:
        return _here(job, first, count, tick, deadline)
    if id(job.mechanism.factory) in _unsendable or (_is_typed_in(job.mechanism.factory) and not main_is_importable()):
        return _here(job, first, count, tick, deadline)
    try:
        if isinstance(processes, Workers):
            return processes.outcomes(job, first, count, tick, deadline)
        with Workers(processes) as workers:
            return workers.outcomes(job, first, count, tick, deadline)
    except UnsendableError as refusal:
        _unsendable[id(job.mechanism.factory)] = job.mechanism.factory
        warnings.warn(str(refusal), stacklevel=2)
        return _here(job, first, count, tick, deadline)


def _here(job: BlackBoxJob, first: int, count: int, tick: Tick, deadline: Deadline | None) -> Outcomes:
    player, done = Player(job, deadline=deadline), list[Run]()
    try:
        for run in range(first, first + count):
            done.append(player.run(run))
            tick()
    except BlackBoxError as error:
        error.first, error.partial = first, outcomes_of_runs(job, done)
        raise
    return outcomes_of_runs(job, done)
