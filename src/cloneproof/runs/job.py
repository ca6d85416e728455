"""A job: what is sampled. A chunk is a pure function of the job, of who plays it, and of a range of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof.errors import EngineError
from cloneproof.market.market import FullCopies, Market, Means

MOST_REALISATIONS = 256
LARGEST_SUM = 2.0**33  # of rewards that are no whole numbers
FARTHEST = 9.0  # standard deviations of a normal reward from a uniform number of 52 bits, at most


@dataclass(frozen=True)
class Job:
    """A market with everybody's copies and a seed.

    With strata, run r takes the means of stratum r modulo their number instead of drawing them; its tapes and ties are
    unchanged. `rough` says that a kernel with a measured bias will do.
    """

    market: Market
    copies: FullCopies
    seed: int = 0
    strata: tuple[Means, ...] = ()
    rough: bool = False

    @cached_property
    def rows(self) -> FloatArray:
        """Means of each stratum, agent by agent."""
        return np.array([[mean for agent in self.market.agents for mean in own[agent.name]] for own in self.strata])

    @property
    def arms(self) -> int:
        """How many arms are registered."""
        return sum(map(sum, self.copies.values()))


class Strata(NamedTuple):
    """Means of each stratum, in the order of the runs of a pass, and its weight; empty: runs draw from priors."""

    means: tuple[Means, ...] = ()
    weights: tuple[float, ...] = (1.0,)


def strata_of(market: Market, short: bool = False) -> Strata:
    """Return the strata of a market; empty for a single realisation, too many, or a continuous prior.

    A realisation of probability p is listed ceil(p / q) times, q being the least probability or 1/256 if that is more:
    at most 512 runs in a pass. In a short pass each is listed once. A few runs then give a rough mean, but the interval
    after many runs is wider.

    >>> from cloneproof.market import Agent, Discrete
    >>> strata_of(Market([Agent("ana", 1, Discrete([0, 1], [0.25, 0.75]))], horizon=9)).weights
    (0.25, 0.25, 0.25, 0.25)
    >>> strata_of(Market([Agent("ana", 1, Discrete([0, 1], [0.25, 0.75]))], horizon=9), short=True).weights
    (0.25, 0.75)
    """
    realisations = MOST_REALISATIONS + 1 if market.segments else 1  # each segment has its own
    for agent in [] if market.segments else market.agents:
        for prior in agent.laws:
            realisations *= MOST_REALISATIONS + 1 if prior.atoms is None else len(prior.atoms)
    if not 1 < realisations <= MOST_REALISATIONS:
        return Strata()
    likely = list(market.realisations())
    total = math.fsum(weight for weight, _ in likely)  # 1, up to the rounding of the weights
    unit = 1.0 if short else max(min(weight for weight, _ in likely), 1.0 / MOST_REALISATIONS)
    means: list[Means] = []
    weights: list[float] = []
    for weight, realisation in likely:
        times = math.ceil(weight / unit * (1.0 - 1e-9))
        means += [realisation] * times
        weights += [weight / total / times] * times
    return Strata(tuple(means), tuple(weights))


def check_sums(job: Job) -> None:
    """Raise an error if rewards may add up to more than the one word that holds their sum."""
    market, family = job.market, job.market.family
    largest = max(abs(family.low), abs(family.high))
    if family.law == "normal":
        largest = 1.0 + FARTHEST * family.parameters[0]
    if family.law == "point" and all(agent.support is not None for agent in market.agents):
        largest = max((mean for agent in market.agents for mean in agent.support or () if mean % 1.0), default=0.0)
    if family.law != "coin" and math.isfinite(largest) and market.horizon * largest >= LARGEST_SUM:
        raise EngineError(
            f"sampling expects rewards that add up to less than 2^33, got {market.horizon:,} rounds of up to "
            f"{largest:g}; ask for a shorter horizon, or scale the rewards"
        )
