"""A lock beside a file, `FILE.lock`, held as long as the process lives: two writers would each write another ledger.

The lock file is removed with the lock. Between opening and locking it, another process may have removed it; a lock on a
removed file keeps nobody out, so it is made again.
"""

from __future__ import annotations

import fcntl
import os

from cloneproof.errors import ServeError


class FileLock:
    """The lock of one path; refused where another process has it."""

    def __init__(self, path: str) -> None:
        self._path = path + ".lock"
        while True:
            try:
                self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as problem:
                raise ServeError(
                    f"{path!r} cannot be locked ({problem.strerror}); name a file in a folder that may be written"
                ) from None
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._handle)
                raise ServeError(
                    f"{path!r} is already served by another process; stop it, or name another file"
                ) from None
            if self._is_current():
                return
            os.close(self._handle)

    def _is_current(self) -> bool:
        """Whether the file that is locked is still the one of that name."""
        try:
            return os.path.samestat(os.fstat(self._handle), os.stat(self._path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Remove the lock file, then release the lock."""
        os.unlink(self._path)
        os.close(self._handle)
