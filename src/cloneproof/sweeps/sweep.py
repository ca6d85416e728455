"""`cp.sweep`: a grid, a store, and one table at the end.

1. Every point of the grid is made and checked (`grid`); its parts get their keys (`tasks`).
2. The store says what it has of them, every digest looked at (`store`); what is damaged is removed.
3. What is missing is computed, chunk by chunk, each stored as it comes (`Driver`).
4. The answers are made from what is stored (`table`).

The driver alone writes to the store. A chunk is stored the moment it arrives, so a driver that dies loses only what was
being computed. Tasks run in threads where kernels do the work, which release Python's lock, and in processes where
Python does (exact engines, audits); or on an executor that is given, such as a cluster's.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cloneproof._checks import count
from cloneproof._processes import process_pool
from cloneproof._sources import code_version
from cloneproof.engines.monte_carlo.sampler import DeviceName, InlineExecutor, available_threads, checked_device
from cloneproof.errors import SweepError, brief
from cloneproof.sweeps.grid import GridPoint, load_grid, points_of
from cloneproof.sweeps.store import LOG, DamagedChunk, Index, Need, Store, open_store, read_index
from cloneproof.sweeps.table import COLUMNS, EstimateSummary, SweepTable, answer, point_rows
from cloneproof.sweeps.tasks import Chunk, ChunkDone, Part, TaskFailed, attempt

AHEAD = 2  # tasks on their way for each worker: one runs, one is already there
LEAST_RUNS = 64  # of a chunk that is cut only so that others have something to do
TICK = 0.5  # seconds between two reports
PATIENCE = 0.6  # seconds for tasks to come back after Ctrl-C: they look at the clock twice in that time
LOG_SECONDS = 60.0


def duration(seconds: float) -> str:
    """About how long, in the largest unit that fits."""
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


@dataclass(frozen=True)
class Sizes:
    """When a chunk must come back, in seconds, and the most bytes of one."""

    seconds: float = 5.0
    chunk_bytes: int = 8 << 20


class Agenda:
    """Work that is left: ranges of runs, and parts to be computed whole.

    A worker stops when its time is over, and what it left comes back on the agenda. None of this touches the results: a
    row depends on its run alone, wherever ranges are cut.
    """

    def __init__(self, missing: Iterable[Chunk], columns: Mapping[str, int], sizes: Sizes) -> None:
        self.columns, self.sizes = columns, sizes
        self.waiting = deque(missing)

    def next_chunk(self, workers: int) -> Chunk:
        """Return the next chunk, cut so that it has not too many rows and all workers have something to do."""
        key, first, runs = self.waiting.popleft()
        most = max(1, self.sizes.chunk_bytes // (8 * self.columns[key])) if runs else 0
        if workers > 1:
            most = min(most, max(LEAST_RUNS, -(-runs // (AHEAD * workers))))
        taken = min(runs, most)
        if taken < runs:
            self.waiting.appendleft(Chunk(key, first + taken, runs - taken))
        return Chunk(key, first, taken)

    def finish(self, asked: Chunk, done: Chunk) -> None:
        """Take a chunk back: what it left out goes on the agenda again."""
        if done.stop < asked.stop:
            self.waiting.appendleft(Chunk(asked.key, done.stop, asked.stop - done.stop))


@dataclass
class SweepState:
    """Progress of a sweep: what was stored before, what was computed now, and what is left as far as is known."""

    missing: int  # parts of which something was or became missing
    reused: int  # chunks that were there
    begun: float = field(default_factory=time.monotonic)
    finished: int = 0  # of the missing parts, whole ones and fractions
    fraction: float = 0.0
    chunks: int = 0
    runs: int = 0
    busy_seconds: float = 0.0
    workers: int = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    @property
    def left_seconds(self) -> float:
        """Seconds of work left, on all workers: parts that are left count as those met so far."""
        return self.busy_seconds / max(self.fraction, 1e-9) * (self.missing - self.fraction) / max(1, self.workers)

    @property
    def line(self) -> str:
        """Throughput and time left, for a terminal's bar and for the log.

        >>> state = SweepState(missing=200, reused=0, begun=time.monotonic() - 100)
        >>> state.finished, state.fraction, state.chunks, state.runs, state.workers = 40, 40.0, 61, 1_200_000, 2
        >>> state.busy_seconds = 200
        >>> state.line
        '40 of 200 parts, 61 chunks, 1.2e+06 runs, 1.2e+04 runs/s on 2 workers, 7 minutes left'
        """
        text = f"{self.finished} of {self.missing} parts, {self.chunks} chunks"
        if self.runs:
            text += f", {self.runs:.3g} runs, {self.runs / max(self.seconds, 1e-9):.2g} runs/s"
        text += f" on {self.workers} worker{'s' if self.workers != 1 else ''}"
        if self.finished == self.missing:
            return text
        return f"{text}, {duration(self.left_seconds) + ' left' if self.chunks else 'time left not known yet'}"


SweepCallback = Callable[[SweepState], None]


class ProgressLog:
    """A line when the sweep begins, one a minute, one at the end; a log that cannot be written stops nothing."""

    def __init__(self, path: Path, progress: SweepCallback | None) -> None:
        self.path, self.progress, self._last = path, progress, time.monotonic()

    def __call__(self, state: SweepState) -> None:
        if time.monotonic() - self._last >= LOG_SECONDS:
            self.say(state.line)
        if self.progress is not None:
            self.progress(state)

    def say(self, text: str) -> None:
        self._last = time.monotonic()
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {text}\n")
        except OSError:
            pass


TaskResult = Future[ChunkDone | TaskFailed]


class Place:
    """Where tasks run: an executor, how many tasks it can run at once now, and what to do if it fails."""

    def __init__(self, executor: Executor, workers: Callable[[], int], advice: str, stoppable: bool = False) -> None:
        self.executor, self.workers, self.advice = executor, workers, advice
        self.stopped, self.stoppable = threading.Event(), stoppable  # by a flag, which threads of this process see

    def submit(self, *task: Any) -> TaskResult:  # noqa: ANN401
        with self.told():
            return self.executor.submit(attempt, *task, *([self.stopped.is_set] if self.stoppable else []))

    def result(self, future: TaskResult) -> ChunkDone:
        with self.told():
            result = future.result()
        if isinstance(result, TaskFailed):
            told = f"expected a worker to compute a chunk, got {result.kind}: {result.message}"
            raise SweepError(result.message if result.ours else told)
        return result

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say in one sentence that the executor failed: a dead worker, no scheduler, or no cloneproof there."""
        try:
            yield
        except Exception as problem:
            words = f"{type(problem).__name__}: {problem}".split("\n")[0].rstrip(". :")
            raise SweepError(f"expected workers that compute chunks, got {words}; {self.advice}") from None


