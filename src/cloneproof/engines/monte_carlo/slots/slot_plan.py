"""What the kernels of reservoirs must know of a job."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cloneproof._arrays import IntArray
from cloneproof.engines.monte_carlo.arm_table import ARM_FIELDS, ArmTable, arm_rows
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.market.rewards import bernoulli, beta, deterministic, gaussian
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.level import TICK_BITS, ticks
from cloneproof.mechanisms.rules import steady_kl_ucb, steady_ucb

FAMILIES: Final = (bernoulli.quantile, deterministic.quantile, beta.quantile, gaussian.quantile)
BERNOULLI: Final = 0
FLAT, KL, UCB = range(3)
CONTESTS: Final = {steady_kl_ucb.index: KL, steady_ucb.index: UCB}
ARM: Final = np.dtype([*ARM_FIELDS, ("pulls", "i8")], align=True)
CONTENDER: Final = np.dtype(
    [
        ("arm", "i8"),  # the row of the champion
        ("high", "i8"), ("low", "i8"), ("pulls", "i8"), ("index", "f8"),  # what counts in the contest, and its index
        ("coins", "u8"),
    ],
    align=True,
)  # fmt: skip


class SlotPlan(NamedTuple):
    """A job as numbers. Rounds are cut at T + 1, which no run can tell from more."""

    agents: int
    horizon: int
    draws: int
    explore: int
    passing: bool  # whether there is a threshold, an exact sum
    threshold_high: int
    threshold_low: int
    fresh: bool  # whether the fallback is a fresh draw
    raw: bool  # whether tests sum rewards as they are
    contest: int  # FLAT, KL or UCB
    contest_raw: bool
    after: int  # rounds of each agent before its champion's rewards count
    turns: int  # rounds of each agent before indices decide
    width: float
    family: int  # of FAMILIES
    parameter: float


class SlotTables(NamedTuple):
    """Arms, the first arm of each agent (and the end), what each agent is paid, and scratch."""

    arms: ArmTable
    first: IntArray
    paid: IntArray
    order: IntArray
    slots: IntArray
    contenders: ArmTable


def slot_plan(job: Job, mechanism: Mechanism) -> SlotPlan:
    """The plan of a job whose mechanism tests slots: of all agents in one timetable, or before a contest."""
    family, rule, agent = job.market.family, mechanism.arm, mechanism.agent
    most = job.market.horizon + 1
    score, commits = mechanism.scoring, False
    high, low = divmod(ticks(rule.threshold or 0), 1 << TICK_BITS)
    return SlotPlan(
        agents=len(job.market.agents),
        horizon=job.market.horizon,
        draws=rule.draws,
        explore=min(rule.explore, most),
        passing=rule.threshold is not None,
        threshold_high=high,
        threshold_low=low,
        fresh=rule.fallback == "draw",
        raw=not rule.binarise,
        contest=FLAT if agent is None else CONTESTS[agent.priority],
        contest_raw=agent is not None and not agent.binarise,
        after=0 if agent is None else min(score.skipped_rounds(0, rule.explore, commits), most),
        turns=0 if agent is None else min(agent.explore, most),
        width=0.0 if agent is None else float(agent.parameters[0]),
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
    return SlotTables(
        arms,
        first.astype(np.int64),
        np.zeros((plan.agents, 2), np.int64),
        np.zeros(plan.agents, np.int64),
        np.zeros(1 if plan.contest else plan.draws * plan.agents + 1, np.int64),
        np.zeros(plan.agents, CONTENDER),
    )
