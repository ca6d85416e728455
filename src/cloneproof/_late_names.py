"""Names of `cloneproof` that are loaded when they are first asked for, and names that have moved.

What was in `cloneproof` itself up to 0.1.0 works for one more version, with a warning that says where it is now.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

LATE = {  # name: the module that has it, or that it is
    "adapters": "cloneproof.adapters",
    "check_mechanism": "cloneproof.analysis.properties.conformance",
    "equilibrium": "cloneproof.analysis.equilibrium.api",
    "paper": "cloneproof.paper",
    "read_log": "cloneproof.logs.reader.reading",
    "recommend": "cloneproof.advice.recommend",
    "results": "cloneproof.results",
    "sweep": "cloneproof.sweeps.sweep",
    "verify": "cloneproof.analysis.verify",
    "write_certificate": "cloneproof.analysis.certificate",
}

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
    """What `cloneproof.<name>` is, for `cloneproof/__init__.py`."""
    if name in LATE:
        module = import_module(LATE[name])
        value = module if module.__name__ == f"cloneproof.{name}" else getattr(module, name)
        setattr(import_module("cloneproof"), name, value)  # the next time it is there
        return value
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
