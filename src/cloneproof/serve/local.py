"""A service in a process of its own on this machine, for demonstrations, documents and trials."""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import Final, Self

from cloneproof.errors import ServeError

_COMMAND: Final = [sys.executable, "-c", "from cloneproof.cli import main; main()"]


class LocalService:
    """`cloneproof serve` over a file, on a free loopback port; it ends with `stop`, or with its block.

    Ctrl-C does not reach its process: what is under way in this one can be finished first.
    """

    def __init__(self, place: str) -> None:
        self._process = subprocess.Popen(
            [*_COMMAND, "serve", place, "--port", "0"], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()  # printed when it listens
        except BaseException:
            self.stop()
            raise
        if not line:
            self.stop()
            raise ServeError(f"the service over {place!r} did not start; it has said why")
        self.address = line.split()[-1]

    def stop(self) -> None:
        """End it; what it has acknowledged is in the file."""
        self._process.terminate()
        self._process.communicate(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
