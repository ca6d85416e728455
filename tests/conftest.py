"""Fixed seeds, so that a failure can be had again; interrupts that arrive; a browser for tests of pages."""

import signal
from functools import cache

import pytest
import typer.main
from hypothesis import settings

from support.sizes import EXAMPLES

# A run in the background (`nohup make test &`) ignores Ctrl-C, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

typer.main.get_command = cache(typer.main.get_command)  # once a process, and not at each of hundreds of calls

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("fixed")


@pytest.fixture(scope="module")
def browser():
    """Chromium, for the tests of one module (see browser.py)."""
    from support.browser import launched

    with launched() as running:
        yield running
