"""From what is stored to answers: the same functions, over the same runs, as when each point is asked by itself.

Runs are read from the store instead of being computed, and everything else is `sample` and `gain`: so an answer has
the very bits of `cp.evaluate` and `cp.gain`, whatever the chunks were.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cloneproof.analysis.evaluate import with_notes
from cloneproof.analysis.gain import gain
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.monte_carlo.driver import InlineExecutor
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.sampler import sample
from cloneproof.errors import SweepError
from cloneproof.sweeps.grid_point import GridPoint
from cloneproof.sweeps.storage.chunk_store import Store, StoredChunk
from cloneproof.sweeps.storage.missing_parts import Index, Need, check_shape

READ = 1 << 14  # runs at a time


class PointAnswer(NamedTuple):
    """The estimates of a point by (quantity, agent), how they were come by, and what a reader must know."""

    estimates: dict[tuple[str, str], Estimate]
    engine: str
    notes: tuple[str, ...] = ()
    verdict: str = ""
    scope: str = ""
    witness: dict[str, list[int]] = {}  # noqa: RUF012 (never written to)


def answer(point: GridPoint, need: Need, index: Index) -> PointAnswer:
    """What is known of a point whose needs are met; `DamagedChunk` where a chunk went bad meanwhile."""
    refusals: list[str] = []
    if need.whole:
        stored_answer, refusals = _whole_answer(point, StoredChunk(need.whole, 0, 0), index.store)
        if stored_answer is not None:
            return stored_answer
        if not need.sampled:
            return PointAnswer({}, "refused", tuple(refusals))
    stored = [StoredRuns(index, key, 2 * len(point.market.agents) + 1) for key in need.sampled]
    confidence = point.options["confidence"]
    if point.question == "evaluate":
        job = Job(point.market, point.mechanism, dict(point.copies), point.seed)
        sampled = sample(
            job, point.runs, confidence=confidence, threads=1, outcomes=stored[0], executor=InlineExecutor, chunk=READ
        )
        evaluation = with_notes(sampled.evaluation, point.market, point.mechanism, dict(point.copies), refusals)
        return _evaluation_answer(evaluation)
    honest, agent = point.honest, point.options["agent"]
    found_gain = gain(
        point.market,
        point.mechanism,
        agent,
        point.copies,
        runs=point.runs,
        confidence=confidence,
        seed=point.seed,
        threads=1,
        stop_when_decided=False,
        outcomes=lambda job, first, count: stored[int(job.copies != honest)](job, first, count),
        chunk=READ,
    )
    by_name = {"gain": found_gain.estimate, "honest": found_gain.honest, "copied": found_gain.copied}
    return PointAnswer({(name, agent): estimate for name, estimate in by_name.items()}, "monte-carlo")


def _whole_answer(point: GridPoint, chunk: StoredChunk, store: Store) -> tuple[PointAnswer | None, list[str]]:
    """The answer of a part that was computed whole, None where it was refused, and the refusals."""
    payload = store.read(chunk)
    check_shape(store, chunk, payload)
    data = json.loads(payload)
    try:
        refusals = [str(refusal) for refusal in data.pop("refusals")]
        if "evaluation" in data:
            return _evaluation_answer(_evaluation(point, data["evaluation"], refusals)), refusals
        return (_audit_answer(data) if "verdict" in data else None), refusals
    except (AttributeError, KeyError, TypeError, ValueError):  # its checksum is right: somebody has written it
        raise SweepError(
            f"expected the result of a {point.question} in {store.path(chunk)}, got something else with a right "
            "checksum, so not by an accident of the disk; remove the file and run the same command again"
        ) from None


class StoredRuns:
    """The outcomes of a part's runs, read from its chunks; the last chunk is kept at hand."""

    def __init__(self, index: Index, key: str, columns: int) -> None:
        self.store, self.columns = index.store, columns
        self.chunks = sorted(index.chunks[key], key=lambda chunk: (chunk.first, chunk.stop))
        self.reach = [chunk.first for chunk in self.chunks]
        self._open: tuple[StoredChunk, Any] | None = None

    def __call__(self, job: Job, first: int, count: int) -> Outcomes:
        """Runs first .. first + count - 1; who asks has made sure that they are stored."""
        rows, at = [], first
        while at < first + count:
            chunk = self._chunk_with(at)
            part = self._rows(chunk)[at - chunk.first : first + count - chunk.first]
            rows.append(part)
            at += len(part)
        together, agents = np.concatenate(rows), self.columns // 2
        return Outcomes(together[:, :agents], together[:, agents], together[:, agents + 1 :])

    def _chunk_with(self, run: int) -> StoredChunk:
        if self._open is not None and self._open[0].first <= run < self._open[0].stop:
            return self._open[0]
        for number in range(bisect_right(self.reach, run) - 1, -1, -1):  # ranges of several sweeps may overlap
            if run < self.chunks[number].stop:
                return self.chunks[number]
        raise KeyError(run)

    def _rows(self, chunk: StoredChunk) -> Any:  # noqa: ANN401
        if self._open is None or self._open[0] != chunk:
            payload = self.store.read(chunk)
            check_shape(self.store, chunk, payload, self.columns)
            data = np.frombuffer(payload, dtype="<f8")
            self._open = chunk, data.reshape(chunk.runs, self.columns)
        return self._open[1]


def _evaluation(point: GridPoint, data: dict[str, Any], refusals: list[str]) -> Evaluation:
    """An exact evaluation as it was stored, with why other engines were passed over."""
    stored = Evaluation.from_dict(data)
    _check_estimates([*stored.payoff.values(), stored.regret])
    outside = with_notes(replace(stored, notes=()), point.market, point.mechanism, dict(point.copies), []).notes
    return replace(stored, notes=(*outside, *refusals, *stored.notes[len(outside) :]))


def _evaluation_answer(evaluation: Evaluation) -> PointAnswer:
    estimates = {("payoff", name): estimate for name, estimate in evaluation.payoff.items()}
    return PointAnswer(estimates | {("regret", ""): evaluation.regret}, evaluation.engine, evaluation.notes)


def _audit_answer(data: dict[str, Any]) -> PointAnswer:
    worst = data["worst"]
    estimates = {(name, worst["agent"]): Estimate.from_dict(worst[name]) for name in ("gain", "honest", "copied")}
    for name, witness in data["apart"].items():
        estimates[f"{name} gain", witness["agent"]] = Estimate.from_dict(witness["gain"])
    _check_estimates(estimates.values())
    copies = {worst["agent"]: [int(count) for count in worst["copies"]]}
    notes = tuple(str(note) for note in data["notes"])
    return PointAnswer(estimates, "audit", notes, str(data["verdict"]), str(data["scope"]), copies)


def _check_estimates(estimates: Iterable[Estimate]) -> None:
    """Numbers and words where they should be; a ValueError otherwise."""
    for estimate in estimates:
        numbers, words = (estimate.value, estimate.error), (estimate.kind, estimate.method)
        if not (all(isinstance(number, int | float) for number in numbers) and all(isinstance(w, str) for w in words)):
            raise ValueError(estimate)
