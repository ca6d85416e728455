"""Waiting for what another process does."""

import time


def eventually(what, seconds: float = 60.0):
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)
