"""Work beside the groups: threads for what takes long, and markets that are held until such work is done.

A held market does not change and its calls wait, while all other markets go on. Markets are held while a snapshot of
them is taken and while they are read back. They are released between two groups only, so no group sees a change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from cloneproof.errors import Refused
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.writer.markets import ServedMarkets
from cloneproof.serve.writer.queue import RoundRobin

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


class Background:
    """Threads and tasks beside the groups; they wake the writer when there is something for it to do."""

    def __init__(self, queue: RoundRobin, tick: float) -> None:
        self.threads, self.tick = Threads(), tick
        self.wake, self.stopping = asyncio.Event(), False
        self._queue = queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._released: list[tuple[ServedMarkets, str, LiveMarket]] = []  # held until the next group
        self._watching: asyncio.TimerHandle | None = None

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin a task that ends with the service."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def hold(self, markets: ServedMarkets, name: str, work: Coroutine[Any, Any, LiveMarket | None]) -> None:
        """Hold a market until `work` returns the market to go on with, or for good if that is None."""
        markets.held.add(name)
        self._queue.hold(name)
        self.begin(self._release_after(work, markets, name))

    async def _release_after(
        self, work: Coroutine[Any, Any, LiveMarket | None], markets: ServedMarkets, name: str
    ) -> None:
        market = await work
        if market is not None:
            self._released.append((markets, name, market))
            self.wake.set()

    def take_released(self, markets: ServedMarkets) -> list[tuple[str, LiveMarket]]:
        """Return the markets to release now, without those that were replaced, as all were read back meanwhile."""
        released = [(name, market) for of, name, market in self._released if of is markets]
        self._released.clear()
        return released

    def watch(self, look: Callable[[], None]) -> None:
        """Call `look` now and each tick, also while the threads are being closed."""
        look()
        self._watching = asyncio.get_running_loop().call_later(self.tick, self.watch, look)

    def cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Wait for the threads, while `watch` aborts what takes too long; then end it."""
        await asyncio.get_running_loop().run_in_executor(None, self.threads.close)
        if self._watching is not None:
            self._watching.cancel()
