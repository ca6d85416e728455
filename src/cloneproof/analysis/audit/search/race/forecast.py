"""How many pairs a deviation needs until it is known to pay: a forecast, on which no verdict rests.

With n observations of variance v and largest move c, a confidence sequence at level alpha is about

    sqrt(2 L v / n) + c L / n,   L = ln(2 / alpha) + 3 (what its mixture of rates costs),

wide, so a gain that exceeds the tolerance by e shows after about 2 L v / e^2 + c L / e observations. An asymptotic one
has no second part.
"""

from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.statistics.run_totals import Estimands, RunTotals

MIXTURE, ONE_SIDED = 3.0, 2.0


def variance(totals: RunTotals, column: int = 0) -> float:
    """The variance of one observation (a pass over the strata), as met; of one pass, that between its strata."""
    weights, count = np.array(totals.estimands.weights), totals.count
    bounds = totals.estimands.bounds[column]
    if count == 0 or (count == 1 and len(weights) == 1):
        return (bounds.most - bounds.least) ** 2 / 4
    if count == 1:
        sums = totals.sums[:, column]
        spread = float(weights @ (sums - weights @ sums) ** 2)
        return spread * float((weights**2).sum())
    return float(totals.variances[column])


def pairs_until_ruled_out(
    estimands: Estimands, variance: float, room: float, alpha: float, bounds: BoundsName = "distribution-free"
) -> float:
    """The pairs in all after which the upper end of a gain has come down by `room`; infinite where there is none.

    >>> from cloneproof.engines.monte_carlo.statistics.payoff_ranges import Bounds
    >>> round(pairs_until_ruled_out(Estimands((Bounds(-1.0, 1.0),)), 0.0, 0.05, 0.01))
    132
    """
    if room <= 0:
        return math.inf
    log = math.log(1 / alpha) + ONE_SIDED
    slope = math.sqrt(2 * log * variance)
    largest = float(estimands.scale[0]) / 2 if bounds == "distribution-free" else 0.0
    root = (slope + math.sqrt(slope**2 + 4 * largest * log * room)) / (2 * room)  # of the observations
    return root**2 * len(estimands.weights)


def pairs_until_known(
    estimands: Estimands, variance: float, excess: float, alpha: float, bounds: BoundsName = "distribution-free"
) -> float:
    """The pairs in all after which a gain of `excess` above the tolerance shows; infinite where it is none.

    >>> from cloneproof.engines.monte_carlo.statistics.payoff_ranges import Bounds
    >>> [round(pairs_until_known(Estimands((Bounds(-1.0, 1.0),)), 0.0, gain, 0.01)) for gain in (0.5, 0.05)]
    [17, 166]
    """
    if excess <= 0:
        return math.inf
    log = math.log(2 / alpha) + MIXTURE
    largest = float(estimands.scale[0]) / 2 if bounds == "distribution-free" else 0.0
    observations = 2 * log * variance / excess**2 + largest * log / excess
    return observations * len(estimands.weights)
