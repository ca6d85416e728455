"""Whether there is enough traffic to learn anything: what random play costs, and from which horizon on it is beaten."""

from __future__ import annotations

import numpy as np

from cloneproof.advice.candidates import exact_regret
from cloneproof.errors import CloneproofError
from cloneproof.market.market import Market
from cloneproof.mechanisms.catalogue import mechanism

QUANTILES = 200
MOST_DOUBLINGS = 10


def expected_best(market: Market) -> float:
    """The expected best mean of all originals, by quantiles of the maximum."""
    grid = (np.arange(QUANTILES) + 0.5) / QUANTILES
    values = sorted(
        {float(prior.quantile(level)) for agent in market.agents for prior in agent.priors for level in grid}
    )
    below = np.ones(len(values))
    for agent in market.agents:
        for prior in agent.priors:
            own = np.array([float(prior.quantile(level)) for level in grid])
            atoms = prior.atoms
            if atoms is not None:
                below *= [sum(weight for value, weight in atoms if value <= top) for top in values]
            else:
                below *= np.searchsorted(np.sort(own), values, side="right") / QUANTILES
    return float(np.array(values) @ np.diff(below, prepend=0.0))


def random_regret(market: Market) -> float:
    """What playing an original at random in every round costs."""
    grid = (np.arange(QUANTILES) + 0.5) / QUANTILES
    means = [
        sum(value * weight for value, weight in prior.atoms)
        if prior.atoms is not None
        else float(np.mean([prior.quantile(level) for level in grid]))
        for agent in market.agents
        for prior in agent.priors
    ]
    return market.horizon * max(0.0, expected_best(market) - float(np.mean(means)))


def enough_rounds(market: Market, part: float) -> int | None:
    """The first of 2T, 4T, .. at which a tuned reservoir costs at most that part of random play; None beyond 1000 T."""
    for power in range(1, MOST_DOUBLINGS + 1):
        longer = market.with_horizon(market.horizon * 2**power)
        try:
            made = mechanism("reservoir", market=longer)
        except CloneproofError:
            return None
        if exact_regret(longer, made) <= part * random_regret(longer):
            return longer.horizon
    return None
