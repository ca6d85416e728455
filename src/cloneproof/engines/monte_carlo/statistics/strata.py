"""Strata: every realisation of discrete priors, so that which one came up adds no noise.

One pass takes a run in each stratum. A likely realisation is a stratum several times, so that runs go about where the
probability is and no run weighs much more than another; equal weights are what makes the intervals narrow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cloneproof.market.market import Market, Means

MOST_REALISATIONS = 256


class Strata(NamedTuple):
    """The means of each stratum, in the order of the runs of a pass, and its weight; none: runs draw from priors."""

    means: tuple[Means, ...] = ()
    weights: tuple[float, ...] = (1.0,)


def strata_of(market: Market, short: bool = False) -> Strata:
    """The strata of a market, or none where there is one realisation, too many, or a continuous prior.

    A realisation of probability p is listed ceil(p / q) times, q being the least probability or 1/256 if that is more:
    at most 512 runs in a pass. In a short pass each is listed once. Then few runs tell about how large a mean is, and
    many of them leave a wider interval: one run of a likely realisation moves the mean by all of its probability.

    >>> from cloneproof.market import Agent, Discrete
    >>> strata_of(Market([Agent("ana", 1, Discrete([0, 1], [0.25, 0.75]))], horizon=9)).weights
    (0.25, 0.25, 0.25, 0.25)
    >>> strata_of(Market([Agent("ana", 1, Discrete([0, 1], [0.25, 0.75]))], horizon=9), short=True).weights
    (0.25, 0.75)
    """
    realisations = 1
    for agent in market.agents:
        for prior in agent.priors:
            realisations *= MOST_REALISATIONS + 1 if prior.atoms is None else len(prior.atoms)
    if not 1 < realisations <= MOST_REALISATIONS:
        return Strata()
    likely = list(market.realisations())
    total = math.fsum(weight for weight, _ in likely)  # 1, up to the rounding of the weights
    unit = 1.0 if short else max(min(weight for weight, _ in likely), 1.0 / MOST_REALISATIONS)
    means: list[Means] = []
    weights: list[float] = []
    for weight, each in likely:
        times = math.ceil(weight / unit * (1.0 - 1e-9))
        means += [each] * times
        weights += [weight / total / times] * times
    return Strata(tuple(means), tuple(weights))
