"""Whether the card pays: what a sampling takes on this machine's cores and on a card, by rates that were measured.

`make bench-gpu` prints them. Both grow with the arms in the same way, but for many arms in global memory, where the
CPU's kernels group what is alike and a card does not: those stay on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from cloneproof.engines.monte_carlo.gpu.kernels import (
    ANY_UCB,
    CONTEST,
    FLAT_UCB,
    GREEDY,
    KL_UCB,
    MOST_TREE_SLOTS,
    THOMPSON,
    TREE_UCB,
    choice_of,
)
from cloneproof.engines.monte_carlo.job import Job

START_SECONDS: Final = 2.0  # of a card: CUDA, and a kernel that is compiled
UNKNOWN_RUNS: Final = 10_000  # where a precision or a verdict says when to stop


class KernelRates(NamedTuple):
    """Rounds a second of a core and of a card, ten or twenty arms; and the seconds of a round of one run on a card."""

    core: float
    card: float
    round: float


RATES: Final = {
    FLAT_UCB: KernelRates(7.5e7, 1.4e11, 1e-6),
    TREE_UCB: KernelRates(2.0e7, 4.5e10, 1.5e-6),
    ANY_UCB: KernelRates(2.0e7, 1.4e10, 4e-6),
    THOMPSON: KernelRates(1.5e6, 3.6e9, 2e-5),
    GREEDY: KernelRates(7.0e7, 5.0e10, 1.5e-6),
    KL_UCB: KernelRates(3e5, 9.2e8, 3e-5),
    CONTEST: KernelRates(5e6, 3.3e9, 3e-6),  # by KL-UCB; by UCB both are quicker
}


def card_pays(jobs: Sequence[Job], runs: int | None, cores: int) -> bool:
    """Whether a card that must be started first is done sooner than the cores, with so many runs of each job.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> def job(name, horizon, copies):
    ...     return Job(Market([Agent("ana", 1, Point(0.5))], horizon=horizon), mechanism(name), {"ana": (copies,)})
    >>> card_pays([job("ucb1", 1000, 3)], 1000, 2), card_pays([job("ucb1", 1000, 3)], 10**6, 2)
    (False, True)
    >>> card_pays([job("h-ucb", 1000, 2000)], 10**6, 2)
    False
    """
    on_cores = on_card = 0.0
    for job in jobs:
        choice = choice_of(job)
        if choice.kernel == ANY_UCB and choice.slots > MOST_TREE_SLOTS:
            return False
        rates, rounds = RATES[choice.kernel], float(job.market.horizon) * (runs or UNKNOWN_RUNS)
        on_cores += rounds / (cores * rates.core)
        on_card += rounds / rates.card + job.market.horizon * rates.round
    return on_cores > START_SECONDS + on_card
