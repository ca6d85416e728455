"""How many pairs a deviation needs until it is known to pay: a forecast, on which no verdict rests.

With n observations of variance v and largest move c, a confidence sequence at level alpha is about

    sqrt(2 L v / n) + c L / n,   L = ln(2 / alpha) + 3 (what its mixture of rates costs),

wide, so a gain that exceeds the tolerance by e shows after about 2 L v / e^2 + c L / e observations.
"""

from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals

MIXTURE = 3.0


def variance(totals: RunTotals, column: int = 0) -> float:
    """The variance of one observation (a pass over the strata), as met; of one pass, that between its strata."""
    weights, count = np.array(totals.estimands.weights), totals.count
    bounds = totals.estimands.bounds[column]
    if count == 0 or (count == 1 and len(weights) == 1):
        return (bounds.most - bounds.least) ** 2 / 4
    sums, squares = totals.sums[:, column], totals.squares[:, column]
    if count == 1:
        spread = float(weights @ (sums - weights @ sums) ** 2)
        return spread * float((weights**2).sum())
    inside = np.maximum(0.0, squares / count - (sums / count) ** 2) * count / (count - 1)
    return float(weights**2 @ inside)


def pairs_until_known(totals: RunTotals, excess: float, alpha: float) -> float:
    """The pairs in all after which a gain of `excess` above the tolerance shows; infinite where it is none.

    >>> from cloneproof.engines.monte_carlo.statistics.payoff_ranges import Bounds
    >>> from cloneproof.engines.monte_carlo.statistics.run_totals import Estimands
    >>> totals = RunTotals.empty(Estimands((Bounds(-1.0, 1.0),))).plus(np.full((8, 1), 0.5))
    >>> round(pairs_until_known(totals, 0.5, 0.01))
    17
    """
    if excess <= 0:
        return math.inf
    log = math.log(2 / alpha) + MIXTURE
    largest = float(totals.estimands.scale[0]) / 2
    observations = 2 * log * variance(totals) / excess**2 + largest * log / excess
    return observations * len(totals.estimands.weights)
