"""A job, a chunk of its runs and its rewards as records for the kernels."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from cloneproof._lib.arrays import FloatArray, WordArray
from cloneproof._lib.ticks import LARGEST, ONE
from cloneproof.market.rewards import FamilyLaw, RewardFamily
from cloneproof.mechanisms.bandits.own_rules import compiled_quantile
from cloneproof.runs.job import Job
from cloneproof.runs.native.library import KernelRecord, record
from cloneproof.runs.results import RunResults, arm_table, first_arms

FAMILIES: Final[tuple[FamilyLaw, ...]] = ("coin", "point", "normal", "beta", "own")
"""In the order of `rewards.h`."""
ORDERS: Final = {"round-robin": 0, "block": 1, "index": 2}
SCIPY: Final = {"normal": "ndtri", "beta": "__pyx_fuse_0betaincinv"}  # fuse 0: the one for doubles


def arms_record(job: Job, flat: bool) -> KernelRecord:
    """Return `Arms` of the header of runs."""
    table = arm_table(job, flat)
    columns = {name: np.ascontiguousarray(table[name]) for name in ("agent", "original", "copy", "column", "key")}
    market = job.market
    return record(
        "Arms", agents=len(market.agents), arms=len(table), originals=market.originals,
        places=max(1, len(market.places)), **columns, first=first_arms(job),
    )  # fmt: skip


def chunk_record(means: FloatArray, streams: WordArray, results: RunResults) -> KernelRecord:
    """Return `Chunk` of the header of runs."""
    return record(
        "Chunk", runs=len(streams), means=np.ascontiguousarray(means), streams=np.ascontiguousarray(streams),
        payoff=results.payoff, views=results.views,
    )  # fmt: skip


def family_record(job: Job, unit: float | None = None) -> KernelRecord:
    """Return `Family` of `rewards.h`; the job's family compiles (`own.compiles`)."""
    family = job.market.family
    return record(
        "Family",
        which=FAMILIES.index(family.law),
        parameter=float(family.parameters[0]) if family.law in SCIPY else 0.0,
        quantile=_quantile(family),
        low=family.low, high=family.high, unit=unit or unit_of(job),
        values=np.array(family.values or (), np.float64), count=len(family.values or ()), largest=float(LARGEST),
    )  # fmt: skip


def unit_of(job: Job) -> float:
    """Return the unit in which rewards are whole numbers: 1 for coins, and where all rewards are sure and whole."""
    law, agents = job.market.family.law, job.market.agents
    whole = law == "coin" or (law == "point" and all(m % 1.0 == 0.0 for a in agents for m in a.support or (0.5,)))
    return 1.0 if whole else float(ONE)


def _quantile(family: RewardFamily) -> int:
    """Return the address of a function of SciPy or of somebody's own; 0 where none is called."""
    if family.law == "own":
        return compiled_quantile(family.quantile, family.parameters)
    if family.law not in SCIPY:
        return 0
    from scipy.special import cython_special

    capsule: Any = cython_special.__pyx_capi__[SCIPY[family.law]]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))
