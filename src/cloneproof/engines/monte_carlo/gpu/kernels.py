"""Which kernel plays a job, with how much memory for a run; or why none does."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import kernel_for
from cloneproof.engines.monte_carlo.ucb.ucb_plan import registered_arms
from cloneproof.market.rewards import deterministic
from cloneproof.mechanisms.rules import thompson

FLAT_UCB, ANY_UCB, THOMPSON, GREEDY = range(4)
"""The numbers of source/kernels.cu."""

MOST_FLAT_ARMS: Final = 16
LONGEST: Final = 2_000_000
MOST_ARMS: Final = 100_000


class KernelChoice(NamedTuple):
    """A kernel, the arms that it is compiled for (0: any number), and the slots of 8 bytes that a run takes."""

    kernel: int
    arms: int
    slots: int


def refusal(job: Job) -> str | None:
    """Why no kernel on the GPU plays the job; None where one does."""
    name = kernel_for(job)[0]
    if name in ("blocks", "slot blocks"):
        return "its rewards are drawn in blocks, which a CPU does at no cost of the horizon"
    if name not in ("ucb", "randomised"):
        return f"no kernel on the GPU plays {job.mechanism.name!r} with these rewards"
    if job.market.horizon > LONGEST or sum(map(sum, job.copies.values())) > MOST_ARMS:
        return f"the GPU takes at most {LONGEST:,} rounds and {MOST_ARMS:,} arms"
    return None


def choice_of(job: Job) -> KernelChoice:
    """The kernel of a job that is not refused."""
    mechanism = job.mechanism
    if kernel_for(job)[0] == "randomised":
        arms = sum(map(sum, job.copies.values()))
        return KernelChoice(THOMPSON if mechanism.arm.priority is thompson.posterior_draw else GREEDY, 0, 6 * arms)
    registered = registered_arms(job)
    sizes = np.diff(registered.first)
    arms = len(registered.original)
    random = job.market.family.quantile is not deterministic.quantile
    if mechanism.agent is None and random and not registered.sample and arms <= MOST_FLAT_ARMS:
        return KernelChoice(FLAT_UCB, arms, (7 * arms + 1) // 2)
    kept = int(np.minimum(sizes, registered.sample).sum()) if registered.sample else arms
    return KernelChoice(ANY_UCB, 0, (5 if registered.sample else 4) * kept + 3 * len(sizes))
