"""Beta rewards: watch time as a fraction, ratings, anything continuous in [0, 1]."""

import scipy

from cloneproof._lib.discovery import formula
from cloneproof.market.rewards import RewardFamily, positive


@formula("beta")
def quantile(mean: float, u: float, concentration: float) -> float:
    """Return the quantile of Beta(mean * concentration, (1 - mean) * concentration); a point if the mean is 0 or 1."""
    if mean <= 0.0 or mean >= 1.0:
        return mean
    return float(scipy.special.betaincinv(mean * concentration, (1.0 - mean) * concentration, u))


def beta(concentration: float = 10.0) -> RewardFamily:
    """Beta rewards around the mean, more concentrated for a larger `concentration`.

    Stochastically ordered: the likelihood ratio of two such laws is x**d / (1 - x)**d up to a constant, increasing in
    x.
    """
    concentration = positive(concentration, "the concentration of beta rewards")
    return RewardFamily("beta", quantile, (concentration,), options={"concentration": concentration})
