"""Kernels: what plays runs of a job, and what every kernel shares: tables of arms, and results.

A mechanism answers `runs(job)` with a `Kernel`, or None. To add one, write a header in `native` and, beside the
mechanism, a function that makes the records which it reads. It plays runs, a row of each array being one of them, and
fills in `RunResults`: what every agent is paid and how often each original is seen; `RunResults.outcomes` says what
follows from that, alike for all. A row depends only on the job, its means and its stream, not on the thread, the chunk
or earlier work. So take random numbers by their place, `(seed, run, arm, pull)` or `(seed, run, arm, block)`, as
`native/streams.h` has them, and keep sums exactly (in ticks). A kernel that steps like the session must give the
session's bits; one that draws blocks, the session's laws. docs/engines.md tells how a kernel comes to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cloneproof._lib.arrays import FloatArray, IntArray, WordArray
from cloneproof.runs.job import Job
from cloneproof.runs.tapes import Run, means_of_runs, run_streams

ROUNDS_IN_PYTHON: Final = 5 * 10**4  # a second
ARM: Final = [
    ("agent", "i8"),
    ("original", "i8"),  # inside its agent
    ("copy", "i8"),
    ("column", "i8"),  # of the original in an array of means
    ("key", "u8"),  # by which its level knows it
]


ArmTable = npt.NDArray[Any]


class Outcomes(NamedTuple):
    """Outcome of each run of a range: payoffs (runs x agents, the share included) and regrets (runs).

    `served` is the payoff with every reward replaced by its arm's mean. It has the same expectation as `payoff` without
    the noise of the rewards, and lies between 0 and all rounds at the agent's best mean. `rounds` counts the pulls of
    each agent; None if the kernel does not keep them.
    """

    payoff: FloatArray
    regret: FloatArray
    served: FloatArray
    rounds: FloatArray | None = None

    @property
    def rows(self) -> FloatArray:
        """One row per run: every payoff, the regret, and what every agent is served."""
        return np.column_stack([self.payoff, self.regret, self.served])


def outcomes_of(runs: Sequence[Run], agents: int) -> Outcomes:
    """Return the outcomes of runs that were played one by one."""
    payoff, served = (
        np.array([list(getattr(run, field).values()) for run in runs]).reshape(len(runs), agents)
        for field in ("payoff", "served")
    )
    return Outcomes(payoff, np.array([run.regret for run in runs]), served)


class CardRule(NamedTuple):
    """A level as a card plays it: the constant of its bonus, or of its dice, and whether its clock starts at 0."""

    constant: float
    completed: bool


class CardPlan(NamedTuple):
    """A bandit as a card plays it, on rewards that the kernel of cores steps; without agents, of one level."""

    rule: Literal["ucb", "thompson", "kl-ucb"]
    arm: CardRule
    agent: CardRule | None


@dataclass(frozen=True, eq=False)
class Kernel:
    """What plays the runs of one job.

    Parameters
    ----------
    name : str
        What tables of speed call it.
    play : callable
        Plays `count` runs from `first` on; a run that it cannot play has payoffs of NaN.
    seconds : float
        About what a run takes on a usual core.
    card : CardPlan or str
        What a GPU plays of it, or why none does.
    bias : float, default 0.0
        What a cost may be off by as a part of it, and a gain as a part of pay: measured, and nothing for most kernels.
    late : bool, default False
        Whether it plays rewards that come late by the law of a market; sessions do where it does not.
    slow : str, optional
        Why it is slow, where somebody can do something about it.
    parts : tuple of Runs, optional
        The runs of each segment, if these are played one by one and added up.
    opens : callable, optional
        Opens processes, for a number of these and the seconds that there are, which play chunks of such jobs one at a
        time; left out, threads play chunks side by side.
    """

    name: str
    play: Callable[[int, int], Outcomes]
    seconds: float
    card: CardPlan | str
    bias: float = 0.0
    late: bool = False
    slow: str | None = None
    parts: tuple[Runs, ...] = ()
    opens: Callable[[int | None, float | None], AbstractContextManager[ChunkOutcomes]] | None = None


class Playable(Protocol):
    """What a mechanism is to those who draw its runs."""

    @property
    def name(self) -> str: ...

    def to_dict(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of a job under a mechanism; their kernel is made when it is first asked for, as that may compile a rule."""

    mechanism: Playable
    job: Job
    make: Callable[[Any, Job], Kernel]

    @cached_property
    def kernel(self) -> Kernel:
        return self.make(self.mechanism, self.job)

    @property
    def parts(self) -> tuple[Runs, ...]:
        """Runs whose outcomes add up to these: those of each segment, or themselves if they are played as a whole."""
        return (self.job.market.segments and self.kernel.parts) or (self,)

    @property
    def bias(self) -> float:
        """The part of a cost, or of what a list is paid, that the kernels may be off by."""
        return max(part.kernel.bias for part in self.parts)

    def __call__(self, first: int, count: int) -> Outcomes:
        """Play runs first, .., first + count - 1 by the kernel."""
        return self.kernel.play(first, count)


