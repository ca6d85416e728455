"""A Dask cluster as an executor: one that runs, by its address, or one that is started on this machine.

Dask comes with the extra `cloneproof[cluster]` and is imported only when a cluster is asked for. Its scheduler gives
the tasks of a worker that died to another one.
"""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager

from cloneproof._lib.checks import count
from cloneproof.errors import SweepError, brief


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Yield the workers of the scheduler at tcp://HOST:PORT; or `local:N`, N processes that end with the block.

    Those have one thread each, since engines hold Python's lock where no kernel does the work.
    """
    local = re.fullmatch(r"local:(\d+)", address)
    if not local and not re.fullmatch(r"\w+://\S+:\d+/?", address):
        raise SweepError(f"expected a cluster as tcp://HOST:PORT or local:N, got {brief(address)}; give one of them")
    number = count(int(local[1]), "the number of workers of a cluster", most=1000, error=SweepError) if local else 0
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise SweepError("expected Dask for a cluster, got none; pip install 'cloneproof[cluster]'") from None
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # a sweep says in one sentence what failed
    with ExitStack() as opened:
        place: object = address
        if local:
            quiet = {"dashboard_address": None, "silence_logs": logging.ERROR}
            place = opened.enter_context(LocalCluster(n_workers=number, threads_per_worker=1, **quiet))
        try:
            client = Client(place, set_as_default=False)
        except (OSError, ValueError, ImportError) as problem:  # no answer in time, no address, no such protocol
            raise SweepError(
                f"expected a Dask scheduler at {address}, got {type(problem).__name__}; start one with "
                "`dask scheduler`, or check address and firewall"
            ) from None
        executor = opened.enter_context(client).get_executor(pure=False)
        if local:
            client.run(_ignore_interrupts)
        try:
            yield executor
        except KeyboardInterrupt:
            opened.pop_all()  # closing would wait for running tasks; these processes end with this one
            raise


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which reaches every process of a terminal; the driver alone answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
