"""What the kernels of the flat reservoir must know of a job."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cloneproof._arrays import IntArray
from cloneproof.engines.monte_carlo.arm_table import ARM_FIELDS, ArmTable, arm_rows
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.market.rewards import bernoulli, beta, deterministic
from cloneproof.mechanisms.rule import Rule

FAMILIES: Final = (bernoulli.quantile, deterministic.quantile, beta.quantile)
ARM: Final = np.dtype([*ARM_FIELDS, ("pulls", "i8")], align=True)


class SlotPlan(NamedTuple):
    """A job as numbers. `threshold` is more than the pulls of a test where no test passes."""

    agents: int
    horizon: int
    draws: int
    explore: int
    threshold: int
    fresh: bool  # whether the fallback is a fresh draw
    family: int  # of FAMILIES
    parameter: float


class SlotTables(NamedTuple):
    """Arms, the first arm of each agent (and the end), what each agent is paid, and scratch: order, counts, slots."""

    arms: ArmTable
    first: IntArray
    paid: IntArray
    order: IntArray
    counts: IntArray
    slots: IntArray


def slot_plan(job: Job, rule: Rule) -> SlotPlan:
    """The plan of a job whose mechanism is one level of slots."""
    family = job.market.family
    return SlotPlan(
        agents=len(job.market.agents),
        horizon=job.market.horizon,
        draws=rule.draws,
        explore=min(rule.explore, job.market.horizon + 1),
        threshold=rule.explore + 1 if rule.threshold is None else int(rule.threshold),
        fresh=rule.fallback == "draw",
        family=FAMILIES.index(family.quantile),
        parameter=float(family.parameters[0]) if family.parameters else 0.0,
    )


def slot_tables(job: Job, plan: SlotPlan) -> SlotTables:
    """Fresh tables; every run overwrites them."""
    rows = arm_rows(job)
    arms = np.zeros(len(rows), ARM)
    for field, values in zip(("agent", "number", "original", "copy", "column"), zip(*rows, strict=True), strict=True):
        arms[field] = values
    first = np.cumsum([0, *(sum(job.copies[agent.name]) for agent in job.market.agents)])
    slots = plan.draws * plan.agents + 1
    return SlotTables(
        arms,
        first.astype(np.int64),
        np.zeros((plan.agents, 2), np.int64),
        np.zeros(plan.agents, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
    )
