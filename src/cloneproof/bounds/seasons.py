"""Seasons: how long a mechanism should learn before it restarts if rates drift.

The model: each item's rate is drawn again from its prior with probability 1 / D in every round, D the lifetime. A
mechanism restarts every H rounds, with regret R(H) for constant rates. After its rate was drawn again, the chosen item
is worth as much as an average one, so each such round loses at most the gap between the best item and an average one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cloneproof.bounds._domain import checked

__all__ = ["season_cost", "season_length"]

RATIO = 1.25  # of a season that is tried to the next shorter one


@checked
def season_cost(length: int, regret: float, gap: float, lifetime: float) -> float:
    """Return the regret per round with seasons of H rounds: R / H + g (1 - (D / H) (1 - exp(-H / D))).

    `regret` is that of a season with constant rates, `gap` the expected best mean minus an average one. A model.

    >>> season_cost(1000, 20.0, 0.05, lifetime=1e9) < 0.0201
    True
    """
    ratio = length / lifetime
    return regret / length + gap * (1 + math.expm1(-ratio) / ratio)


@checked
def season_length(regret: Callable[[int], float], horizon: int, gap: float, lifetime: float) -> tuple[int, float]:
    """Return the season with the lowest cost per round, of lengths in equal ratios up to the horizon, and its cost.

    >>> season_length(lambda rounds: rounds**0.5, 10**6, 0.1, lifetime=1e5)
    (11529, 0.014862523466324676)
    """
    lengths = {max(1, round(horizon / RATIO**k)) for k in range(int(math.log(horizon) / math.log(RATIO)) + 1)}
    best = min(lengths, key=lambda length: season_cost(length, regret(length), gap, lifetime))
    return best, season_cost(best, regret(best), gap, lifetime)
