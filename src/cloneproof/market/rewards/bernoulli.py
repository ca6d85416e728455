"""Bernoulli rewards: a click or none."""

from cloneproof.market.rewards import RewardFamily


def quantile(mean: float, u: float) -> float:
    """1 with probability `mean`."""
    return 1.0 if u < mean else 0.0


def bernoulli() -> RewardFamily:
    """Rewards 1 with the mean's probability, else 0; ordered since the event {u < mean} grows with the mean."""
    return RewardFamily("bernoulli", quantile, values=(0.0, 1.0))
