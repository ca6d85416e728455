"""Which kernel plays a job, with how much memory for a run; or why none does."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import kernel_for
from cloneproof.engines.monte_carlo.slots.slot_plan import CONTESTS
from cloneproof.engines.monte_carlo.ucb.ucb_plan import registered_arms
from cloneproof.market.rewards import bernoulli, deterministic
from cloneproof.mechanisms.rules import etc, kl_ucb, thompson
from cloneproof.mechanisms.sample import Sample

FLAT_UCB, ANY_UCB, THOMPSON, GREEDY, TREE_UCB, KL_UCB, CONTEST = range(7)
"""The numbers of source/kernels.cu."""

MOST_FLAT_ARMS: Final = 32
MOST_TREE_SLOTS: Final = 224  # four blocks of 32 runs on a processor of 227 KB
LONGEST: Final = 2_000_000
MOST_ARMS: Final = 100_000


class KernelChoice(NamedTuple):
    """A kernel, the arms of a level and the levels that it is compiled for (0: any), and the 8-byte slots of a run."""

    kernel: int
    arms: int
    levels: int
    slots: int

    def with_room_for(self, other: KernelChoice) -> KernelChoice:
        """The choice of the same kernel that takes the jobs of both."""
        return KernelChoice(self.kernel, *map(max, self[1:], other[1:]))


def refusal(job: Job) -> str | None:
    """Why no kernel on the GPU plays the job; None where one does."""
    name = kernel_for(job)[0]
    if name in ("blocks", "slot blocks"):
        return "its rewards are drawn in blocks, which a CPU does at no cost of the horizon"
    if name not in ("ucb", "randomised") and _stepped(job) is None:
        return f"no kernel on the GPU plays {job.mechanism.name!r} with these rewards"
    if type(job.mechanism.sample) not in (Sample, type(None)):
        return "its arms are not a sample that is drawn at the start"
    if job.market.horizon > LONGEST or sum(map(sum, job.copies.values())) > MOST_ARMS:
        return f"the GPU takes at most {LONGEST:,} rounds and {MOST_ARMS:,} arms"
    return None


def _stepped(job: Job) -> int | None:
    """The kernel of KL-UCB or of a hold-out contest with Bernoulli rewards; None for whatever else is stepped."""
    mechanism, agent, arm = job.mechanism, job.mechanism.agent, job.mechanism.arm
    if job.market.family.quantile is not bernoulli.quantile or kernel_for(job)[0] != "stepping":
        return None
    if mechanism.sample is not None or mechanism.restart is not None or mechanism.fallback is not None:
        return None
    if agent is None:
        return KL_UCB if arm.priority is kl_ucb.index and not arm.commits and arm.explore == 1 else None
    steady = agent.priority in CONTESTS and not agent.commits and agent.order == "round-robin"
    return CONTEST if steady and arm.priority is etc.average and arm.commits else None


def choice_of(job: Job) -> KernelChoice:
    """The kernel of a job that is not refused."""
    mechanism, arms = job.mechanism, sum(map(sum, job.copies.values()))
    stepped = _stepped(job)
    if stepped is not None:
        return KernelChoice(stepped, 0, 0, arms if stepped == KL_UCB else 3 * (arms + len(job.market.agents)))
    if kernel_for(job)[0] == "randomised":
        if mechanism.arm.priority is thompson.posterior_draw:
            return KernelChoice(THOMPSON, 0, 0, 4 * arms)
        return KernelChoice(GREEDY, 0, 0, 5 * arms)
    registered = registered_arms(job)
    sizes = np.diff(registered.first)
    kept = np.minimum(sizes, registered.sample) if registered.sample else sizes
    levels, arms, most = len(kept), int(kept.sum()), int(kept.max())
    slots = (4 if registered.sample else 3) * arms + 3 * levels
    if job.market.family.quantile is not deterministic.quantile:
        if mechanism.agent is None and not registered.sample and arms <= MOST_FLAT_ARMS:
            return KernelChoice(FLAT_UCB, arms, 0, (7 * arms + 1) // 2)
        if max(levels, most) <= MOST_FLAT_ARMS and slots <= MOST_TREE_SLOTS:
            return KernelChoice(TREE_UCB, most, levels, slots)
    return KernelChoice(ANY_UCB, 0, 0, slots + arms)
