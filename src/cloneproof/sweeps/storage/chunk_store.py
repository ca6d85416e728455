"""The store: a folder of chunks, each whole or not there, each known to be undamaged before it is used.

    store.json                       the layout's number and the code version that wrote the store
    chunks/ab/ab12..-0-4096          a chunk: the key of its part, the first run, the number of runs
    sweeps/..json                    what each sweep needs, so that `--status` can say what is missing
    sweep.log                        one line a minute

A chunk is written to a temporary file and renamed, and begins with a checksum of its name and contents. That is why
nothing is forced to the disk: what a power cut leaves behind is found out, named, and computed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import NamedTuple

from cloneproof._files import checked_path, write_whole
from cloneproof.errors import SweepError

FORMAT = 1
_MAGIC = b"cloneproof chunk 1 "
_DIGEST = 32  # hexadecimal digits
_NAME = re.compile(r"([0-9a-f]{32})-(\d+)-(\d+)")
_PARTIAL = ".partial-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_DAY = 86_400.0


class StoredChunk(NamedTuple):
    """The identity of a chunk: a hash of configuration and code version, and a range of runs (0, 0: the whole part)."""

    key: str
    first: int
    runs: int

    @property
    def name(self) -> str:
        """The name of its file.

        >>> StoredChunk("ab" * 16, 64, 100).name
        'abababababababababababababababab-64-100'
        """
        return f"{self.key}-{self.first}-{self.runs}"

    @property
    def stop(self) -> int:
        """The first run after it."""
        return self.first + self.runs


class DamagedChunk(SweepError):  # noqa: N818 (a finding, not a failure: it is computed again)
    """A chunk whose contents are not what was written."""

    def __init__(self, chunk: StoredChunk, path: str, what: str = "whose checksum fails") -> None:
        super().__init__(f"expected an undamaged chunk, got {path}, {what}; run the sweep again")
        self.chunk = chunk


class Store:
    """Chunks in a folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version
        self._chunks = str(folder / "chunks")
        self._token, self._numbers = secrets.token_hex(8), count()  # several drivers may write to one store

    def path(self, chunk: StoredChunk) -> str:
        """Where a chunk is (a string: there may be very many)."""
        return f"{self._chunks}/{chunk.key[:2]}/{chunk.name}"

    def write(self, chunk: StoredChunk, payload: bytes) -> None:
        """Store a chunk; a full disk is one sentence, and leaves nothing behind."""
        path = self.path(chunk)
        folder = f"{self._chunks}/{chunk.key[:2]}"
        temporary = f"{folder}/{_PARTIAL}{self._token}-{next(self._numbers)}"
        data = b"".join([_MAGIC, _digest(chunk, payload), b"\n", payload])
        try:
            try:
                handle = os.open(temporary, _NEW, 0o666)
            except FileNotFoundError:
                os.makedirs(folder, exist_ok=True)
                handle = os.open(temporary, _NEW, 0o666)
            try:
                try:
                    _write_all(handle, data)
                finally:
                    os.close(handle)
                os.replace(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as problem:
            raise SweepError(
                f"expected room for a chunk in {self.folder}, got: {problem.strerror or problem}; make room and run "
                "the same command again: what is stored is kept, and it goes on from there"
            ) from None

    def read(self, chunk: StoredChunk) -> bytes:
        """The contents of a chunk; `DamagedChunk` where they are not what was written."""
        path = self.path(chunk)
        try:
            with open(path, "rb", buffering=0) as file:
                data = file.read()
        except OSError:
            raise DamagedChunk(chunk, path) from None
        start = len(_MAGIC) + _DIGEST + 1
        payload = data[start:]
        if data[:start] != b"".join([_MAGIC, _digest(chunk, payload), b"\n"]):
            raise DamagedChunk(chunk, path)
        return payload

    def discard(self, chunk: StoredChunk) -> None:
        """Remove a damaged chunk; what is no file is left to whoever made it."""
        try:
            Path(self.path(chunk)).unlink(missing_ok=True)
        except OSError as problem:
            raise SweepError(
                f"expected a chunk in {self.path(chunk)}, got something that cannot be removed "
                f"({problem.strerror or problem}); remove it and run the same command again"
            ) from None

    def chunks(self) -> Iterator[StoredChunk]:
        """Every chunk, by the names of the files alone."""
        for folder in sorted(_listed(self._chunks)):
            for name in _listed(f"{self._chunks}/{folder}"):
                match = _NAME.fullmatch(name)
                if match is not None:
                    yield StoredChunk(match[1], int(match[2]), int(match[3]))

    def tidy(self) -> None:
        """Remove temporary files that killed drivers left behind; those of a day may still be in use."""
        for path in self.folder.glob(f"chunks/*/{_PARTIAL}*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _DAY:
                    path.unlink()


def open_store(folder: str | Path, version: str) -> Store:
    """The store in the folder, made where there is none; refused where another version wrote it."""
    path = checked_path(folder)
    try:
        written = stored_version(path)
        if written is None:
            path.mkdir(parents=True, exist_ok=True)
            write_whole(path / "store.json", json.dumps({"format": FORMAT, "version": version}) + "\n")
    except OSError as problem:
        raise SweepError(f"expected a folder for the store, got {folder}: {problem}; choose another") from None
    if written not in (None, version):
        raise SweepError(
            f"expected a store of this version ({version}), got {folder}, written by another ({written}); its results "
            "may differ, so give a new folder, or install the version that wrote it"
        )
    return Store(path, version)


def stored_version(folder: Path) -> str | None:
    """The code version that wrote the store; None for a folder that is missing or empty."""
    header = folder / "store.json"
    if not header.exists():
        others = [path for path in folder.iterdir() if path.name[0] != "."] if folder.is_dir() else []
        if others and not header.exists():  # another driver may be making the store right now
            raise SweepError(
                f"expected a store or an empty folder, got {folder} with other files in it; choose a new one"
            )
        return None
    try:
        data = json.loads(header.read_text(encoding="utf-8"))
        number, version = data["format"], str(data["version"])
    except (OSError, ValueError, KeyError, TypeError):
        raise SweepError(f"expected the header of a store in {header}, got something else; restore the file") from None
    if number != FORMAT:
        raise SweepError(
            f"expected a store of layout {FORMAT}, got layout {number} in {folder}, written by {version}; "
            "use that version, or a new folder"
        )
    return version


def _listed(folder: str) -> list[str]:
    """The names in a folder; none in a stray file, nor where there is nothing."""
    return os.listdir(folder) if os.path.isdir(folder) else []


def _digest(chunk: StoredChunk, payload: bytes) -> bytes:
    digest = blake2b(chunk.name.encode(), digest_size=_DIGEST // 2)
    digest.update(payload)
    return digest.hexdigest().encode()


def _write_all(handle: int, data: bytes) -> None:
    """All of it: a disk that fills up may take a part first."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
