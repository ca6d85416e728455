"""A quicker conformance suite, except in `make test-long`."""

import pytest

from cloneproof.analysis.properties import conformance
from support.sizes import LONG


@pytest.fixture(autouse=not LONG)
def fewer_seeds(monkeypatch):
    """Ties are judged from fewer seeds, and by wider limits."""
    monkeypatch.setattr(conformance, "TIE_SEEDS", 300)
