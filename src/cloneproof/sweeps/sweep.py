"""`cp.sweep`: a grid, a store, and one table at the end.

1. Every point of the grid is made and checked (`grid`); its parts get their keys (`tasks`).
2. The store says what it has of them, every digest looked at (`store`); what is damaged is removed.
3. What is missing is computed, chunk by chunk, each stored as it comes (`driver`).
4. The answers are made from what is stored (`table`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cloneproof._sources import code_version
from cloneproof.engines.monte_carlo.sampler import DeviceName, checked_device
from cloneproof.errors import SweepError, brief
from cloneproof.sweeps import driver
from cloneproof.sweeps.driver import Driver, Interrupted, ProgressLog, Sizes, SweepCallback, SweepState
from cloneproof.sweeps.grid import GridPoint, load_grid, points_of
from cloneproof.sweeps.store import LOG, DamagedChunk, Need, Store, open_store, read_index
from cloneproof.sweeps.table import EstimateSummary, SweepTable, answer, point_rows, sweep_table
from cloneproof.sweeps.tasks import Part


def sweep(
    grid: str | Path | Mapping[str, Any],
    store: str | Path,
    *,
    workers: int | None = None,
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
        How many threads or processes; as many as there are cores if left out.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Where runs are drawn, with the same bits, so that a store may be begun on a GPU and completed on a CPU. "gpu"
        has one worker for the card; "auto" takes one where that pays.
        Audits of a sweep are drawn on the CPU.
    rules : collection of str, optional
        The MODULE:NAME of own rules that the grid may ask for. Importing one runs its module, so a grid alone cannot.
    progress : callable, optional
        Called with the state, about twice a second.
    sizes : Sizes, optional
        How long chunks take. The bits of the table depend neither on these nor on workers or interruptions.

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
    driver.checked_workers(workers)
    device = checked_device(device)
    if not isinstance(grid, str | Path | Mapping):
        raise SweepError(f"expected a grid file or a mapping like one, got {brief(grid)}; see docs/sweeps.md")
    points = points_of(grid, rules=rules) if isinstance(grid, Mapping) else load_grid(grid, rules)
    name = "a mapping" if isinstance(grid, Mapping) else str(grid)
    with open_store(store, code_version()) as shelf:
        log = ProgressLog(shelf.folder / LOG)

        def report(now: SweepState) -> None:
            log(now)
            if progress is not None:
                progress(now)

        try:
            return _answered(points, name, shelf, sizes or Sizes(), (workers, device), log, report)
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
    place: tuple[int | None, DeviceName],
    log: ProgressLog,
    report: SweepCallback,
) -> SweepTable:
    """The table, after what is missing was computed; what turns out to be missing only then, next."""
    parts, needs = parts_by_key(points, store.version)
    store.record_sweep(name, needs)
    index, damaged = read_index(store, parts)
    for chunk in damaged:
        store.discard(chunk)
        log.say(f"damaged, computed again: {chunk.name}")
    state = SweepState(len(points), len(parts), 0, sum(map(len, index.chunks.values())))
    log.say(f"{name}: {len(points)} points, {state.reused} chunks there, {len(damaged)} damaged")
    missing = index.missing(needs)
    if missing:
        workers, device = place
        sampled_only = all(parts[key].kind == "runs" for key in missing)
        if device == "auto" and not sampled_only:
            device = "cpu"  # processes would share the card
        with driver.this_machine(1 if device == "gpu" else workers, sampled_only) as somewhere:
            while index.missing(needs):
                Driver(index, needs, parts, sizes, state, report).run(somewhere, device)
    pairs = zip(points, needs, strict=True)
    rows = [row for point, need in pairs for row in point_rows(point, answer(point, need, index))]
    done = f": {state.line}" if state.chunks else ", nothing was missing"
    log.say(f"done in {driver.duration(state.seconds)}{done}")
    names, times = tuple(chunk.name for chunk in damaged), (state.seconds, state.busy_seconds)
    return sweep_table(rows, EstimateSummary(len(points), state.reused, state.chunks, state.runs, names, *times))


def parts_by_key(points: list[GridPoint], version: str) -> tuple[dict[str, Part], list[Need]]:
    """Every part by its key, and what each point needs of them."""
    parts: dict[str, Part] = {}
    needs = []
    for point in points:
        whole, runs = point.parts()
        sampled = {part.key(version): part for part in runs}
        key = "" if whole is None else whole.key(version)
        parts |= sampled if whole is None else sampled | {key: whole}
        needs.append(Need(key, tuple(sampled), point.runs_needed))
    return parts, needs
