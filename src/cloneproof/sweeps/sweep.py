"""`cp.sweep`: a grid, a store, somewhere to compute, and one table at the end.

1. Every point of the grid is made and checked (`grid`, `builder`); its parts get their keys (`configuration`).
2. The store says what it has of them, every checksum looked at (`store`, `needs`); what is damaged is removed.
3. What is missing is computed, chunk by chunk, each stored as it comes (`agenda`, `engines`, `run`).
4. The answers are made from what is stored (`answers`, `table`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cloneproof._files import write_whole
from cloneproof.engines.monte_carlo.devices import DeviceName, checked_device, checked_device_name
from cloneproof.errors import SweepError, brief
from cloneproof.sweeps.answers import answer
from cloneproof.sweeps.code_version import code_version
from cloneproof.sweeps.configuration import Part
from cloneproof.sweeps.execution.agenda import Sizes
from cloneproof.sweeps.execution.local import TaskRunner, checked_workers, local_engine
from cloneproof.sweeps.execution.progress_line import ProgressLog, duration, line
from cloneproof.sweeps.execution.sweep_run import Interrupted, SweepCallback, SweepState, run
from cloneproof.sweeps.grid import load_grid, points_of
from cloneproof.sweeps.grid_point import GridPoint
from cloneproof.sweeps.storage.chunk_store import DamagedChunk, Store, open_store
from cloneproof.sweeps.storage.missing_parts import Index, Need, needs_to_json, read_index
from cloneproof.sweeps.table import EstimateSummary, SweepTable, TableBuilder


def sweep(
    grid: str | Path | Mapping[str, Any],
    store: str | Path,
    *,
    cluster: str | None = None,
    workers: int | None = None,
    device: DeviceName = "auto",
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
    cluster : str, optional
        The address of a Dask scheduler, tcp://host:port; this machine if left out.
    workers : int, optional
        How many threads or processes of this machine; as many as there are cores if left out.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Where runs are drawn, with the same bits, so that a store may be begun on a GPU and completed on a CPU. "gpu"
        has one worker for the card of this machine, or of each worker of a cluster; "auto" takes one where that pays.
        Audits of a sweep are drawn on the CPU.
    progress : callable, optional
        Called with the state, about twice a second.
    sizes : Sizes, optional
        How long tasks take. The bits of the table depend neither on these nor on workers or interruptions.

    Returns
    -------
    SweepTable
        One row for each estimate of each point.

    Raises
    ------
    SweepError
        Where the grid makes no sense, the store cannot be used or the workers cannot; what is stored stays usable.

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
    _check_place(cluster, workers)
    device = checked_device(device) if cluster is None else checked_device_name(device)
    points = _points(grid)
    version = code_version()
    parts, needs = parts_by_key(points, version)
    shelf = open_store(store, version)
    shelf.tidy()
    name = str(grid) if isinstance(grid, str | Path) else "a mapping"
    _record(shelf, name, needs)
    log = ProgressLog(shelf.folder / "sweep.log")
    index, damaged = read_index(shelf, {key: 2 * part.agents + 1 for key, part in parts.items()})
    names = [shelf.path(chunk) for chunk in damaged]
    for chunk in damaged:
        shelf.discard(chunk)
        log.say(f"damaged, computed again: {shelf.path(chunk)}")
    state = SweepState(len(points), len(parts), 0, sum(map(len, index.chunks.values())))
    log.say(f"{name}: {len(points)} points, {state.reused} chunks there, {len(damaged)} damaged")

    def report(now: SweepState) -> None:
        log(now)
        if progress is not None:
            progress(now)

    try:
        _complete(index, needs, parts, cluster, workers, sizes or Sizes(), state, report, device)
        table = _table(points, needs, index)
    except DamagedChunk as damage:
        raise SweepError(
            f"{damage} (it went bad while the sweep ran: {shelf.path(damage.chunk)} is computed again then)"
        ) from None
    except KeyboardInterrupt as stopped:
        words = str(stopped) or f"interrupted: what is stored in {shelf.folder} is kept; the same command goes on"
        log.say(words)
        raise Interrupted(words) from None
    log.say(f"done in {duration(state.seconds)}" + (f": {line(state)}" if state.chunks else ", nothing was missing"))
    done = EstimateSummary(
        len(points), state.reused, state.chunks, state.runs, tuple(names), state.seconds, state.busy_seconds
    )
    return SweepTable(table, done)


def parts_by_key(points: list[GridPoint], version: str) -> tuple[dict[str, Part], list[Need]]:
    """Every part by its key, and what each point needs of them."""
    parts: dict[str, Part] = {}
    needs = []
    for point in points:
        whole, sampled = point.whole_part(), {part.key(version): part for part in point.runs_parts()}
        key = "" if whole is None else whole.key(version)
        if whole is not None:
            parts[key] = whole
        parts |= sampled
        needs.append(Need(key, tuple(sampled), point.runs_needed))
    return parts, needs


def _points(grid: object) -> list[GridPoint]:
    if isinstance(grid, str | Path):
        return load_grid(grid)
    if isinstance(grid, Mapping):
        return points_of(grid)
    raise SweepError(f"expected a grid file or a mapping like one, got {brief(grid)}; see docs/sweeps.md")


def _check_place(cluster: object, workers: int | None) -> None:
    """Refuse a place where nothing can run before a store is made for it."""
    if cluster is None:
        checked_workers(workers)
    elif not isinstance(cluster, str) or not (re.search(r":\d+/?$", cluster) or cluster.startswith("inproc://")):
        raise SweepError(f"expected the address of a Dask scheduler, got {brief(cluster)}; write it as tcp://HOST:PORT")


def _record(store: Store, name: str, needs: list[Need]) -> None:
    """Leave in the store what this sweep needs, for `--status`."""
    text = needs_to_json(needs)
    digest = blake2b(text.encode(), digest_size=8).hexdigest()
    try:
        (store.folder / "sweeps").mkdir(exist_ok=True)
        write_whole(store.folder / "sweeps" / f"{digest}.json", f"{name}\n{text}\n")
    except OSError as problem:
        raise SweepError(
            f"expected to write into the store {store.folder}, got: {problem.strerror or problem}; make room, or check "
            "whose folder it is"
        ) from None


def _complete(
    index: Index,
    needs: list[Need],
    parts: Mapping[str, Part],
    cluster: str | None,
    workers: int | None,
    sizes: Sizes,
    state: SweepState,
    report: SweepCallback,
    device: DeviceName,
) -> None:
    """Compute what is missing; what turns out to be missing only then (a refused exact part), next."""
    missing = {key for key, _ in index.missing(needs)}
    if not missing:
        return
    sampled_only = all(parts[key].kind == "runs" for key in missing)
    if cluster is None and device == "auto" and not sampled_only:
        device = "cpu"  # processes would share the card
    with _engine(cluster, 1 if device == "gpu" else workers, sampled_only) as engine:
        while missing:
            run(index, needs, parts, engine, sizes, state, report, device)
            missing = {key for key, _ in index.missing(needs)}


def _engine(cluster: str | None, workers: int | None, sampled_only: bool) -> TaskRunner:
    if cluster is None:
        return local_engine(workers, sampled_only)
    from cloneproof.sweeps.execution.cluster import Cluster

    return Cluster(cluster)


def _table(points: list[GridPoint], needs: list[Need], index: Index) -> dict[str, list[Any]]:
    builder = TableBuilder()
    for point, need in zip(points, needs, strict=True):
        builder.add(point, answer(point, need, index))
    return builder.columns
