"""A job as arrays: what the kernels need to know of the market, the copies and the mechanism."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.ucb.tables.round_tables import bonus, reciprocals
from cloneproof.mechanisms.rule import Rule

CLOSE = 2.0**-42
"""Indices closer than this, relative to the largest, are compared as the machine computes them. The quick estimate and
the machine's number are each within some ten units in the last place (2^-53) of the true one."""


class UcbTable(NamedTuple):
    """A rule over its clock: f(t) and its root, 1/n and 1/sqrt(n); `shift` is 1 where completed rounds are counted."""

    exact: Any
    root: Any
    reciprocal: Any
    reciprocal_root: Any
    shift: int
    margin: float


class RegisteredArms(NamedTuple):
    """Registered arms in order: original (numbered through all agents), copy, and the key of its level's lots.

    `agent_of` and `place_of` say whose an original is and which one; `first` where the arms of a level begin, with
    their number at the end; `sample` how many a level keeps (0: all).
    """

    original: Any
    copy: Any
    key: Any
    agent_of: Any
    place_of: Any
    first: Any
    sample: int


def table(rule: Rule, horizon: int) -> UcbTable:
    """The tables of a rule; no clock exceeds the horizon."""
    exact, root = bonus(rule, horizon)
    inverse, inverse_root = reciprocals(horizon)
    margin = CLOSE * (1.0 + float(root[-1]))
    return UcbTable(exact, root, inverse, inverse_root, int(rule.clock == "completed"), margin)


def registered(job: Job) -> RegisteredArms:
    """The arms of a job, one level for all of them or one for each agent."""
    copies = job.copies
    flat = job.mechanism.agent is None
    original, copy, key, counts, agent_of, place_of = [], [], [], [], [], []
    for i, agent in enumerate(job.market.agents):
        numbers = np.array(copies[agent.name])
        begins = np.repeat(np.cumsum(numbers) - numbers, numbers)
        original.append(np.repeat(np.arange(agent.count) + len(agent_of), numbers))
        copy.append(np.arange(len(begins)) - begins)
        key.append(np.arange(len(begins), dtype=np.int64) + ((i << 32) if flat else 0))
        agent_of += [i] * agent.count
        place_of += list(range(agent.count))
        counts.append(len(begins))
    first = [0, sum(counts)] if flat else np.cumsum([0, *counts])
    sample = job.mechanism.sample
    return RegisteredArms(
        np.concatenate(original), np.concatenate(copy).astype(np.uint64), np.concatenate(key).astype(np.uint64),
        np.array(agent_of), np.array(place_of, np.uint64), np.array(first),
        0 if sample is None else sample.size(job.market.horizon),
    )  # fmt: skip
