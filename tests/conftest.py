"""Fixed seeds, so that a failure can be had again; interrupts that arrive; a clock of CPU time; a browser."""

import gc
import math
import signal
from functools import cache

import pytest
import typer.main
from hypothesis import settings

from cloneproof.cli import output
from support.clocks import one_thread, ticking
from support.sizes import EXAMPLES

# A run in the background (`nohup make test &`) ignores Ctrl-C, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

gc.set_threshold(50_000)  # searching all that is imported for cycles took a tenth of the time


def pytest_collection_finish():
    """What is imported by now stays, and is not searched again."""
    gc.freeze()


def pytest_unconfigure():
    """Extension modules complain at exit if what is frozen is never freed."""
    gc.unfreeze()


# On a busy machine a command of ten seconds would say how far it is, and tests look at all that it writes to stderr.
output.PAUSE = math.inf

typer.main.get_command = cache(typer.main.get_command)  # once a process, and not at each of hundreds of calls

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("fixed")


@pytest.fixture(scope="module")
def ticking_clock():
    """A clock that each look at it moves by a millisecond, and one thread: budgets are the same on every machine."""
    with ticking(0.001), one_thread():
        yield


@pytest.fixture
def fewer_seeds(monkeypatch):
    """The conformance suite judges ties and chances from fewer seeds, and finds larger faults only."""
    monkeypatch.setattr("cloneproof.evaluation.conformance.PICKS", 100)
    monkeypatch.setattr("cloneproof.paper.permutations.TIE_SEEDS", 120)


@pytest.fixture(scope="module")
def browser():
    """Chromium, for the tests of one module (see browser.py)."""
    from support.browser import launched

    with launched() as running:
        yield running
