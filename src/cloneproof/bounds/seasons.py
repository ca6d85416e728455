"""Seasons: how long a mechanism should learn before it restarts, where rates drift.

The model: each item's rate is drawn anew from its prior with chance 1 / D in every round, D the lifetime. A mechanism
restarts every H rounds, each time at its regret R(H) for rates that stay. Its choice is no better than any other
item once its rate was drawn anew, so a season loses, beside R(H), at most the gap between the best of all items and an
average one in each round in which that has happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cloneproof.bounds._domain import checked

RATIO = 1.25  # of a season that is tried to the next shorter one


@checked
def season_cost(length: int, regret: float, gap: float, lifetime: float) -> float:
    """R / H + g (1 - (D / H) (1 - exp(-H / D))): the regret a round with seasons of H rounds, where rates drift.

    `regret` is that of a season whose rates stay, `gap` the expected best mean less an average one. A model.

    >>> season_cost(1000, 20.0, 0.05, lifetime=1e9) < 0.0201
    True
    """
    ratio = length / lifetime
    return regret / length + gap * (1 + math.expm1(-ratio) / ratio)


@checked
def season_length(regret: Callable[[int], float], horizon: int, gap: float, lifetime: float) -> tuple[int, float]:
    """The season, of those in equal ratios up to the horizon, that costs least a round, and what it costs.

    >>> season_length(lambda rounds: rounds**0.5, 10**6, 0.1, lifetime=1e5)
    (11529, 0.014862523466324676)
    """
    lengths = {max(1, round(horizon / RATIO**k)) for k in range(int(math.log(horizon) / math.log(RATIO)) + 1)}
    best = min(lengths, key=lambda length: season_cost(length, regret(length), gap, lifetime))
    return best, season_cost(best, regret(best), gap, lifetime)
