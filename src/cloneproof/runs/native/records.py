"""A job, a chunk of its runs and its rewards as records for the kernels of the library."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import chain
from typing import Any, Final

import numpy as np

from cloneproof._lib.arrays import FloatArray, WordArray
from cloneproof._lib.ticks import LARGEST, ONE
from cloneproof.laws.logarithm import ENDS, HEIGHTS, WITHIN, ln, log_ratio
from cloneproof.market.rewards import FamilyLaw, RewardFamily
from cloneproof.runs.arrivals import Arrivals
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import CardPlan, Kernel, RunResults, arm_table, filled, first_arms
from cloneproof.runs.native.library import KernelRecord, call, missing, record
from cloneproof.runs.native.own import compiled_quantile

FAMILIES: Final[tuple[FamilyLaw, ...]] = ("coin", "point", "normal", "beta", "own")
"""In the order of `rewards.h`."""
ORDERS: Final = {"round-robin": 0, "block": 1, "index": 2}
NOT_ON_CARDS: Final = "no kernel on the GPU plays this mechanism with these rewards"
IN_BLOCKS: Final = "its rewards are drawn in blocks, which a CPU does at no cost of the horizon"
MEANS_PLAYED: Final = 37  # times the mean of a random end: what comes later weighs e^-37, less than rounding
SCIPY: Final = {"normal": "ndtri", "beta": "__pyx_fuse_0betaincinv"}  # fuse 0: the one for doubles


def native_kernel(
    name: str,
    function: str,
    job: Job,
    records: Callable[[], tuple[KernelRecord, ...]],
    seconds: float,
    card: CardPlan | str = NOT_ON_CARDS,
) -> Kernel:
    """Return the kernel that calls a function of the library with these records, made once for all chunks."""
    made = cache(records)

    def fill(means: FloatArray, streams: WordArray, results: RunResults) -> None:
        if missing() is not None:
            results.payoff[:] = math.nan  # sessions play them
            return
        call(function, *made(), chunk_record(means, streams, results))

    return Kernel(name, partial(filled, fill, job), seconds, card)


def start_seconds(job: Job) -> float:
    """Return the seconds that a run takes before its first round: means are drawn by quantiles."""
    listed = all(agent.support is not None for agent in job.market.agents)
    return 1e-6 + (0.0 if listed else 1e-6 * job.market.originals)


def rounds_of(job: Job) -> tuple[int, float]:
    """Return how many rounds blocks play, and `stays` of `still_open`: at a random end it is integrated out."""
    market = job.market
    if market.ends == "at-horizon" or market.horizon == 1:
        return market.horizon, 0.0
    return MEANS_PLAYED * market.horizon, log_ratio(-1.0 / market.horizon)


def arms_record(job: Job, flat: bool) -> KernelRecord:
    """Return `Arms` of the header of runs."""
    table = arm_table(job, flat)
    columns = {name: np.ascontiguousarray(table[name]) for name in ("agent", "original", "copy", "column", "key")}
    market = job.market
    return record(
        "Arms", agents=len(market.agents), arms=len(table), originals=market.originals,
        places=max(1, len(market.places)), **columns, first=first_arms(job),
    )  # fmt: skip


def arrivals_record(arrivals: Arrivals) -> KernelRecord:
    """Return `Arrivals` of `arrivals.h`."""
    arrays = arrivals.arrays
    points, bins = len(arrays["levels"]), len(arrays["clock"])
    return record("Arrivals", horizon=arrivals.horizon, points=points, bins=bins, **arrays)


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


@lru_cache(maxsize=4)
def logarithm_table(horizon: int) -> FloatArray:
    """Return ln of 0 (minus infinity), 1, .., the horizon, from the one table."""
    return np.fromiter(chain([-math.inf], map(ln, range(1, horizon + 1))), np.float64, horizon + 1)


@lru_cache(maxsize=1)
def ziggurat() -> FloatArray:
    """Return ends and inner parts of the layers in turn, then their heights."""
    layers = np.stack([ENDS, WITHIN], axis=1).ravel()
    return np.concatenate([layers, HEIGHTS])
