"""The driver: hands out tasks, stores what comes back, and knows at any time how far it is.

It alone writes to the store, so workers need no common file system. A chunk is stored the moment it arrives: whenever
the driver dies, only what was on its way is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from cloneproof.engines.monte_carlo.devices import DeviceName
from cloneproof.errors import CloneproofError, SweepError
from cloneproof.sweeps.configuration import Part
from cloneproof.sweeps.execution.agenda import Agenda, Sizes
from cloneproof.sweeps.execution.local import TaskResult, TaskRunner
from cloneproof.sweeps.execution.tasks import TaskDone, TaskFailed, TaskPiece
from cloneproof.sweeps.storage.chunk_store import StoredChunk
from cloneproof.sweeps.storage.missing_parts import Index, Need

AHEAD = 2  # tasks on their way for each worker: one runs, one is already there
TICK = 0.5  # seconds between two reports
PATIENCE = 5.0  # seconds for tasks to come back after Ctrl-C


@dataclass
class SweepState:
    """How far a sweep is: what was stored before, what was computed now, and what is left as far as one can tell."""

    points: int
    parts: int
    missing: int  # parts of which something was or became missing
    reused: int  # chunks that were there
    begun: float = field(default_factory=time.monotonic)
    finished: int = 0  # of the missing parts, whole ones and fractions
    fraction: float = 0.0
    chunks: int = 0
    runs: int = 0
    busy_seconds: float = 0.0
    left_seconds: float = 0.0
    workers: int = 0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.begun


SweepCallback = Callable[[SweepState], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after everything that had come back was stored; says how to go on."""


def run(
    index: Index,
    needs: Sequence[Need],
    parts: Mapping[str, Part],
    engine: TaskRunner,
    sizes: Sizes,
    state: SweepState,
    report: SweepCallback,
    device: DeviceName = "cpu",
) -> None:
    """Compute whatever the needs miss."""
    driver = _Driver(index, needs, parts, engine, sizes, state, report, device)
    try:
        driver.go()
    except KeyboardInterrupt:
        driver.collect_stopped()
        raise Interrupted(
            f"interrupted: {state.chunks} chunks of this run are stored in {index.store.folder}; "
            "the same command goes on from there"
        ) from None


class _Driver:
    def __init__(
        self,
        index: Index,
        needs: Sequence[Need],
        parts: Mapping[str, Part],
        engine: TaskRunner,
        sizes: Sizes,
        state: SweepState,
        report: SweepCallback,
        device: DeviceName,
    ) -> None:
        self.device = device
        self.index, self.parts, self.engine, self.state, self.report = index, parts, engine, state, report
        missing = list(index.missing(needs))
        columns = {key: 2 * part.agents + 1 for key, part in parts.items()}
        self.agenda = Agenda(missing, columns, sizes)
        self.left = {key: sum(stop - first for first, stop in ranges) for key, ranges in missing}
        self.total = dict(self.left)
        state.missing = state.finished + len(missing)
        self.after: dict[str, list[Need]] = {}  # what a refusal of a whole part makes necessary
        for need in needs:
            if need.whole and need.sampled and need.whole in self.left:
                self.after.setdefault(need.whole, []).append(need)
        self.flying: dict[TaskResult, list[TaskPiece]] = {}

    def go(self) -> None:
        while not self.agenda.empty or self.flying:
            workers = self.engine.workers()
            while not self.agenda.empty and len(self.flying) < AHEAD * workers:
                pieces, each = self.agenda.task(workers)
                texts = {piece.key: self.parts[piece.key].text for piece in pieces}
                limits = each, self.agenda.sizes.most
                future = self.engine.submit(self.index.store.version, texts, pieces, *limits, self.device)
                self.flying[future] = pieces
                if future.done():  # computed here and now: to be stored before anything else is begun
                    break
            finished, _ = wait(self.flying, timeout=TICK, return_when=FIRST_COMPLETED)
            for future in finished:
                pieces = self.flying.pop(future)
                results = self._result(future)
                self._keep(results)
                self.agenda.finish_task(pieces, results, workers)
            self._tell(workers)

    def collect_stopped(self) -> None:
        """After Ctrl-C: what is there is stored as well, and what running tasks come back with if they can be asked."""
        patience = PATIENCE if self.engine.stop() else 0.0
        finished, _ = wait([future for future in self.flying if not future.cancel()], timeout=patience)
        for future in finished:
            if not future.cancelled() and future.exception() is None and not isinstance(future.result(), TaskFailed):
                self._keep(self._result(future))
        self._tell(self.state.workers)

    def _result(self, future: TaskResult) -> list[TaskDone]:
        try:
            result = future.result()
        except BrokenProcessPool:
            raise SweepError(
                "expected worker processes to live, got one that died or never started; in a script, call sweep under "
                "if __name__ == '__main__'; else make sure of enough memory, or use workers=1"
            ) from None
        except CancelledError:
            raise SweepError(
                "expected the cluster to stay, got cancelled tasks: the scheduler is gone or was restarted; start it "
                "again and run the same command: what is stored is kept"
            ) from None
        except Exception as problem:
            result = TaskFailed(type(problem).__name__, str(problem), isinstance(problem, CloneproofError))
        if isinstance(result, TaskFailed):
            raise SweepError(
                result.message
                if result.ours
                else f"expected a worker to compute a chunk, got {result.kind}: {result.message}; if that is a missing "
                f"or different cloneproof, install this version there ({self.index.store.version})"
            )
        return result

    def _keep(self, results: list[TaskDone]) -> None:
        for piece, payload, seconds, _ in results:
            chunk = StoredChunk(*piece)
            self.index.store.write(chunk, payload)
            self.index.add(chunk, payload)
            self.state.chunks += 1
            self.state.runs += piece.runs
            self.state.busy_seconds += seconds
            self._progress(piece)
            if piece.runs == 0 and self.index.refused[piece.key]:
                self._sample_instead(piece.key)

    def _progress(self, piece: TaskPiece) -> None:
        self.left[piece.key] -= piece.runs
        if self.left[piece.key] == 0:
            self.state.finished += 1
        if self.total[piece.key]:
            self.state.fraction += piece.runs / self.total[piece.key]
        else:
            self.state.fraction += 1

    def _sample_instead(self, key: str) -> None:
        """An exact engine refused: the runs of the points that asked are missing now."""
        for fresh, ranges in self.index.missing([need._replace(whole="") for need in self.after.get(key, ())]):
            if fresh not in self.left:
                self.left[fresh] = self.total[fresh] = sum(stop - first for first, stop in ranges)
                self.state.missing += 1
                self.agenda.add(fresh, ranges)

    def _tell(self, workers: int) -> None:
        flying = sum(self.agenda.costs.get(p.key, 0.0) * p.runs for pieces in self.flying.values() for p in pieces)
        self.state.workers = workers
        self.state.left_seconds = (self.agenda.known_seconds + flying) / max(1, workers)
        self.report(self.state)
