"""A Dask cluster as the place where tasks run (the extra `cloneproof[cluster]`); nothing else imports Dask.

Dask gives a task of a worker that died to another one. Versions are compared beforehand with all workers that are
there, and by every task with its own, since workers may join later.
"""

from __future__ import annotations

import time
from concurrent.futures import CancelledError, Future
from functools import partial
from types import TracebackType
from typing import Any, Self

from cloneproof.errors import SweepError
from cloneproof.sweeps.code_version import code_version
from cloneproof.sweeps.execution.local import TaskResult
from cloneproof.sweeps.execution.tasks import attempt, wrong_version

CONNECT_SECONDS = 10
COUNT_SECONDS = 2.0  # how old a count of the workers may be


class Cluster:
    """A running Dask scheduler, by its address."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise SweepError(
                "expected Dask for a cluster, which is not installed; install it with pip install 'cloneproof[cluster]'"
            ) from None
        self.address = address
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError, ImportError) as problem:
            raise SweepError(
                f"expected a Dask scheduler at {address}, got no answer within {CONNECT_SECONDS} s "
                f"({type(problem).__name__}); start one with `dask scheduler`, or check address and firewall"
            ) from None
        self._counted, self._count = -COUNT_SECONDS, 0
        self._flying: set[Any] = set()
        try:
            self._refuse_other_versions()
        except BaseException:
            self._client.close()
            raise

    def workers(self) -> int:
        """The threads of all workers now; 1 while there are none, so that something waits for the first to come."""
        if time.monotonic() - self._counted >= COUNT_SECONDS:
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            self._counted, self._count = time.monotonic(), sum(worker["nthreads"] for worker in workers)
        return max(1, self._count)

    def submit(self, *task: Any) -> TaskResult:  # noqa: ANN401
        """Start a task."""
        result: TaskResult = Future()
        there = self._client.submit(attempt, *task, pure=False)
        self._flying.add(there)
        there.add_done_callback(partial(self._pass_on, result))
        return result

    def _pass_on(self, result: TaskResult, there: Any) -> None:  # noqa: ANN401
        """A task is done. It is let go at once: what the client still holds, Dask computes again for a dead worker."""
        try:
            value = there.result()
        except CancelledError:
            result.cancel()
            result.set_running_or_notify_cancel()
        except BaseException as problem:
            result.set_exception(problem)
        else:
            there.release()
            result.set_result(value)
        self._flying.discard(there)

    def stop(self) -> bool:
        """Tasks elsewhere see no flag of ours."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.cancel(list(self._flying))  # the cluster itself is not ours to end
        self._client.close()

    def _refuse_other_versions(self) -> None:
        ours = code_version()
        for worker, theirs in sorted(self._client.run(_version_of_worker, on_error="return").items()):
            if theirs != ours:
                raise SweepError(wrong_version(f"the worker {worker}", str(theirs), ours))


def _version_of_worker() -> str:
    """The version where it runs; sent by value, since a worker of another version may not have this file."""
    try:
        from cloneproof.sweeps.code_version import code_version as theirs

        return theirs()
    except ImportError:
        from importlib.metadata import PackageNotFoundError, version

        try:
            return f"cloneproof {version('cloneproof')}, without sweeps"
        except PackageNotFoundError:
            return "no cloneproof at all"


_version_of_worker.__module__ = "__main__"  # which cloudpickle takes to mean: by value
