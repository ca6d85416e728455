"""Thompson sampling with Beta(1, 1) priors."""

import math
from typing import Literal

import scipy

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.beta_variate import beta_variate
from cloneproof.mechanisms.rule import Rule

PosteriorDraw = Literal["variate", "quantile"]


def posterior_draw(
    clock: float, log_clock: float, pulls: float, mean: float, coin: float, draw: float, candidates: float
) -> float:
    """A draw from Beta(1 + successes, 1 + failures), as a function of one uniform number."""
    successes = math.floor(mean * pulls + 0.5)
    return beta_variate(1.0 + successes, 1.0 + pulls - successes, draw)


def posterior_quantile(
    clock: float, log_clock: float, pulls: float, mean: float, coin: float, draw: float, candidates: float
) -> float:
    """The same law by the quantile of the uniform number."""
    successes = round(mean * pulls)
    return float(scipy.special.betaincinv(1.0 + successes, 1.0 + pulls - successes, draw))


def thompson(draw: PosteriorDraw = "variate") -> Rule:
    """Rewards in [0, 1] become coins that show 1 with their probability (Agrawal and Goyal 2012).

    `draw` says how a posterior is drawn from: by a variate, which is quick and the same on every machine, or by the
    quantile, as the first ledgers did. It is flooded by candidates: the largest of many draws from the prior is as near
    to 1 as one likes, and draws from the few posteriors that a given number of rounds makes stay below.
    """
    if draw not in ("variate", "quantile"):
        raise MechanismError(f"expected the draw of thompson to be variate or quantile, got {draw!r}; use 'variate'")
    priority = posterior_draw if draw == "variate" else posterior_quantile
    return Rule("thompson", priority, randomised=True, binarise=True, floods=True, options={"draw": draw})
