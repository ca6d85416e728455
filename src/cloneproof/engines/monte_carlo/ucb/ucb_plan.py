"""A job as arrays: what the kernels need to know of the market, the copies and the mechanism."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray, WordArray
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.ucb.tables.round_tables import bonus, reciprocals
from cloneproof.market.rewards import deterministic
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.sample import Admission, Sample

CLOSE = 2.0**-42
"""Indices closer than this, relative to the largest, are compared as the session computes them. The quick estimate and
the session's number are each within some ten units in the last place (2^-53) of the true one."""


class UcbTable(NamedTuple):
    """A rule over its clock: f(t) and its root, 1/n and 1/sqrt(n); `shift` is 1 where completed rounds are counted.

    Indices closer than `margin` are compared exactly.
    """

    exact: FloatArray
    root: FloatArray
    reciprocal: FloatArray
    reciprocal_root: FloatArray
    shift: int
    margin: float


class RegisteredArms(NamedTuple):
    """Registered arms in order: original (numbered through all agents), copy, and the key of its level's lots.

    `agent_of` and `place_of` say whose an original is and which one; `first` where the arms of a level begin, with
    their number at the end; `sample` how many a level keeps (0: all), or `admitted` how many of its arrivals are
    certainly kept, where that number is drawn.
    """

    original: IntArray
    copy: WordArray
    key: WordArray
    agent_of: IntArray
    place_of: WordArray
    first: IntArray
    sample: int
    admitted: int


class UcbPlan(NamedTuple):
    """A job as the kernels read it; one level for all arms where it is `flat`, else one for each agent."""

    arm_table: UcbTable
    agent_table: UcbTable
    arms: RegisteredArms
    horizon: int
    flat: bool
    constant: bool  # every reward is the mean of its arm


def ucb_plan(job: Job) -> UcbPlan:
    """The plan of a job that these kernels take."""
    market, mechanism = job.market, job.mechanism
    arm_table = ucb_table(mechanism.arm, market.horizon)
    agent_table = arm_table if mechanism.agent is None else ucb_table(mechanism.agent, market.horizon)
    constant = market.family.quantile is deterministic.quantile
    return UcbPlan(arm_table, agent_table, registered_arms(job), market.horizon, mechanism.agent is None, constant)


def ucb_table(rule: Rule, horizon: int) -> UcbTable:
    """The tables of a rule; no clock exceeds the horizon."""
    exact, root = bonus(rule, horizon)
    inverse, inverse_root = reciprocals(horizon)
    margin = CLOSE * (1.0 + float(root[-1]))
    return UcbTable(exact, root, inverse, inverse_root, int(rule.clock == "completed"), margin)


def registered_arms(job: Job) -> RegisteredArms:
    """The arms of a job, one level for all of them or one for each agent."""
    flat, sample = job.mechanism.agent is None, job.mechanism.sample
    original, copy, key = [], [], []
    counts: list[int] = []
    agent_of: list[int] = []
    place_of: list[int] = []
    for i, agent in enumerate(job.market.agents):
        numbers = np.array(job.copies[agent.name])
        begins = np.repeat(np.cumsum(numbers) - numbers, numbers)
        original.append(np.repeat(np.arange(agent.count) + len(agent_of), numbers))
        copy.append(np.arange(len(begins)) - begins)
        key.append(np.arange(len(begins), dtype=np.int64) + ((i << 32) if flat else 0))
        agent_of += [i] * agent.count
        place_of += range(agent.count)
        counts.append(len(begins))
    return RegisteredArms(
        original=np.concatenate(original),
        copy=np.concatenate(copy).astype(np.uint64),
        key=np.concatenate(key).astype(np.uint64),
        agent_of=np.array(agent_of),
        place_of=np.array(place_of, np.uint64),
        first=np.array([0, sum(counts)] if flat else np.cumsum([0, *counts])),
        sample=sample.size(job.market.horizon) if isinstance(sample, Sample) else 0,
        admitted=sample.first if isinstance(sample, Admission) else 0,
    )
