"""Threads for what takes long, so that the writer's event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from cloneproof.errors import Refused

MOST_COMPUTATIONS: Final = 100  # that wait for their thread

log = logging.getLogger("cloneproof.serve")


def log_failure(what: str, problem: Exception) -> None:
    """Log one line if the database is unreachable, and a traceback for anything else."""
    if isinstance(problem, Refused):
        log.warning("%s (%s)", what, problem)
    else:
        log.exception(what)


async def _run_in(pool: ThreadPoolExecutor, work: Callable[[], Any]) -> Any:  # noqa: ANN401
    return await asyncio.get_running_loop().run_in_executor(pool, work)


class Threads:
    """One thread for each kind of work, so that none waits behind another: `await threads.read(work)`.

    storage    one step of the storage
    read       reading from storage while it writes
    market     work that a market waits for
    compute    long work for a caller that changes nothing
    """

    def __init__(self) -> None:
        self._pools = [ThreadPoolExecutor(1, name) for name in ("storage", "reader", "market", "compute")]
        self.storage, self.read, self.market, self._compute = (partial(_run_in, pool) for pool in self._pools)
        self._computations = 0

    async def compute(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        if self._computations >= MOST_COMPUTATIONS:
            raise Refused(503, "overloaded", "too much long work is waiting; try again a little later")
        self._computations += 1
        try:
            return await self._compute(work)
        finally:
            self._computations -= 1

    def close(self) -> None:
        """Wait for running work; computations that have not begun are dropped."""
        for pool in reversed(self._pools):
            pool.shutdown(cancel_futures=pool is self._pools[-1])
