"""What a worker does: pieces of parts, one after the other, until they are done or its time is up.

Results are bytes, ready for the store. Nothing in them depends on where a range was cut or how long anything took: the
rows of runs are pure functions of the job and the run's number, and the rest is computed whole.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.evaluate import evaluate
from cloneproof.engines.monte_carlo.devices import DeviceName, run_source
from cloneproof.errors import CloneproofError, EngineError, SweepError
from cloneproof.sweeps.code_version import code_version
from cloneproof.sweeps.configuration import Configuration, configuration

STEP_SECONDS = 0.5  # between two looks at the clock
COMPILING = 60.0  # seconds; a first step that takes longer is not compiling, but slow
EXACT_ENGINES = {"auto": ("closed-form", "tree"), "closed-form": ("closed-form",), "tree": ("tree",)}


class TaskPiece(NamedTuple):
    """A range of runs of a part, by its key; `runs` 0 stands for a part that is computed whole."""

    key: str
    first: int
    runs: int


class TaskDone(NamedTuple):
    """What was computed of a piece, how long it took, and the seconds of a run as far as they are known by now."""

    piece: TaskPiece
    payload: bytes
    seconds: float
    cost: float


class TaskFailed(NamedTuple):
    """An error, as words: exceptions and their tracebacks do not always survive the way from a worker."""

    kind: str
    message: str
    ours: bool  # a sentence for the user already


def attempt(*task: Any) -> list[TaskDone] | TaskFailed:  # noqa: ANN401
    """`work`, with an error as a value; this is what engines run."""
    try:
        return work(*task)
    except Exception as error:
        return TaskFailed(type(error).__name__, str(error), isinstance(error, CloneproofError))


def work(
    version: str,
    texts: Mapping[str, str],
    pieces: Sequence[TaskPiece],
    each: float,
    seconds: float,
    device: DeviceName = "cpu",
    stop: Callable[[], bool] = lambda: False,
) -> list[TaskDone]:
    """The pieces in turn, up to about so many seconds each and together; some may come back shorter, or not at all."""
    if code_version() != version:
        raise SweepError(wrong_version("a worker", code_version(), version))
    begun, done = time.perf_counter(), list[TaskDone]()
    for piece in pieces:
        left = seconds - (time.perf_counter() - begun)
        if done and (left <= 0 or stop()):
            break
        done.append(_piece(configuration(texts[piece.key]), piece, min(each, left), device, stop))
    return done


def wrong_version(who: str, theirs: str, ours: str) -> str:
    """The refusal of a worker; both versions are named."""
    return (
        f"expected every worker to have the code of the driver ({ours}), got {who} with another ({theirs}); "
        "install the same version on both and start again"
    )


def _piece(
    config: Configuration, piece: TaskPiece, seconds: float, device: DeviceName, stop: Callable[[], bool]
) -> TaskDone:
    begun = time.perf_counter()
    if config.kind == "runs":
        rows, cost = _runs(config, piece, seconds, device, stop)
        piece, payload = TaskPiece(piece.key, piece.first, len(rows)), rows.astype("<f8").tobytes()
    else:
        result = _exact(config) if config.kind == "exact" else _audit(config)
        payload, cost = json.dumps(result).encode(), 0.0
    return TaskDone(piece, payload, time.perf_counter() - begun, cost)


def _runs(
    config: Configuration, piece: TaskPiece, seconds: float, device: DeviceName, stop: Callable[[], bool]
) -> tuple[Any, float]:
    """The rows (the outcomes, side by side) of as many runs as the time allows, and the seconds of the last ones.

    Steps grow to half a second. The time of the first does not count, since it may compile a kernel. On a GPU they
    begin with thousands of runs, which take it no longer than one.
    """
    job, rows, done = config.job(), [], 0
    source = run_source(device, [job], piece.runs)
    step, spent, cost = source.first_step, 0.0, 0.0
    while done < piece.runs:
        step = min(step, piece.runs - done, source.largest)
        begun = time.perf_counter()
        outcomes = source.outcomes(job, piece.first + done, step)
        took = max(time.perf_counter() - begun, 1e-9)
        rows.append(np.column_stack(outcomes))
        cost, done = took / step, done + step
        spent += took if len(rows) > 1 or took > COMPILING else 0.0
        if spent >= seconds or stop():
            break
        step = max(1, int(step * min(4.0, STEP_SECONDS / took)))
    return np.concatenate(rows), cost


def _exact(config: Configuration) -> dict[str, Any]:
    """The evaluation by the first exact engine that takes it, with why others did not; or only the latter."""
    options = config.rest
    refusals: list[str] = []
    for engine in EXACT_ENGINES[options["engine"]]:
        try:
            evaluation = evaluate(config.market, config.mechanism, options["copies"], engine, options["arithmetic"])  # type: ignore[arg-type]
        except EngineError as refusal:
            refusals.append(str(refusal))
        else:
            return {"evaluation": evaluation.to_dict(), "refusals": refusals}
    return {"refusals": refusals}


def _audit(config: Configuration) -> dict[str, Any]:
    """The verdict, its witness and its scope; or why there is none."""
    try:
        result = audit(config.market, config.mechanism, **config.rest, device="cpu")  # its notes are stored
    except EngineError as refusal:
        return {"refusals": [str(refusal)]}
    return {
        "verdict": result.verdict,
        "scope": result.scope,
        "worst": result.worst.to_dict(),
        "apart": {name: witness.to_dict() for name, witness in result.apart.items()},
        "notes": list(result.notes),
        "refusals": [],
    }
