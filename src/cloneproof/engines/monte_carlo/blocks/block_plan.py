"""Which jobs can be drawn block by block, and what the kernel must know of them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof.engines.closed_form.structure import check_structure, epochs
from cloneproof.engines.monte_carlo.arm_table import ARM_FIELDS, NEVER, ArmTable, arm_rows
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.errors import EngineError
from cloneproof.market.rewards import bernoulli, deterministic, gaussian
from cloneproof.mechanisms.epochs import Epoch, running_epochs

BERNOULLI, DETERMINISTIC, GAUSSIAN = range(3)
ROUND_ROBIN, BLOCK, INDEX = range(3)
ORDERS: Final = {"round-robin": ROUND_ROBIN, "block": BLOCK, "index": INDEX}
_FAMILIES: Final = {
    bernoulli.quantile: BERNOULLI, deterministic.quantile: DETERMINISTIC, gaussian.quantile: GAUSSIAN,
}  # fmt: skip
_LARGEST_SD: Final = 2.0**10  # sums of 10^15 such rewards stay within the two words of an exact sum

CANDIDATE: Final = np.dtype(
    [
        *ARM_FIELDS,
        ("key", "u8"),
        ("high", "i8"), ("low", "i8"), ("judged", "i8"),  # rewards to be judged by: their exact sum, and how many
        ("word", "u8"), ("rank", "i8"), ("pulls", "i8"), ("before", "i8"),  # scratch
        ("first", "i8"), ("rounds", "i8"), ("choice", "i8"),  # of an agent: first arm, rounds, arm committed to or -1
        ("paid_high", "i8"), ("paid_low", "i8"), ("lost", "f8"), ("served", "f8"),  # and rewards and regret so far
    ],
    align=True,
)  # fmt: skip
"""A candidate of a level. The arms come first in a table, then the agents, then a row that ends the last agent."""


class BlockPlan(NamedTuple):
    """A job as numbers. Rounds of exploration are cut at T + 1, which no run can tell from more."""

    arms: int
    agents: int
    horizon: int
    family: int
    sd: float
    flat: bool
    uniform: bool  # agents are chosen uniformly at random in every round
    award: bool  # arms start afresh at the award
    trial: int  # rounds of each agent
    agent_order: int
    arm_order: int
    explore: int  # rounds of each arm
    held_out: int  # rewards that a score counts, 0 where every one does
    most_arms: int  # of an agent that has a score
    first_version: int  # of the levels: their streams, and the numbers of their blocks


def blocks_apply(job: Job) -> bool:
    """Whether every level explores and then commits (or agents are chosen uniformly) on rewards that add up in law."""
    family = job.market.family
    if family.quantile not in _FAMILIES or (family.parameters and family.parameters[0] > _LARGEST_SD):
        return False
    try:
        for epoch in running_epochs(job.mechanism, len(job.market.agents), job.market.horizon):
            check_structure(epoch.mechanism)
    except EngineError:
        return False
    return True


def plan_of(job: Job, epoch: Epoch) -> BlockPlan:
    """The plan of an epoch of a job to which blocks apply; most mechanisms have only one."""
    horizon, family, running = epoch.rounds, job.market.family, epoch.mechanism
    agent, score = running.agent, running.scoring
    return BlockPlan(
        arms=sum(map(sum, job.copies.values())),
        agents=len(job.market.agents),
        horizon=horizon,
        family=_FAMILIES[family.quantile],
        sd=float(family.parameters[0]) if family.parameters else 0.0,
        flat=agent is None,
        uniform=agent is not None and not agent.commits,
        award=running.clearing.at_award,
        trial=0 if agent is None else min(agent.explore, horizon + 1),
        agent_order=0 if agent is None else ORDERS[agent.order],
        arm_order=ORDERS[running.arm.order],
        explore=min(running.arm.explore, horizon + 1),
        held_out=min(score.rounds, horizon + 1) if score.rounds is not None else 0,
        most_arms=NEVER if score.max_arms is None else min(score.max_arms, NEVER),
        first_version=1 if running.clearing.flat_epochs else 2 * epoch.number,
    )


def flat_epochs(epoch: Epoch) -> npt.NDArray[np.int64]:
    """Rounds and rounds of exploration of each epoch of a flat mechanism."""
    plan = epochs(epoch.mechanism, epoch.rounds)
    return np.array([(rounds, min(explore, epoch.rounds + 1)) for rounds, explore in plan], np.int64)


def candidates_of(job: Job, flat: bool) -> ArmTable:
    """The table of arms and agents, with keys as the running mechanism names them."""
    rows = arm_rows(job)
    table = np.zeros(len(rows) + len(job.market.agents) + 1, CANDIDATE)
    for a, (agent, number, original, copy, column) in enumerate(rows):
        table[["agent", "number", "original", "copy", "column"]][a] = (agent, number, original, copy, column)
        table[a]["key"] = (agent << 32) + number if flat else number
    starts = np.cumsum([0, *(sum(job.copies[agent.name]) for agent in job.market.agents)])
    table["first"][len(rows) :] = starts
    table["key"][len(rows) :] = np.arange(len(starts))
    return table
