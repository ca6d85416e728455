"""`cp.sweep`: a grid, a file of finished points, and one table at the end.

1. Every point of the grid is made and checked (`grid`); its text gets its key (`tasks`).
2. What the file does not have is computed, point by point, each stored as it comes (`Store`).
3. The table is made of what is stored (`table`).

Points are computed in this thread, in processes, or on an executor that is given, such as a cluster's (`cluster`; Dask,
an extra, is imported only when one is asked for, and gives the tasks of a worker that died to another one). The driver
alone writes to the file.

The file has a line of JSON for each finished point, [key, answer], written whole with one call, so that a sweep that
dies loses only what was being computed; a line that a crash or a full disk has cut is taken away when the file is
opened again. Several sweeps of one machine may write to a file at the same time. Keys hold the code version, so that a
file may have answers of several.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from cloneproof._lib.checks import count
from cloneproof._lib.files import checked_path, code_version
from cloneproof.errors import SweepError, brief
from cloneproof.runs.deadline import process_pool
from cloneproof.runs.sampler import DeviceName, InlineExecutor, available_threads, checked_device
from cloneproof.sweeps.grid import load_grid, points_of
from cloneproof.sweeps.table import COLUMNS, SweepSummary, SweepTable, point_rows
from cloneproof.sweeps.tasks import Answer, TaskFailed, attempt, key_of


class Store:
    """Finished points of a file, of which those of the wanted keys are kept: `answers`."""

    def __init__(self, path: Path, handle: int, wanted: Collection[str]) -> None:
        self.path, self._handle, self.answers = path, handle, dict[str, Answer]()
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n") and line[:2] in (b"[", b'["'):
                    os.truncate(path, lines.tell() - len(line))
                    break
                key, answer = self._read(number, line)
                if key in wanted:
                    self.answers[key] = answer

    def _read(self, number: int, line: bytes) -> tuple[str, Answer]:
        try:
            key, answer = json.loads(line)
            if not isinstance(key, str) or not {"estimates", "engine", "notes"} <= set(answer):
                raise ValueError
        except (ValueError, TypeError):
            raise SweepError(
                f"expected a file of finished points, got {self.path}, whose line {number} is none; take that line "
                "away, or name another file"
            ) from None
        return key, answer

    def add(self, key: str, answer: Answer) -> None:
        """Store the answer of a point."""
        line = json.dumps([key, answer], separators=(",", ":")).encode() + b"\n"
        with _told(self.path):
            if os.write(self._handle, line) < len(line):
                raise OSError("no space left")
        self.answers[key] = answer


@contextmanager
def open_store(file: str | Path, wanted: Collection[str]) -> Iterator[Store]:
    """Yield the store of a file, made where there is none."""
    path = checked_path(file)
    if path.is_dir():
        raise SweepError(f"expected a file for finished points, got the folder {file}; name a file in it")
    with _told(path):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        with _told(path):
            store = Store(path, handle, wanted)
        yield store
    finally:
        os.close(handle)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say in one sentence that there is no room, or are no rights."""
    try:
        yield
    except OSError as problem:
        raise SweepError(
            f"expected room and rights to use the store {path}, got: {problem.strerror or problem}; see to that and "
            "run the same command again: what is stored is kept, and it goes on from there"
        ) from None


AHEAD = 2  # points on their way for each worker: one is computed, one is already there


@dataclass
class SweepState:
    """Progress of a sweep: different points in all, those that were stored before, those finished by now."""

    points: int
    reused: int
    finished: int
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    @property
    def line(self) -> str:
        """For a terminal's bar.

        >>> SweepState(points=200, reused=20, finished=40).line
        '40 of 200 points, 20 of them were there'
        """
        return f"{self.finished} of {self.points} points, {self.reused} of them were there"


