"""Jobs for a GPU: which kernel plays one, with how much memory for a run, or why none does; and its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof._lib.randomness import substream
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import CardPlan, CardRule, Runs, arm_table, first_arms
from cloneproof.runs.native.records import logarithm_table, ziggurat

FLAT_UCB, ANY_UCB, THOMPSON, TREE_UCB, KL_UCB = range(5)
"""The numbers of source/kernels.cu."""

MOST_FLAT_ARMS: Final = 32
MOST_TREE_SLOTS: Final = 224  # four blocks of 32 runs on a processor of 227 KB
LARGEST_INDEX: Final = 2.0**31 - 64.0  # of an index in units; see source/index.h
PLAN: Final = np.dtype(
    [
        ("begin", "i8"), ("count", "i8"), ("first", "i8"), ("seed", "u8"),
        ("horizon", "i8"), ("agents", "i8"), ("originals", "i8"), ("arms", "i8"), ("levels", "i8"), ("flat", "i8"),
        ("constant", "i8"),
        ("means", "u8"),
        ("original", "u8"), ("copy", "u8"), ("key", "u8"), ("agent_of", "u8"), ("place_of", "u8"),
        ("first_arm", "u8"),
        ("arm_exact", "u8"), ("arm_roots", "u8"), ("arm_shift", "i8"), ("arm_scale", "f8"),
        ("agent_exact", "u8"), ("agent_roots", "u8"), ("agent_shift", "i8"), ("agent_scale", "f8"),
        ("c", "f8"), ("logarithms", "u8"), ("ziggurat", "u8"),
        ("pulls", "u8"), ("wins", "u8"),
    ]
)  # fmt: skip


UNKNOWN_RUNS = 10_000  # where a precision or a verdict says when to stop
WORTH_SECONDS = 4.0  # of the cores, twice what a card needs for CUDA and a kernel that is compiled
QUICK_ROUNDS = 5e7  # rounds a second of a core, ten or twenty arms: UCB
SLOW_ROUNDS = 1e6  # and the others


class KernelChoice(NamedTuple):
    """A kernel, the arms of a level and the levels that it is compiled for (0: any), and the 8-byte slots of a run."""

    kernel: int
    arms: int
    levels: int
    slots: int


def plan_of(runs: Runs) -> CardPlan:
    """Return what a card plays of runs that it plays."""
    plan = runs.kernel.card
    assert isinstance(plan, CardPlan), plan
    return plan


def _level_ends(job: Job, plan: CardPlan) -> IntArray:
    """Return where the arms of each level begin, and their end."""
    first = first_arms(job)
    return first[[0, -1]] if plan.agent is None else first


def choice_of(runs: Runs) -> KernelChoice:
    """Return the kernel of runs that a card plays."""
    job, plan, arms = runs.job, plan_of(runs), runs.job.arms
    of_other_rules = {"kl-ucb": (KL_UCB, arms), "thompson": (THOMPSON, 4 * arms)}
    if plan.rule in of_other_rules:
        kernel, slots = of_other_rules[plan.rule]
        return KernelChoice(kernel, 0, 0, slots)
    sizes = np.diff(_level_ends(job, plan))
    levels, most = len(sizes), int(sizes.max())
    slots = 3 * (arms + levels)
    if job.market.family.law != "point":
        if plan.agent is None and arms <= MOST_FLAT_ARMS:
            return KernelChoice(FLAT_UCB, arms, 0, (7 * arms + 1) // 2)
        if max(levels, most) <= MOST_FLAT_ARMS and slots <= MOST_TREE_SLOTS:
            return KernelChoice(TREE_UCB, most, levels, slots)
    return KernelChoice(ANY_UCB, 0, 0, slots + arms)


PlanRecords = npt.NDArray[Any]
Upload = Callable[[npt.NDArray[Any]], int]
"""Copy an array to where the kernels run; its address there."""


class RunRange(NamedTuple):
    """Runs first, first + 1, .. of a job."""

    runs: Runs
    first: int
    number: int


class WholeBonus(NamedTuple):
    """Bonus of a rule over its clock, and its root in whole numbers of 1 / scale."""

    exact: FloatArray
    roots: npt.NDArray[np.uint32]
    shift: int
    scale: float


def record_of(part: RunRange, begin: int, upload: Upload, means: FloatArray) -> PlanRecords:
    """Record of a range of runs of a job, without the places of its results; `begin` counts the runs before it."""
    job, plan = part.runs.job, plan_of(part.runs)
    first, flat = _level_ends(job, plan), plan.agent is None
    arms = arm_table(job, flat)
    owners = np.array([(i, o) for i, agent in enumerate(job.market.agents) for o in range(agent.count)], np.int32)
    record = np.zeros(1, PLAN)
    numbers: dict[str, Any] = {
        "begin": begin, "count": part.number, "first": part.first, "seed": substream(0, job.seed),
        "horizon": job.market.horizon, "agents": len(job.market.agents), "originals": len(owners),
        "arms": len(arms), "levels": len(first) - 1, "flat": flat,
        "constant": job.market.family.law == "point",
        "means": upload(means), "original": upload(arms["column"].astype(np.int32)),
        "copy": upload(arms["copy"].astype(np.int32)), "key": upload(arms["key"].copy()),
        "agent_of": upload(owners[:, 0].copy()), "place_of": upload(owners[:, 1].copy()),
        "first_arm": upload(first.astype(np.int32)),
    }  # fmt: skip
    if plan.rule == "ucb":
        for name, rule in (("arm", plan.arm), ("agent", plan.agent or plan.arm)):
            table = whole_bonus(rule, job.market.horizon)
            numbers |= {
                f"{name}_exact": upload(table.exact), f"{name}_roots": upload(table.roots),
                f"{name}_shift": table.shift, f"{name}_scale": table.scale,
            }  # fmt: skip
    if plan.rule == "thompson":
        numbers["ziggurat"] = upload(ziggurat())
    elif plan.rule == "kl-ucb":
        numbers |= {"c": plan.arm.constant, "logarithms": upload(logarithm_table(job.market.horizon))}
        numbers |= {"arm_shift": int(plan.arm.completed)}
    for field, number in numbers.items():
        record[field] = number
    return record


def whole_bonus(rule: CardRule, horizon: int) -> WholeBonus:
    """Return the tables of a rule; `scale` is a power of 2 with which no index reaches 2^31.

    >>> table = whole_bonus(CardRule(2.0, False), 10000)
    >>> table.scale == 2.0**28, int(table.roots[-1]) == round(2.0**28 * (2 * math.log(10000)) ** 0.5)
    (True, True)
    """
    return _whole_bonus(rule.constant, rule.completed, horizon)


@lru_cache(maxsize=8)
def _whole_bonus(constant: float, completed: bool, horizon: int) -> WholeBonus:
    logarithms = np.maximum(logarithm_table(horizon), 0.0)
    exact = constant * logarithms
    root = np.sqrt(exact)  # correctly rounded in NumPy as in Python
    scale = 2.0 ** math.floor(math.log2(LARGEST_INDEX / (1.0 + float(root[-1]))))
    return WholeBonus(exact, np.rint(scale * root).astype(np.uint32), int(completed), scale)


def card_pays(drawn: Sequence[Runs], number: int | None, cores: int) -> bool:
    """Return whether so many runs of each take the CPU longer than a GPU that must first be started."""
    seconds = 0.0
    for runs in drawn:
        choice = choice_of(runs)
        if choice.kernel == ANY_UCB and choice.slots > MOST_TREE_SLOTS:
            return False  # thousands of arms are quicker on the cores
        rate = QUICK_ROUNDS if choice.kernel in (FLAT_UCB, TREE_UCB, ANY_UCB) else SLOW_ROUNDS
        seconds += runs.job.market.horizon * (number or UNKNOWN_RUNS) / (cores * rate)
    return seconds > WORTH_SECONDS
