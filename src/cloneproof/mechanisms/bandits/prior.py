"""Parameters of two-level bandits from a market: the prior of their posteriors.

The market's rates are matched by a Beta distribution with their mean and variance, over the originals of all agents.
Both of its parameters are at least 1, where its density has no pole: of rates that are spread more widely, as 0 or 1,
only the mean is kept.
"""

from __future__ import annotations

from math import fsum

from cloneproof.laws.points import points
from cloneproof.market.market import Market
from cloneproof.market.priors import Beta, Prior
from cloneproof.mechanisms.mechanism import Derived, Given

LEVELS = 256  # at which the quantiles of a continuous prior are taken
SHARPEST = 1e6  # the most views that a prior is worth


def prior_parameters(market: Market, given: Given) -> Derived:
    """Match the market's rates by a Beta prior, unless a part of one is given.

    >>> from cloneproof import Agent, Discrete
    >>> prior_parameters(Market([Agent("ana", 3, Beta(2, 60))], 100), {}).parameters
    {'alpha': 2.0, 'beta': 60.0}
    >>> prior_parameters(Market([Agent("ana", 3, Discrete([0, 1], [0.75, 0.25]))], 100), {}).parameters
    {'alpha': 1.0, 'beta': 3.0}
    """
    if "alpha" in given or "beta" in given:
        return Derived({})
    priors = [prior for agent in market.agents for prior in agent.priors]
    moments = [_moments(prior) for prior in priors]
    mean, square = (fsum(of_prior[k] for of_prior in moments) / len(priors) for k in range(2))
    least = min(mean, 1.0 - mean)
    if least <= 0.0:  # all rates are 0, or all are 1
        return Derived({})
    variance = max(square - mean * mean, mean * (1.0 - mean) / SHARPEST)
    size = min(max(mean * (1.0 - mean) / variance - 1.0, 1.0 / least), max(SHARPEST, 1.0 / least))
    return Derived({"alpha": _rounded(size * mean), "beta": _rounded(size * (1.0 - mean))})


def _moments(prior: Prior) -> tuple[float, float]:
    """Return the mean of a prior, and that of its square."""
    if isinstance(prior, Beta):
        return prior.mean, prior.mean * (prior.a + 1.0) / (prior.a + prior.b + 1.0)
    atoms = points(prior, LEVELS, "even")
    total = fsum(weight for _, weight in atoms)
    return fsum(value * weight for value, weight in atoms) / total, fsum(v * v * w for v, w in atoms) / total


def _rounded(number: float) -> float:
    """Return a number from 1 with six digits, for display."""
    return max(1.0, float(f"{number:.6g}"))
