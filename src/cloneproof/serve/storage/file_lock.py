"""A lock on a database file, held as long as the process lives: two writers would each write another ledger.

The file itself is locked, so it does not matter by which name it is reached. A file with several names (hard links) is
refused: each name would have a write-ahead log of its own, and what was committed by one is missing by the other.
"""

from __future__ import annotations

import fcntl
import os
from typing import Final

from cloneproof.errors import Refused, ServeError

_held: Final = set[tuple[int, int]]()  # by this process: to open and close such a file again would end SQLite's locks


class FileLock:
    """The lock of one file, which is made if missing, for its owner alone; refused where another process has it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._others: dict[str, int] = {}
        if os.path.exists(path) and _identity(os.stat(path)) in _held:
            raise _already_served(path)
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise ServeError(
                f"{path!r} cannot be opened for writing ({problem.strerror}); name a file that may be written"
            ) from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise _already_served(path) from None
        except OSError as problem:
            os.close(self._handle)
            raise ServeError(
                f"{path!r} cannot be locked ({problem.strerror}); name a file on a disk of this machine"
            ) from None
        found = os.fstat(self._handle)
        if found.st_nlink > 1:
            os.close(self._handle)
            raise ServeError(
                f"expected a file with one name, got {path!r}, which has {found.st_nlink} names (hard links); copy it"
            )
        self._identity = _identity(found)
        _held.add(self._identity)

    def watch(self, path: str) -> None:
        """From now on another file, which must be there, counts as part of this one."""
        self._others[path] = os.stat(path).st_ino

    def check(self) -> None:
        """Refuse to go on where the file was deleted, moved or replaced: what is written now would be lost."""
        try:
            there = _identity(os.stat(self._path)) == self._identity
            there = there and all(os.stat(path).st_ino == number for path, number in self._others.items())
        except OSError:
            there = False
        if not there:
            raise Refused(
                503, "storage", "the database file was deleted, moved or replaced; stop the service and restore it"
            )

    def release(self) -> None:
        """Release the lock; after every connection to the file is closed."""
        _held.discard(self._identity)
        os.close(self._handle)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _already_served(path: str) -> ServeError:
    return ServeError(f"{path!r} is already served by another process; stop it, or name another file")