@contextmanager
def this_machine(number: int, sampled_only: bool) -> Iterator[Place]:
    """Use threads if only runs are asked for, else processes; one worker is this thread, whose work Ctrl-C ends."""
    if number == 1:
        executor: Executor = InlineExecutor()
    else:
        executor = ThreadPoolExecutor(number) if sampled_only else process_pool(number)
    advice = (
        "in a script, call sweep under if __name__ == '__main__'; else make sure of enough memory, or use workers=1"
    )
    place = Place(executor, lambda: number, advice, stoppable=number > 1 and sampled_only)
    try:
        yield place
    except BaseException:
        place.stopped.set()
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def given_place(executor: Executor, workers: int | None) -> Place:
    """Use the caller's executor, which the caller also ends; its size is asked for anew, as a cluster may grow.

    Executors have no public size. Where one hides it otherwise than Dask and the standard library do, it is `workers`.
    """
    client: Any = getattr(executor, "_client", None)
    fixed_size = workers or getattr(executor, "_max_workers", None) or available_threads()
    advice = (
        f"see that all its processes live and have this version ({code_version()}), and run the same sweep again: "
        "what is stored is kept"
    )
    grows = hasattr(client, "nthreads") and not workers
    return Place(executor, lambda: sum(client.nthreads().values()) if grows else fixed_size, advice)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after everything that had come back was stored; says how to go on."""


class Driver:
    """Computes whatever the needs miss as far as is known, on a place; what exact engines refuse is missing then."""

    def __init__(
        self,
        index: Index,
        needs: Sequence[Need],
        parts: Mapping[str, Part],
        sizes: Sizes,
        state: SweepState,
        report: SweepCallback,
    ) -> None:
        self.index, self.parts, self.state, self.report = index, parts, state, report
        missing = index.missing(needs)
        self.agenda = Agenda(missing, {key: part.columns for key, part in parts.items()}, sizes)
        self.left: Counter[str] = Counter()  # runs of each part
        for chunk in missing:
            self.left[chunk.key] += chunk.runs
        self.total = dict(self.left)
        state.missing = state.finished + len(self.left)
        self.flying: dict[TaskResult, Chunk] = {}

    def run(self, place: Place, device: DeviceName) -> None:
        """Compute all of it; Ctrl-C keeps what is there."""
        try:
            while self.agenda.waiting or self.flying:
                self._hand_out(place, device)
                finished, _ = wait(self.flying, timeout=TICK, return_when=FIRST_COMPLETED)
                for future in finished:
                    asked, done = self.flying.pop(future), place.result(future)
                    self._keep(done)
                    self.agenda.finish(asked, done.chunk)
                self.report(self.state)
        except KeyboardInterrupt:
            self._collect_stopped(place)
            raise Interrupted(
                f"interrupted: {self.state.chunks} chunks of this run are stored in {self.index.store.folder}; "
                "the same command goes on from there"
            ) from None
        finally:
            for future in self.flying:
                future.cancel()

    def _hand_out(self, place: Place, device: DeviceName) -> None:
        with place.told():
            self.state.workers = place.workers()
        workers = max(1, self.state.workers)  # something waits for the first to come
        while self.agenda.waiting and len(self.flying) < AHEAD * workers:
            chunk = self.agenda.next_chunk(workers)
            text, seconds = self.parts[chunk.key].text, self.agenda.sizes.seconds
            future = place.submit(self.index.store.version, text, chunk, seconds, device)
            self.flying[future] = chunk
            if future.done():  # computed here and now: to be stored before anything else is begun
                break

    def _collect_stopped(self, place: Place) -> None:
        """Store what is there after Ctrl-C, and what running tasks come back with if they can be asked."""
        place.stopped.set()
        patience = PATIENCE if place.stoppable else 0.0
        finished, _ = wait([future for future in self.flying if not future.cancel()], timeout=patience)
        for future in finished:
            if not future.cancelled() and future.exception() is None and isinstance(future.result(), ChunkDone):
                self._keep(place.result(future))
        self.report(self.state)

    def _keep(self, done: ChunkDone) -> None:
        chunk, state = done.chunk, self.state
        self.index.store.write(chunk, done.contents)
        self.index.add(chunk, done.contents)
        state.chunks += 1
        state.runs += chunk.runs
        state.busy_seconds += done.seconds
        self.left[chunk.key] -= chunk.runs
        state.finished += self.left[chunk.key] == 0
        state.fraction += chunk.runs / self.total[chunk.key] if self.total[chunk.key] else 1


def sweep(
    grid: str | Path | Mapping[str, Any],
    store: str | Path,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    device: DeviceName = "auto",
    rules: Collection[str] = (),
    progress: SweepCallback | None = None,
    sizes: Sizes | None = None,
) -> SweepTable:
    """Answer every point of a grid, computing only what the store does not have yet.

    Parameters
    ----------
    grid : str, Path or mapping
        A grid file, or a mapping like one, in which markets and mechanisms may be objects (docs/sweeps.md).
    store : str or Path
        A folder, made where there is none; sweeps that overlap share what is in it.
    workers : int, optional
        How many threads or processes; as many as there are cores if left out, or as the executor has.
    executor : concurrent.futures.Executor, optional
        What computes instead of this machine: anything with `submit`, such as Dask's `client.get_executor()`,
        `MPIPoolExecutor` or loky's. It is left open. If it fails, so does the sweep, and the next one goes on.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Where runs are drawn, with the same bits, so that a store may be begun on a GPU and completed on a CPU. "gpu"
        has one worker for the card; "auto" takes one where that pays. With an executor "auto" is "cpu", and "gpu"
        expects a card for each worker. Audits of a sweep are drawn on the CPU.
    rules : collection of str, optional
        The MODULE:NAME of own rules that the grid may ask for. Importing one runs its module, so a grid alone cannot.
    progress : callable, optional
        Called with the state, about twice a second.
    sizes : Sizes, optional
        How long chunks take. The bits of the table depend neither on these nor on workers or interruptions.

    Examples
    --------
    >>> import tempfile
    >>> from cloneproof import Agent, Discrete, Market, sweep
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7, rewards="deterministic")
    >>> asked = {"market": market, "mechanism": "ucb1", "copies": [{}, {"ana": (2, 1)}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = sweep(asked, folder, workers=1)
    ...     again = sweep(asked, folder, workers=1)
    >>> table.where(quantity="payoff")["value"], again.summary.computed
    ([4.25, 4.5], 0)
    """
    number = None if workers is None else count(workers, "the number of workers", error=SweepError)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise SweepError(f"expected an executor with submit, got {brief(executor)}; see concurrent.futures")
    if executor is None or device != "gpu":  # the cards are where the workers are
        device = checked_device(device)
    if not isinstance(grid, str | Path | Mapping):
        raise SweepError(f"expected a grid file or a mapping like one, got {brief(grid)}; see docs/sweeps.md")
    points = points_of(grid, rules=rules) if isinstance(grid, Mapping) else load_grid(grid, rules)
    name = "a mapping" if isinstance(grid, Mapping) else str(grid)
    with open_store(store, code_version()) as shelf:
        log = ProgressLog(shelf.folder / LOG, progress)
        try:
            return _answered(points, name, shelf, sizes or Sizes(), (number, executor, device), log)
        except DamagedChunk as damage:
            raise SweepError(f"{damage} (it went bad while the sweep ran, and is computed again then)") from None
        except KeyboardInterrupt as stopped:
            words = str(stopped) or f"interrupted: what is stored in {shelf.folder} is kept; the same command goes on"
            log.say(words)
            raise Interrupted(words) from None


def _answered(
    points: list[GridPoint],
    name: str,
    store: Store,
    sizes: Sizes,
    place: tuple[int | None, Executor | None, DeviceName],
    log: ProgressLog,
) -> SweepTable:
    """Compute what is missing, then the runs where exact engines refused; return the table."""
    parts, needs = parts_by_key(points, store.version)
    store.record_sweep(name, needs)
    index, damaged = read_index(store, parts)
    for chunk in damaged:
        store.discard(chunk)
        log.say(f"damaged, computed again: {chunk.name}")
    state = SweepState(0, sum(map(len, index.chunks.values())))
    log.say(f"{name}: {len(points)} points, {state.reused} chunks there, {len(damaged)} damaged")
    missing = index.missing(needs)
    if missing:
        workers, executor, device = place
        sampled_only = all(chunk.runs for chunk in missing)
        if device == "auto" and (executor is not None or not sampled_only):
            device = "cpu"  # processes would share the card
        here = this_machine(1 if device == "gpu" else workers or available_threads(), sampled_only)
        with here if executor is None else nullcontext(given_place(executor, workers)) as somewhere:
            while index.missing(needs):
                Driver(index, needs, parts, sizes, state, log).run(somewhere, device)
    pairs = zip(points, needs, strict=True)
    rows = [row for point, need in pairs for row in point_rows(point, answer(point, need, index))]
    done = f": {state.line}" if state.chunks else ", nothing was missing"
    log.say(f"done in {duration(state.seconds)}{done}")
    names, times = tuple(chunk.name for chunk in damaged), (state.seconds, state.busy_seconds)
    summary = EstimateSummary(len(points), state.reused, state.chunks, state.runs, names, *times)
    return SweepTable({name: [row[name] for row in rows] for name in COLUMNS}, summary)


def parts_by_key(points: list[GridPoint], version: str) -> tuple[dict[str, Part], list[Need]]:
    """Return every part by its key, and what each point needs of them."""
    parts: dict[str, Part] = {}
    needs = []
    for point in points:
        whole, runs = point.parts()
        sampled = {part.key(version): part for part in runs}
        key = "" if whole is None else whole.key(version)
        parts |= sampled if whole is None else sampled | {key: whole}
        needs.append(Need(key, tuple(sampled), point.runs_needed))
    return parts, needs
