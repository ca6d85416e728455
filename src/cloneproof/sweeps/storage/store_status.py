"""What a store has: for each sweep that used it, what is done and missing; and every chunk that is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cloneproof.errors import SweepError
from cloneproof.sweeps.storage.chunk_store import Store, stored_version
from cloneproof.sweeps.storage.missing_parts import Index, Need, needs_from_json, read_index


@dataclass(frozen=True)
class SweepStatus:
    """A sweep: its points, those with all they need, and the results and runs that are missing."""

    grid: str
    points: int
    done: int
    missing_results: int
    missing_runs: int


@dataclass(frozen=True)
class StoreStatus:
    """A store: who wrote it, its chunks, the damaged ones by their files, and its sweeps."""

    folder: str
    version: str
    chunks: int
    runs: int
    damaged: tuple[str, ...]
    sweeps: tuple[SweepStatus, ...]

    @property
    def complete(self) -> bool:
        """Whether no sweep misses anything."""
        return all(each.done == each.points for each in self.sweeps)


def store_status(folder: str | Path) -> StoreStatus:
    """Look at everything in a store, of whichever version; nothing is changed."""
    path = Path(folder)
    version = stored_version(path) if path.is_dir() else None
    if version is None:
        raise SweepError(f"expected the folder of a store, got {folder}, which has none; check the path")
    store = Store(path, version)
    index, damaged = read_index(store)
    sweeps = tuple(_sweep(file, index) for file in sorted(path.glob("sweeps/*.json")))
    every = [chunk for chunks in index.chunks.values() for chunk in chunks]
    runs = sum(chunk.runs for chunk in every)
    files = tuple(store.path(chunk) for chunk in damaged)
    return StoreStatus(str(folder), version, len(every) + len(damaged), runs, files, sweeps)


def _sweep(file: Path, index: Index) -> SweepStatus:
    try:
        name, text = file.read_text(encoding="utf-8").split("\n", 1)
        needs = needs_from_json(text)
    except (OSError, ValueError):
        raise SweepError(f"expected the record of a sweep in {file}, got something else; delete the file") from None
    missing = dict(index.missing(needs))
    runs = sum(stop - first for ranges in missing.values() for first, stop in ranges)
    whole = sum(1 for ranges in missing.values() if not ranges)
    done = sum(1 for need in needs if _is_done(need, index, missing))
    return SweepStatus(name, len(needs), done, whole, runs)


def _is_done(need: Need, index: Index, missing: dict[str, list[tuple[int, int]]]) -> bool:
    if need.whole and need.whole not in index.refused:
        return False
    if not need.answered_by_sampling(index.refused.get(need.whole)):
        return True
    return all(key not in missing or not index.gaps(key, need.runs) for key in need.sampled)
