"""Bernoulli rewards: a click or none."""

from cloneproof._lib.discovery import formula
from cloneproof.market.rewards import RewardFamily


@formula("coin")
def quantile(mean: float, u: float) -> float:
    """Return 1 with probability `mean`, else 0."""
    return 1.0 if u < mean else 0.0


def bernoulli() -> RewardFamily:
    """Rewards of 1 with the mean as probability, else 0."""
    return RewardFamily("bernoulli", quantile, values=(0.0, 1.0))
