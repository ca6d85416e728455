"""Deterministic rewards: every pull pays the mean. The paper's counterexamples use them."""

from cloneproof._lib.discovery import formula
from cloneproof.market.rewards import RewardFamily


@formula("point")
def quantile(mean: float, u: float) -> float:
    """Return the mean itself."""
    return mean


def deterministic() -> RewardFamily:
    """Rewards equal to the mean, so anywhere in [0, 1]."""
    return RewardFamily("deterministic", quantile)
