"""Names that were in `cloneproof` itself up to 0.1.0: they work for one more version and say where they are now."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

_PLACES = {
    "cloneproof.paper": (
        "Instance", "check_permutation_invariance", "check_trp", "evaluate_horizons", "rp_regret", "simulate_runs",
        "summarise",
    ),
    "cloneproof.parts": ("Doubling", "HoldOut", "Rule", "Sample"),
    "cloneproof.results": ("Audit", "Estimate", "Evaluation", "Gain", "SweepTable", "Witness", "write_replay"),
}  # fmt: skip
MOVED = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """The object that was called `cloneproof.<name>`, with a warning; for `cloneproof/__init__.py`."""
    if name not in MOVED:
        raise AttributeError(f"module 'cloneproof' has no attribute {name!r}")
    place = MOVED[name]
    short = place.replace("cloneproof", "cp")
    warnings.warn(
        f"cp.{name} has moved to {short}.{name}; the old name goes with the next version",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(import_module(place), name)
