"""Thompson sampling with Beta(1, 1) priors."""

import scipy

from cloneproof.mechanisms.rule import Rule


def posterior_draw(
    clock: float, log_clock: float, pulls: float, mean: float, coin: float, draw: float, candidates: float
) -> float:
    """A draw from Beta(1 + successes, 1 + failures), by the quantile of one uniform number."""
    successes = round(mean * pulls)
    return float(scipy.special.betaincinv(1.0 + successes, 1.0 + pulls - successes, draw))


def thompson() -> Rule:
    """Rewards in [0, 1] become coins that show 1 with their probability (Agrawal and Goyal 2012)."""
    return Rule("thompson", posterior_draw, randomised=True, binarise=True)
