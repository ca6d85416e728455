"""Worker processes: fresh ones, which end with the process that started them, however that one ends."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process


def process_pool(count: int) -> ProcessPoolExecutor:
    """That many processes; spawned, not forked, as threads and compiled code do not survive a fork."""
    return ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """Ctrl-C ends a worker at once and without a word: the driver speaks for all. So does the driver's own end."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
