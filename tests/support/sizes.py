"""How much `make test` tries, and how much `make test-long`."""

import os

LONG = bool(os.environ.get("CLONEPROOF_LONG"))
EXAMPLES = 100 if LONG else 10
"""How many examples Hypothesis tries of a property, unless a test says otherwise."""