ChunkOutcomes = Callable[[Runs, int, int], Outcomes]
"""Plays some runs of a job: which, the first, and how many."""
Fill = Callable[[FloatArray, WordArray, "RunResults"], None]
"""Plays runs with these means and streams, a row each, and fills in empty results."""


def first_arms(job: Job) -> IntArray:
    """Return where the arms of each agent begin in the order of registration, and where all end."""
    return np.cumsum([0, *(sum(job.copies[agent.name]) for agent in job.market.agents)], dtype=np.int64)


def arm_table(job: Job, flat: bool) -> ArmTable:
    """Make a row for each arm that a job's copies register, in order."""
    copies = np.array([number for agent in job.market.agents for number in job.copies[agent.name]])
    owners = np.array([(i, o) for i, agent in enumerate(job.market.agents) for o in range(agent.count)])
    column = np.repeat(np.arange(len(copies)), copies)
    arms, numbers = np.zeros(len(column), ARM), np.arange(len(column))
    arms["column"], arms["agent"], arms["original"] = column, owners[column, 0], owners[column, 1]
    arms["copy"] = numbers - (np.cumsum(copies) - copies)[column]
    arms["key"] = numbers - first_arms(job)[arms["agent"]] + ((arms["agent"] << 32) if flat else 0)
    return arms


class RunResults(NamedTuple):
    """Of each run of a chunk: what every agent is paid before the share, and the views of each original in each place.

    Without positions there is one place, and a pull is a view; of a random end that is integrated out, a part of one.
    A run that the kernel cannot play has payoffs of NaN.
    """

    payoff: FloatArray
    views: FloatArray

    @classmethod
    def empty(cls, job: Job, runs: int) -> RunResults:
        market = job.market
        views = np.zeros((runs, market.originals, max(1, len(market.places))))
        return cls(np.zeros((runs, len(market.agents))), views)

    def outcomes(self, job: Job, means: FloatArray) -> Outcomes:
        """Return the outcomes of runs with these means.

        Originals are added up in order, one by one, so that the last bit does not depend on the chunk.
        """
        market, owners = job.market, owners_of(job)
        served, rounds = np.zeros((2, *self.payoff.shape))
        regret, losses = np.zeros(len(means)), means.max(axis=1, keepdims=True) - means
        if market.places:
            regret, losses = market.horizon * best_pages(job, means), -means
        for original, owner in enumerate(owners):
            views = self.views[:, original]
            seen = sum(attention * views[:, place] for place, attention in enumerate(market.places or (1.0,)))
            served[:, owner] += seen * means[:, original]
            regret += seen * losses[:, original]
            rounds[:, owner] += views.sum(axis=1)
        return Outcomes(self.payoff * market.share, regret, served * market.share, rounds)


def filled(fill: Fill, job: Job, first: int, count: int) -> Outcomes:
    """Play runs first, .., first + count - 1 of a job by what fills in results."""
    means, results = means_of_runs(job, first, count), RunResults.empty(job, count)
    fill(means, run_streams(job.seed, first, count), results)
    return results.outcomes(job, means)


def owners_of(job: Job) -> IntArray:
    """Return the agent of each original, by number."""
    return np.repeat(np.arange(len(job.market.agents)), [agent.count for agent in job.market.agents])


def best_pages(job: Job, means: FloatArray) -> FloatArray:
    """Return what a page of the best slate of different agents is worth in each run."""
    begin = np.cumsum([0, *(agent.count for agent in job.market.agents)])[:-1]
    best = -np.sort(-np.maximum.reduceat(means, begin, axis=1), axis=1)
    worth = np.zeros(len(means))
    for attention, mean in zip(job.market.places, best.T, strict=False):
        worth += attention * mean
    return worth
