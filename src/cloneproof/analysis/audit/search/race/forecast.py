"""How many pairs a deviation needs until it is known to pay: a forecast, on which no verdict rests.

With n pairs of variance v and largest move c, a confidence sequence at level alpha is about

    sqrt(2 L v / n) + c L / n,   L = ln(2 / alpha) + 1 (what its mixture of rates costs),

wide, so a gain that exceeds the tolerance by e shows after about 2 L v / e^2 + c L / e pairs. An asymptotic one has no
second part. Pairs are meant to come in whole passes, in which a realisation is as frequent as it is likely.
"""

from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.statistics.run_totals import Estimands, RunTotals

MIXTURE, ONE_SIDED = 1.0, 1.0


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


def pair_variance(totals: RunTotals, column: int = 0) -> float:
    """The variance that one pair of whole passes would have, from what was met inside the strata of whatever passes."""
    weights, count = np.array(totals.estimands.weights), totals.count
    if count < 2:
        return variance(totals, column) / float((weights**2).sum())
    means, squares = totals.sums[:, column] / count, totals.squares[:, column] / count
    return float(weights @ np.maximum(0.0, squares - means**2)) * count / (count - 1)


def pairs_until_ruled_out(
    estimands: Estimands, variance: float, room: float, alpha: float, bounds: BoundsName = "distribution-free"
) -> float:
    """The pairs in all after which the upper end of a gain has come down by `room`; infinite where there is none.

    >>> from cloneproof.engines.monte_carlo.statistics.payoff_ranges import Bounds
    >>> round(pairs_until_ruled_out(Estimands((Bounds(-1.0, 1.0),)), 0.0, 0.05, 0.01))
    112
    """
    if room <= 0:
        return math.inf
    log = math.log(1 / alpha) + ONE_SIDED
    slope = math.sqrt(2 * log * variance)
    largest = _largest(estimands) if bounds == "distribution-free" else 0.0
    root = (slope + math.sqrt(slope**2 + 4 * largest * log * room)) / (2 * room)
    return root**2


def pairs_until_known(
    estimands: Estimands, variance: float, excess: float, alpha: float, bounds: BoundsName = "distribution-free"
) -> float:
    """The pairs in all after which a gain of `excess` above the tolerance shows; infinite where it is none.

    >>> from cloneproof.engines.monte_carlo.statistics.payoff_ranges import Bounds
    >>> [round(pairs_until_known(Estimands((Bounds(-1.0, 1.0),)), 0.0, gain, 0.01)) for gain in (0.5, 0.05)]
    [13, 126]
    """
    if excess <= 0:
        return math.inf
    log = math.log(2 / alpha) + MIXTURE
    largest = _largest(estimands) if bounds == "distribution-free" else 0.0
    return 2 * log * variance / excess**2 + largest * log / excess


def _largest(estimands: Estimands) -> float:
    """Half the range of a gain: what one pair of a whole pass adds to n times the mean at most, beside the middle."""
    return (estimands.bounds[0].most - estimands.bounds[0].least) / 2
