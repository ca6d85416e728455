"""Chunks of runs of a black box: the same signature, and the same purity, as the compiled kernels have."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import monotonic

from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.failure import BlackBoxError
from cloneproof.engines.black_box.lockstep import lockstep_runs, plays_many
from cloneproof.engines.black_box.play import Player, outcomes_of_runs
from cloneproof.engines.black_box.workers import UnsendableError, Workers
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.reference import Run
from cloneproof.errors import EngineError, OutOfTimeError

Tick = Callable[[], object]


def black_box_outcomes(
    job: BlackBoxJob,
    first: int,
    count: int,
    processes: int | Workers | None = None,
    tick: Tick | None = None,
    until: float | None = None,
) -> Outcomes:
    """Runs first .. first + count - 1 of a job whose mechanism is a `BlackBox`.

    Without `processes` they are played here. A number of processes starts that many workers for this chunk; many
    chunks share them with `Workers`. What comes out is the same in each case. A job that cannot be sent to another
    process (a lambda for a factory, a class typed into a notebook) is played here, with a warning; and so is a policy
    that plays many runs in lockstep. `tick` is called once a run. From the time `until` (of the monotonic clock) on, it
    raises `OutOfTimeError`.

    One chunk at a time: two threads would share the global dice and, in `Workers`, the lines. Outside of the main
    thread, and on Windows, only worker processes can stop a call that never returns (see `limit.py`).

    Where a run fails, the `BlackBoxError` names the first that does and holds the outcomes of those before it.
    """
    _check(first, count)
    if until is not None and monotonic() > until:
        raise OutOfTimeError(f"black box {job.mechanism.name!r} had no time for run {first}; give it more")
    tick = tick or (lambda: None)
    if plays_many(job):
        return outcomes_of_runs(job, lockstep_runs(job, first, count, until))
    if processes is None:
        return _here(job, first, count, tick, until)
    try:
        if isinstance(processes, Workers):
            return processes.outcomes(job, first, count, tick, until)
        with Workers(processes) as workers:
            return workers.outcomes(job, first, count, tick, until)
    except UnsendableError as refusal:
        warnings.warn(str(refusal), stacklevel=2)
        return _here(job, first, count, tick, until)


def _here(job: BlackBoxJob, first: int, count: int, tick: Tick, until: float | None) -> Outcomes:
    player, done = Player(job, until=until), list[Run]()
    try:
        for run in range(first, first + count):
            done.append(player.run(run))
            tick()
    except BlackBoxError as error:
        error.first, error.partial = first, outcomes_of_runs(job, done)
        raise
    return outcomes_of_runs(job, done)


def _check(first: object, count: object) -> None:
    for value, least, what in ((first, 0, "the first run"), (count, 1, "the number of runs")):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise EngineError(f"expected {what} as a whole number from {least}, got {value!r}; use e.g. {least}")
