"""Wall clocks that tests turn, and one thread, so that what ends by time is the same on every machine."""

from contextlib import contextmanager
from itertools import count

import pytest

from cloneproof._lib.clock import wall_clock
from cloneproof.runs.sampler import InlineExecutor


def ticking(seconds):
    """A clock that each look at it moves by so many seconds: a busy machine, if they are many."""
    looks = count()
    return wall_clock(lambda: seconds * next(looks))


class TurnedClock:
    """A clock that only the test turns."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@contextmanager
def one_thread():
    """Chunks of runs are drawn in this thread, so that looks at a clock have one order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloneproof.runs.sampler.in_thread", InlineExecutor().submit)
        yield
