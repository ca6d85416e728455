"""Tune a bar on slots: a pattern search on the exact regret of `laws.bars`.

Any parameters are clone-proof, so tuning may use whatever the platform believes about quality, but not what was
registered. Work is counted, so that one market has one answer.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cloneproof._lib.schedules import Bar, bar_of
from cloneproof.laws.bars import bar_regret
from cloneproof.laws.reservoir import ReservoirMarket
from cloneproof.mechanisms.pattern_search import PatternSearch, halved

ROUGH, QUOTED = 1e-2, 1e-6  # precision during the search, and of the regret that is told; errors are far smaller
MOST_VALUES = 12  # values of a prior between which a bar is tried; of more, a few quantiles
QUANTILES = (0.5, 0.8, 0.95, 0.99, 0.999)
HIGHEST = 3  # pairs of neighbouring values between which a bar is tried
STAKE = 0.3  # at the start
HALF = 0.5  # the bar if all values are equal
LOWEST = 1e-9  # a bar
DRAWS = 10  # draws at the start for each original
MOST_DRAWS = 1.2  # most draws that are tried, for each original and ln(T)
STEPS = 0.4, 0.01  # first change of a parameter, and one that is too small to try
GAIN = 1e-4  # smallest relative gain that counts
LEVELS = 31  # of failures, in the work of one regret
WORK = 4e6  # of a search, in squared kinds of agents times values, draws and levels: some seconds


class BarNumbers(NamedTuple):
    """Parameters of a bar on slots: the bar, the stake in clicks, the draws."""

    top: float
    stake: float
    draws: int

    @property
    def rate(self) -> float:
        """The bar as a rate with three digits."""
        return float(f"{self.top:.3g}")

    @property
    def bar(self) -> Bar:
        return bar_of(self.rate, self.stake)


def tune_bar(market: ReservoirMarket, coarse: ReservoirMarket | None = None) -> tuple[BarNumbers, float]:
    """Find bar, stake and draws of about the smallest regret, and return it; searches in a coarse market if given.

    The start is the best of a bar between each two of the highest values. Each parameter is changed by a factor as long
    as that helps, with smaller and smaller factors.

    >>> prior = [(0.01, 1.0), (0.02, 1.0), (0.03, 1.0)]
    >>> numbers, regret = tune_bar(ReservoirMarket([[prior] * 3] * 5, horizon=10**5))
    >>> numbers.rate, regret < 11.4
    (0.0239, True)
    """
    searched = coarse or market
    most = math.ceil(MOST_DRAWS * max(map(len, market.agents)) * math.log(market.horizon + 1))
    search = PatternSearch[BarNumbers](
        lambda numbers: bar_regret(searched, numbers.bar, numbers.draws, ROUGH),
        work=lambda numbers: len(searched.alike) ** 2 * len(searched.values) * numbers.draws * LEVELS,
        most=WORK,
        gain=GAIN,
    )
    tuned = search.descend(
        min(_starts(searched), key=search.cost),
        lambda numbers, step: [
            _changed(numbers, name, (1 + step) ** sign, most) for name in ("stake", "draws", "top") for sign in (1, -1)
        ],
        halved(*STEPS),
        choose="turns",
    )
    return tuned, bar_regret(market, tuned.bar, tuned.draws, QUOTED)


def _starts(market: ReservoirMarket) -> list[BarNumbers]:
    """Return a bar between each two of the highest values, or of a few quantiles if there are many."""
    values, draws = market.values, DRAWS * max(map(len, market.agents))
    if len(values) > MOST_VALUES:
        values = values[np.searchsorted(np.cumsum(market.average_law), QUANTILES)]
    pairs = pairwise(np.unique(values).tolist())
    between = [max(LOWEST, math.sqrt(max(low, high / 4) * high)) for low, high in pairs] or [HALF]
    return [BarNumbers(bar, STAKE, draws) for bar in between[: -HIGHEST - 1 : -1]]


def _changed(numbers: BarNumbers, name: str, factor: float, most: int) -> BarNumbers:
    """Return the numbers with one of them changed by a factor as far as it goes."""
    moved = numbers._replace(**{name: getattr(numbers, name) * factor})
    whole = math.ceil if factor > 1 else math.floor
    return moved._replace(
        top=min(1.0, max(LOWEST, moved.top)),
        stake=float(f"{moved.stake:.3g}"),
        draws=min(most, max(1, whole(moved.draws))),
    )
