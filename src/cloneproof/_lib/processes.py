"""Worker processes that end with the process that started them, however it ends."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process


def process_pool(count: int) -> ProcessPoolExecutor:
    """Return a pool of spawned processes; threads and compiled code do not survive a fork."""
    return ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """Make Ctrl-C, and the end of the driver, end a worker silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
