"""Seasons: how long a mechanism should learn before it restarts if rates drift or new items arrive.

The model: each item's rate is drawn again from its prior with probability 1 / D in every round, D the lifetime. A
mechanism restarts every H rounds, with regret R(H) for constant rates. After its rate was drawn again, the chosen item
is worth as much as an average one, so each such round loses at most the gap between the best item and an average one.

An item that arrives waits for the next season, H / 2 rounds on average. If `waiting` is the number of items that arrive
in a round, on average, times what a new one is better than the best by, E(new - best)^+, then waiting loses at most
`waiting` times H / 2 in each round (docs/textbook/seasons.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cloneproof.bounds._domain import checked

__all__ = ["season_cost", "season_length"]

RATIO = 1.25  # of a season that is tried to the next shorter one


@checked
def season_cost(
    length: int, regret: float, gap: float, lifetime: float | None = None, waiting: float | None = None
) -> float:
    """Return the regret per round with seasons of H rounds: R / H + g (1 - (D / H) (1 - exp(-H / D))) + w H / 2.

    `regret` is that of a season with constant rates, `gap` the expected best mean minus an average one. Without a
    lifetime rates stay, without `waiting` no items arrive. A model.

    >>> season_cost(1000, 20.0, 0.05, lifetime=1e9) < 0.0201
    True
    """
    cost = regret / length + (waiting or 0.0) * length / 2
    if lifetime is None:
        return cost
    ratio = length / lifetime
    return cost + gap * (1 + math.expm1(-ratio) / ratio)


@checked
def season_length(
    regret: Callable[[int], float],
    horizon: int,
    gap: float,
    lifetime: float | None = None,
    waiting: float | None = None,
) -> tuple[int, float]:
    """Return the season with the lowest cost per round, of lengths in equal ratios up to the horizon, and its cost.

    >>> season_length(lambda rounds: rounds**0.5, 10**6, 0.1, lifetime=1e5)
    (11529, 0.014862523466324676)
    """
    lengths = {max(1, round(horizon / RATIO**k)) for k in range(int(math.log(horizon) / math.log(RATIO)) + 1)}
    costs = {length: season_cost(length, regret(length), gap, lifetime, waiting) for length in lengths}
    best = min(costs, key=costs.__getitem__)
    return best, costs[best]
