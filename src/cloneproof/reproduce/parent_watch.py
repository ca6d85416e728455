"""A worker that ends with the process that started it, even if that one was killed and could not say so."""

from __future__ import annotations

import os
import threading
from multiprocessing import parent_process


def end_with_parent() -> None:
    """Watch the parent from a thread of its own, and leave at once when it is gone."""
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
