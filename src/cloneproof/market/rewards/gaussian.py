"""Gaussian rewards of a common standard deviation: unbounded, so outside the paper's [0, 1] but inside its order."""

import math

import scipy

from cloneproof._lib.discovery import formula
from cloneproof.market.rewards import RewardFamily, positive


@formula("normal")
def quantile(mean: float, u: float, sd: float) -> float:
    """Return the normal quantile, which shifts with the mean."""
    return mean + sd * float(scipy.special.ndtri(u))


def gaussian(sd: float = 0.1) -> RewardFamily:
    """Normal rewards of standard deviation `sd` around the mean."""
    sd = positive(sd, "the standard deviation sd of gaussian rewards")
    return RewardFamily("gaussian", quantile, (sd,), low=-math.inf, high=math.inf, spread=sd, options={"sd": sd})
