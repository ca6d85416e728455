"""Fixed seeds for every property test, so that a failure can be had again; a browser for tests of pages."""

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("fixed")


@pytest.fixture(scope="module")
def browser():
    """Chromium, for the tests of one module (see browser.py)."""
    from support.browser import launched

    with launched() as running:
        yield running
