"""The statistics of a log in a file beside it, found again by what the log contains and what was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from cloneproof._files import write_whole
from cloneproof._version import __version__
from cloneproof.logs.log import Log, LoggedArm
from cloneproof.logs.reader.columns import LogColumns
from cloneproof.logs.reader.faults import Fault
from cloneproof.logs.reader.propensities import PropensitySums

FORMAT: Final = 1


def cache_place(files: Sequence[Path], question: object) -> Path | None:
    """The file for this content and question; None where there is no file to stand beside."""
    if not files:
        return None
    digest = hashlib.sha256(f"{FORMAT} {__version__} {question!r}".encode())
    with ThreadPoolExecutor(2) as pool:
        for file, content in zip(files, pool.map(_content, files), strict=True):
            digest.update(f"{file.name} {content}".encode())
    return files[0].parent / f".cloneproof-{digest.hexdigest()[:32]}.json"


def _content(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def load_cached(place: Path) -> Log | None:
    """The log of that file; None where there is none or where it cannot be read."""
    try:
        data = json.loads(place.read_text(encoding="utf-8"))
        return _log(data)
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, RecursionError):
        return None


def save_cached(log: Log, place: Path, note: Callable[[str], None]) -> None:
    """Write it, whole or not at all; a folder that may not be written is no fault of the log."""
    try:
        write_whole(place, json.dumps(_data(log)))
    except OSError:
        note("the statistics are not kept beside the log, since its folder may not be written")


def _data(log: Log) -> dict[str, Any]:
    return {
        "arms": [
            [a.agent, a.arm, a.rounds, str(a.total), str(a.squares), a.first, a.last, dict(a.features)]
            for a in log.arms
        ],
        "rows": log.rows, "low": str(log.low), "high": str(log.high), "columns": asdict(log.columns),
        "faults": [asdict(fault) for fault in log.faults], "notes": log.notes, "exact": log.exact,
        "places": log.places, "propensities": [asdict(each) for each in log.propensities],
    }  # fmt: skip


def _log(data: dict[str, Any]) -> Log:
    arms = [
        LoggedArm(agent, arm, int(rounds), Fraction(total), Fraction(squares), first, last,
                  {key: tuple(value) if isinstance(value, list) else value for key, value in features.items()})
        for agent, arm, rounds, total, squares, first, last, features in data["arms"]
    ]  # fmt: skip
    columns: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in data["columns"].items()
    }
    return Log(
        arms=tuple(arms),
        rows=int(data["rows"]),
        low=Fraction(data["low"]),
        high=Fraction(data["high"]),
        columns=LogColumns(**columns),
        faults=tuple(Fault(**fault) for fault in data["faults"]),
        notes=tuple(data["notes"]),
        exact=str(data["exact"]),
        places=tuple(data["places"]),
        propensities=tuple(PropensitySums(**each) for each in data["propensities"]),
        cached=True,
    )
