"""A quicker conformance suite."""

import pytest

from support.sizes import LONG


@pytest.fixture(autouse=not LONG)
def quick(fewer_seeds):
    """Ties are judged from fewer seeds, except in `make test-long`."""