SweepCallback = Callable[[SweepState], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after everything that had come back was stored; says how to go on."""


def sweep(
    grid: str | Path | Mapping[str, Any],
    store: str | Path,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    device: DeviceName = "auto",
    rules: Collection[str] = (),
    progress: SweepCallback | None = None,
) -> SweepTable:
    """Answer every point of a grid, computing only what the store does not have yet.

    Parameters
    ----------
    grid : str, Path or mapping
        A grid file, or a mapping like one, in which markets and mechanisms may be objects (docs/sweeps.md).
    store : str or Path
        A file of finished points, made where there is none; sweeps that overlap share what is in it.
    workers : int, optional
        How many processes; as many as there are cores if left out, or as the executor has. One works in this thread.
    executor : concurrent.futures.Executor, optional
        What computes instead of this machine: anything with `submit`, such as Dask's `client.get_executor()`,
        `MPIPoolExecutor` or loky's. It is left open. If it fails, so does the sweep, and the next one goes on.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Where runs are drawn, with the same bits. "gpu" has one worker for the card; with an executor it expects a card
        for each. "auto" takes a card where that pays and one worker is asked for. Audits are drawn on the CPU.
    rules : collection of str, optional
        The MODULE:NAME of own rules that the grid may ask for. Importing one runs its module, so a grid alone cannot.
    progress : callable, optional
        Called with the state whenever a point is finished.

    Examples
    --------
    >>> import tempfile
    >>> from cloneproof import Agent, Discrete, Market, sweep
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7, rewards="deterministic")
    >>> asked = {"market": market, "mechanism": "ucb1", "copies": [{}, {"ana": (2, 1)}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = sweep(asked, f"{folder}/points.jsonl", workers=1)
    ...     again = sweep(asked, f"{folder}/points.jsonl", workers=1)
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
    version = code_version()
    keys = [key_of(point.text, version) for point in points]
    asked = {key: point.text for key, point in zip(keys, points, strict=True)}
    with open_store(store, asked) as kept:
        state = SweepState(len(asked), len(kept.answers), len(kept.answers))
        missing = {key: text for key, text in asked.items() if key not in kept.answers}
        if missing:
            number = 1 if device == "gpu" and executor is None else number
            with _place(executor, number) as place:
                if device == "auto" and place.ahead > 1:
                    device = "cpu"  # processes would share the card
                _compute(missing, kept, place, (version, device), state, progress or (lambda _: None))
        pairs = zip(points, keys, strict=True)
        rows = [row for point, key in pairs for row in point_rows(point, kept.answers[key])]
    summary = SweepSummary(len(points), state.reused, state.finished - state.reused, state.seconds)
    return SweepTable({name: [row[name] for row in rows] for name in COLUMNS}, summary)


@dataclass(frozen=True)
class Place:
    """Where points are computed: an executor, how many are on their way at once, and what to do if it fails."""

    executor: Executor
    ahead: int
    advice: str

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say in one sentence that the executor failed: a dead worker, no scheduler, or no cloneproof there."""
        try:
            yield
        except Exception as problem:
            words = f"{type(problem).__name__}: {problem}".split("\n")[0].rstrip(". :")
            raise SweepError(f"expected workers that compute points, got {words}; {self.advice}") from None


@contextmanager
def _place(given: Executor | None, workers: int | None) -> Iterator[Place]:
    """Yield the executor that is given, which the caller ends, or processes of this machine; one is this thread.

    Executors have no public size. Where one hides it otherwise than Dask and the standard library do, it is `workers`.
    """
    if given is not None:
        client: Any = getattr(given, "_client", None)
        seen = sum(client.nthreads().values()) if hasattr(client, "nthreads") else getattr(given, "_max_workers", None)
        advice = (
            f"see that all its processes live and have this version ({code_version()}), and run the same sweep again: "
            "what is stored is kept"
        )
        yield Place(given, AHEAD * max(1, workers or seen or available_threads()), advice)
        return
    number = workers or available_threads()
    advice = (
        "in a script, call sweep under if __name__ == '__main__'; else make sure of enough memory, or use workers=1"
    )
    executor: Executor = InlineExecutor() if number == 1 else process_pool(number)
    try:
        yield Place(executor, 1 if number == 1 else AHEAD * number, advice)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _compute(
    missing: Mapping[str, str],
    store: Store,
    place: Place,
    task: tuple[str, DeviceName],
    state: SweepState,
    report: SweepCallback,
) -> None:
    """Compute the points that are missing; Ctrl-C keeps what is there."""
    waiting, (version, device) = iter(missing.items()), task
    flying: dict[Future[Answer | TaskFailed], str] = {}
    try:
        while True:
            for key, text in islice(waiting, place.ahead - len(flying)):
                with place.told():
                    flying[place.executor.submit(attempt, version, text, device)] = key
            if not flying:
                return
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                with place.told():
                    found = future.result()
                if isinstance(found, TaskFailed):
                    told = f"expected a worker to compute a point, got {found.kind}: {found.message}"
                    raise SweepError(found.message if found.ours else told)
                store.add(flying.pop(future), found)
                state.finished += 1
                report(state)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted: {state.finished - state.reused} points of this run are stored in {store.path}; the same "
            "command goes on from there"
        ) from None
    finally:
        for future in flying:
            future.cancel()


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Yield the workers of the scheduler at tcp://HOST:PORT; or `local:N`, N processes that end with the block.

    Those have one thread each, since engines hold Python's lock where no kernel does the work.
    """
    local = re.fullmatch(r"local:(\d+)", address)
    if not local and not re.fullmatch(r"\w+://\S+:\d+/?", address):
        raise SweepError(f"expected a cluster as tcp://HOST:PORT or local:N, got {brief(address)}; give one of them")
    number = count(int(local[1]), "the number of workers of a cluster", most=1000, error=SweepError) if local else 0
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise SweepError("expected Dask for a cluster, got none; pip install 'cloneproof[cluster]'") from None
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # a sweep says in one sentence what failed
    with ExitStack() as opened:
        place: object = address
        if local:
            quiet = {"dashboard_address": None, "silence_logs": logging.ERROR}
            place = opened.enter_context(LocalCluster(n_workers=number, threads_per_worker=1, **quiet))
        try:
            client = Client(place, set_as_default=False)
        except (OSError, ValueError, ImportError) as problem:  # no answer in time, no address, no such protocol
            raise SweepError(
                f"expected a Dask scheduler at {address}, got {type(problem).__name__}; start one with "
                "`dask scheduler`, or check address and firewall"
            ) from None
        executor = opened.enter_context(client).get_executor(pure=False)
        if local:
            client.run(_ignore_interrupts)
        try:
            yield executor
        except KeyboardInterrupt:
            opened.pop_all()  # closing would wait for running tasks; these processes end with this one
            raise


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which reaches every process of a terminal; the driver alone answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
