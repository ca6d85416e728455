"""Store of a sweep: one file of finished points, a line of JSON each, [key, answer].

A line is written whole with one call as soon as its point is finished, so that a sweep that dies loses only what was
being computed; the line that a crash or a full disk has cut is taken away when the file is opened again. Several sweeps
of one machine may write to a file at the same time. Keys hold the code version, so that a file may have answers of
several.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from cloneproof._lib.files import checked_path
from cloneproof.errors import SweepError
from cloneproof.sweeps.tasks import Answer


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
