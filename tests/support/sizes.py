"""How much `make test` tries, and how much `make test-long`."""

import os

import pytest

LONG = bool(os.environ.get("CLONEPROOF_LONG"))
EXAMPLES = 100 if LONG else 10
"""How many examples Hypothesis tries of a property, unless a test says otherwise."""
AT_LENGTH = pytest.mark.skipif(not LONG, reason="at length: make prove, make test-long")
"""A check of a lemma that takes long; others of the same chapter stand in for it in `make test`."""
