"""Jobs as records for the kernels: `struct Plan` of source/plan.h, field by field."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._randomness import substream
from cloneproof.engines.monte_carlo.blocks.block_plan import ORDERS
from cloneproof.engines.monte_carlo.gpu.kernels import MOST_ARMS
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.randomness.run_means import means_of_runs
from cloneproof.engines.monte_carlo.slots.slot_plan import CONTESTS, KL
from cloneproof.engines.monte_carlo.stepping.engine import logarithm_table
from cloneproof.engines.monte_carlo.ucb.tables.round_tables import bonus
from cloneproof.engines.monte_carlo.ucb.ucb_plan import registered_arms
from cloneproof.market.rewards import deterministic
from cloneproof.mechanisms import beta_variate
from cloneproof.mechanisms.rule import Clock, Rule
from cloneproof.mechanisms.rules import kl_ucb, slow_ucb, thompson, ucb

PlanRecords = npt.NDArray[Any]
Upload = Callable[[npt.NDArray[Any]], int]
"""Copy an array to where the kernels run; its address there."""

LARGEST_INDEX: Final = 2.0**31 - 64.0  # of an index in units; see source/index.h

PLAN: Final = np.dtype(
    [
        ("begin", "i8"), ("count", "i8"), ("first", "i8"), ("seed", "u8"),
        ("horizon", "i8"), ("agents", "i8"), ("originals", "i8"), ("arms", "i8"), ("levels", "i8"), ("flat", "i8"),
        ("constant", "i8"), ("sample", "i8"), ("positions", "i8"),
        ("means", "u8"), ("means_first", "i8"), ("means_rows", "i8"),
        ("original", "u8"), ("copy", "u8"), ("key", "u8"), ("agent_of", "u8"), ("place_of", "u8"),
        ("first_arm", "u8"), ("first_position", "u8"),
        ("arm_exact", "u8"), ("arm_roots", "u8"), ("arm_shift", "i8"), ("arm_scale", "f8"),
        ("agent_exact", "u8"), ("agent_roots", "u8"), ("agent_shift", "i8"), ("agent_scale", "f8"),
        ("thompson", "i8"), ("c", "f8"), ("logarithms", "u8"), ("ziggurat", "u8"),
        ("contest_kl", "i8"), ("arm_explore", "i8"), ("arm_order", "i8"), ("agent_explore", "i8"), ("fresh", "i8"),
        ("scored", "i8"), ("most_arms", "i8"), ("skipped", "u8"),
        ("pulls", "u8"), ("wins", "u8"), ("regret", "u8"), ("served", "u8"),
    ]
)  # fmt: skip


class RunRange(NamedTuple):
    """Runs first, first + 1, .. of a job."""

    job: Job
    first: int
    number: int


class WholeBonus(NamedTuple):
    """The bonus of a rule over its clock, and its root in whole numbers of 1 / scale."""

    exact: FloatArray
    roots: npt.NDArray[np.uint32]
    shift: int
    scale: float


class MeansTable(NamedTuple):
    """The means of runs: run r has row (r - first) modulo the number of rows."""

    rows: FloatArray
    first: int


def record_of(runs: RunRange, begin: int, upload: Upload, means: MeansTable) -> PlanRecords:
    """The record of a range of runs of a job, without the places of its results; `begin` counts the runs before it."""
    job, mechanism = runs.job, runs.job.mechanism
    arms = registered_arms(job)
    registered = np.diff(arms.first)
    kept = np.minimum(registered, arms.sample) if arms.sample else registered
    record = np.zeros(1, PLAN)
    numbers: dict[str, Any] = {
        "begin": begin, "count": runs.number, "first": runs.first, "seed": substream(0, job.seed),
        "horizon": job.market.horizon, "agents": len(job.market.agents), "originals": len(arms.agent_of),
        "arms": len(arms.original), "levels": len(registered), "flat": mechanism.agent is None,
        "constant": job.market.family.quantile is deterministic.quantile, "sample": arms.sample,
        "positions": int(kept.sum()), "means": upload(means.rows), "means_first": means.first,
        "means_rows": len(means.rows), "original": upload(arms.original.astype(np.int32)),
        "copy": upload(arms.copy.astype(np.int32)), "key": upload(arms.key),
        "agent_of": upload(arms.agent_of.astype(np.int32)), "place_of": upload(arms.place_of.astype(np.int32)),
        "first_arm": upload(arms.first.astype(np.int32)),
        "first_position": upload(np.append(0, np.cumsum(kept)).astype(np.int32)),
    }  # fmt: skip
    for name, rule in (("arm", mechanism.arm), ("agent", mechanism.agent or mechanism.arm)):
        if rule.priority in (ucb.index, slow_ucb.index):
            table = whole_bonus(rule, job.market.horizon)
            numbers |= {
                f"{name}_exact": upload(table.exact), f"{name}_roots": upload(table.roots),
                f"{name}_shift": table.shift, f"{name}_scale": table.scale,
            }  # fmt: skip
    if mechanism.arm.priority is thompson.posterior_draw:
        numbers |= {"thompson": 1, "ziggurat": upload(ziggurat())}
    elif mechanism.arm.randomised:
        numbers["c"] = float(mechanism.arm.parameters[0])
    elif mechanism.arm.priority is kl_ucb.index:
        numbers |= {"c": float(mechanism.arm.parameters[0]), "logarithms": upload(logarithm_table(job.market.horizon))}
        numbers |= {"arm_shift": int(mechanism.arm.clock == "completed")}
    elif mechanism.agent is not None and mechanism.agent.priority in CONTESTS:
        numbers |= _contest_numbers(job, registered, upload)
    for field, number in numbers.items():
        record[field] = number
    return record


def _contest_numbers(job: Job, registered: IntArray, upload: Upload) -> dict[str, Any]:
    """What a hold-out contest needs besides; numbers of rounds are cut at T + 1, which no run can tell from more."""
    arm, agent, score = job.mechanism.arm, job.mechanism.agent, job.mechanism.scoring
    assert agent is not None
    most = job.market.horizon + 1
    skipped = [min(score.skipped_rounds(int(size), arm.explore, agent.commits), most) for size in registered]
    return {
        "contest_kl": CONTESTS[agent.priority] == KL, "c": float(agent.parameters[0]),
        "arm_explore": min(arm.explore, most), "agent_explore": min(agent.explore, most),
        "arm_order": ORDERS[arm.order],
        "fresh": score.fresh, "scored": most if score.rounds is None else min(score.rounds, most),
        "most_arms": MOST_ARMS if score.max_arms is None else min(score.max_arms, MOST_ARMS),
        "skipped": upload(np.array(skipped, np.int32)),
    }  # fmt: skip


def whole_bonus(rule: Rule, horizon: int) -> WholeBonus:
    """The tables of a rule; `scale` is a power of 2 with which no index reaches 2^31.

    >>> from cloneproof.mechanisms.rules.ucb import ucb
    >>> table = whole_bonus(ucb(), 10000)
    >>> table.scale == 2.0**28, int(table.roots[-1]) == round(2.0**28 * (2 * math.log(10000)) ** 0.5)
    (True, True)
    """
    return _whole_bonus(rule.priority is slow_ucb.index, rule.parameters[0], rule.clock, horizon)


@lru_cache(maxsize=8)
def _whole_bonus(slow: bool, constant: float, clock: Clock, horizon: int) -> WholeBonus:
    rule = slow_ucb.slow_ucb(constant, clock) if slow else ucb.ucb(constant, clock)
    exact, root = bonus(rule, horizon)
    scale = 2.0 ** math.floor(math.log2(LARGEST_INDEX / (1.0 + float(root[-1]))))
    return WholeBonus(exact, np.rint(scale * root).astype(np.uint32), int(clock == "completed"), scale)


@lru_cache(maxsize=1)
def ziggurat() -> FloatArray:
    """Ends and inner parts of the layers in turn, then their heights."""
    layers = np.stack([beta_variate.ENDS, beta_variate.WITHIN], axis=1).ravel()
    return np.concatenate([layers, beta_variate.HEIGHTS])


def means_table(job: Job, first: int, count: int) -> MeansTable:
    """The means of a range of runs; one row for each stratum, or one for all, where that is enough."""
    if job.strata:
        return MeansTable(means_of_runs(job, 0, len(job.strata)), 0)
    if all(prior.atoms is not None and len(prior.atoms) == 1 for agent in job.market.agents for prior in agent.priors):
        return MeansTable(means_of_runs(job, 0, 1), 0)
    return MeansTable(means_of_runs(job, first, count), first)
