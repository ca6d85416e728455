"""Outcomes of a range of runs, by the fastest kernel that applies.

To add a kernel, write a header in `native`, and here two functions, and list them in `KERNELS`, the fastest first:

- `applies(job)` reads the job only, and is False for anything it does not know.
- `kernel(job, means, streams, results)` plays runs, a row of each array being one of them, and fills in `RunResults`. A
  row depends only on the job, its means and its stream, not on the thread, the chunk or earlier work. So take random
  numbers by their place, `(seed, run, arm, pull)` or `(seed, run, arm, block)`, as `native/streams.h` has them, and
  keep sums exactly (in ticks). A kernel that steps like the session must give the session's bits; one that draws
  blocks, the session's laws. docs/engines.md tells how a kernel comes to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Final

from cloneproof.mechanisms.bandits.kernel import play_stepping, stepping_applies, usual_bandit
from cloneproof.mechanisms.committing.kernel import blocks_apply, play_blocks
from cloneproof.mechanisms.reservoir.kernel import (
    falling_applies,
    play_slot_blocks,
    play_slots,
    slot_blocks_apply,
    slots_apply,
)
from cloneproof.mechanisms.reservoir.page_kernel import (
    laboratory_applies,
    laboratory_seconds,
    play_laboratory,
    play_ranked_pages,
    ranked_pages_apply,
)
from cloneproof.runs.job import ROUNDS_IN_PYTHON, Job, Outcomes, reference_outcomes
from cloneproof.runs.results import Kernel, played

Kernels = tuple[tuple[str, Callable[[Job], bool], Kernel], ...]

KERNELS: Final[Kernels] = (
    ("blocks", blocks_apply, play_blocks),  # levels that explore and commit: a few draws for each arm
    ("slot blocks", slot_blocks_apply, play_slot_blocks),  # tests of slots: a draw for each
    ("slots", slots_apply, play_slots),  # the same, pull by pull
    ("index on slots", falling_applies, play_slot_blocks),  # the same loop, slots ranked by an index or by a bar
    ("stepping", stepping_applies, play_stepping),  # all other rules, round by round
)

SLATE_KERNELS: Final[Kernels] = (
    ("laboratory", laboratory_applies, play_laboratory),  # reservoirs
    ("ranked pages", ranked_pages_apply, play_ranked_pages),  # usual bandits
)  # for markets with positions, page by page, which no other kernel plays

TO_RANDOM_ENDS: Final = (play_slot_blocks, play_slots)


def kernel_for(job: Job) -> tuple[str, Callable[[Job, int, int], Outcomes]]:
    """Return the name of the kernel that takes the job, and what plays runs of a job by it."""
    for name, applies, kernel in SLATE_KERNELS if job.market.places else KERNELS:
        fits = job.market.ends == "at-horizon" or kernel in TO_RANDOM_ENDS
        if fits and applies(job):
            return name, partial(played, kernel)
    return "reference", reference_outcomes


def slow_reason(job: Job) -> str | None:
    """Say why the reference simulator runs the job in Python, where that is known."""
    if kernel_for(job)[0] != "reference":
        return None
    if find_spec("numba") is None and any(rule.index == "own" for rule in job.mechanism.rules):
        return "a rule of one's own is sampled in plain Python: pip install 'cloneproof[rules]' to compile it"
    if job.market.ends == "at-random":
        return "no compiled kernel plays this mechanism to a random end: the reference simulator does, which is slow"
    return None


# Nanoseconds of a usual core, as measured over the catalogue: for a round and for each candidate that it looks at, and
# on pages for each candidate. Of what is not listed, any other rule's.
LOOKS_NS: Final = {
    "ucb": (20.0, 4.0, 15.0),
    "epsilon-greedy": (10.0, 1.4, 12.0),
    "posterior": (0.0, 40.0, 45.0),
    "kl-ucb": (100.0, 20.0, 700.0),
    "steady-kl-ucb": (100.0, 20.0, 500.0),
}
OTHER_NS: Final = (200.0, 40.0, 70.0)


def seconds_of_run(job: Job) -> float:
    """Estimate how long a usual core takes for a run, by rounds and candidates; less where the kernel skips rounds."""
    rounds, arms = job.market.horizon, sum(map(sum, job.copies.values()))
    name, _ = kernel_for(job)
    if name == "reference":
        return rounds / ROUNDS_IN_PYTHON
    if name == "laboratory":
        return laboratory_seconds(job)
    listed = all(agent.support is not None for agent in job.market.agents)
    start = 1e-6 + (0.0 if listed else 1e-6 * job.market.originals)  # means are drawn by quantiles
    if name == "blocks" or all(rule.commits for rule in job.mechanism.rules):
        return start + 3e-7 * arms
    stepped = start + 1e-9 * rounds * _round_ns(job, name == "ranked pages")
    if name == "slot blocks":  # the rounds in which two champions are about even grow with the root of all
        return min(stepped, start + 1.1e-6 * math.sqrt(len(job.market.agents) * rounds))
    if name == "index on slots":  # a slot has few updates in many rounds, each after a look at all slots
        return min(stepped, 6e-5 * len(job.market.agents) * job.mechanism.draws)
    return stepped


def _round_ns(job: Job, on_pages: bool) -> float:
    """Return the nanoseconds of a round, or of a page: each level that chooses, by how many candidates it looks at."""
    arms, agents = sum(map(sum, job.copies.values())), len(job.copies)
    own = arms / agents * (len(job.market.places) if on_pages else 1)
    skips = on_pages or usual_bandit(job) in ("ucb", "epsilon-greedy")
    total = 0.0
    for rule, candidates in zip(job.mechanism.rules, (arms,) if job.mechanism.flat else (agents, own), strict=True):
        stepped = rule.index in ("ucb", "epsilon-greedy") and not skips
        of_round, of_candidate, on_page = OTHER_NS if stepped else LOOKS_NS.get(rule.index, OTHER_NS)
        if not rule.commits:
            total += candidates * on_page if on_pages else of_round + candidates * of_candidate
    return total


def outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Play runs first, .., first + count - 1.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> market = Market([Agent("ana", 1, Point(0.5))], horizon=10**9, rewards="deterministic")
    >>> outcomes(Job(market, mechanism("etc", arm_rounds=3), {"ana": (1,)}), 0, 2).payoff.tolist()
    [[500000000.0], [500000000.0]]
    """
    return kernel_for(job)[1](job, first, count)
