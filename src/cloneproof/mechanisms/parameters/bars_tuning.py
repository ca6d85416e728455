"""Tune bars on slots: a pattern search on the exact regret of `laws.bars`.

With one bar any parameters are clone-proof, and with falling bars most are, so tuning may use whatever the platform
believes about quality, but not what was registered. Work is counted, so that one market has one answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cloneproof._schedules import Bar, bar_of
from cloneproof.laws.bars import bars_regret
from cloneproof.laws.reservoir import ReservoirMarket
from cloneproof.mechanisms.parameters.pattern_search import PatternSearch, halved

ROUGH, QUOTED = 1e-2, 1e-6  # precision during the search, and of the regret that is told; errors are far smaller
MOST_VALUES = 12  # values of a prior between which bars are tried one by one; of more, a few quantiles
QUANTILES = (0.5, 0.8, 0.95, 0.99, 0.999)
HIGHEST = 3  # pairs of neighbouring values between which one bar is tried
RATIO = 0.88  # of neighbouring bars at the start
STAKE = 0.3  # at the start
SLIVER = 0.15  # part of a value below it in which there is no bar, if values are few
SIMPLER = 0.25  # what one bar may cost more than several, as it needs no certificate
HALF = 0.5  # the bar if all values are equal
LOWEST = 1e-9  # a bar
MOST_BARS = 40  # that are tried
DRAWS = 10  # draws at the start for each original
MOST_DRAWS = 1.2  # most draws that are tried, for each original and ln(T)
STEPS = 0.4, 0.04  # first change of a parameter, and one that is too small to try
GAIN = 1e-4  # smallest relative gain that counts
TAIL = 30  # levels whose work the last bar takes
WORK = 4e6  # of a search, in squared kinds of agents times values, draws and levels: some seconds
COST_SECONDS = 0.02  # typical time of one evaluation


class BarNumbers(NamedTuple):
    """Parameters of bars on slots: the highest and the lowest bar, how many there are, the stake in clicks, the draws.

    No bar is just below one of the values to be `avoided`, where copies might gain a little.

    >>> BarNumbers(0.4, 0.1, 3, 1.0, 8).rates, BarNumbers(0.4, 0.1, 3, 1.0, 8, (0.22,)).rates
    ((0.4, 0.2, 0.1), (0.4, 0.1))
    """

    top: float
    bottom: float
    levels: int
    stake: float
    draws: int
    avoided: tuple[float, ...] = ()

    @property
    def rates(self) -> tuple[float, ...]:
        """Bars as rates, in equal ratios but for those that are left out, with three digits."""
        rates = [float(f"{rate:.3g}") for rate in np.geomspace(self.top, self.bottom, self.levels)]
        kept = [rate for rate in rates if not any((1 - SLIVER) * v < rate <= v for v in self.avoided)]
        return tuple(kept or rates[:1])

    @property
    def bars(self) -> list[Bar]:
        return [bar_of(rate, self.stake) for rate in self.rates]


def tune_bars(market: ReservoirMarket, coarse: ReservoirMarket | None = None) -> tuple[BarNumbers, float]:
    """Find bars, stake and draws of about the smallest regret, and return it; searches in a coarse market if given.

    Starts are one bar between each two of the highest values, and bars between all of them. Each parameter is changed
    by a factor as long as that helps, with smaller and smaller factors.

    >>> prior = [(0.01, 1.0), (0.02, 1.0), (0.03, 1.0)]
    >>> numbers, regret = tune_bars(ReservoirMarket([[prior] * 3] * 5, horizon=10**5))
    >>> numbers.rates, regret < 11.4
    ((0.0233,), True)
    """
    searched = coarse or market
    most = math.ceil(MOST_DRAWS * max(map(len, market.agents)) * math.log(market.horizon + 1))
    tuned = [_descend(searched, starts, most) for starts in _starts(searched) if starts]
    regret = [bars_regret(market, numbers.bars, numbers.draws, QUOTED) for numbers in tuned]
    least = 0 if regret[0] <= (1 + SIMPLER) * regret[-1] else -1
    return tuned[least], regret[least]


def _descend(market: ReservoirMarket, starts: Sequence[BarNumbers], most: int) -> BarNumbers:
    """Change one parameter at a time while that helps, by smaller and smaller factors."""
    search = PatternSearch[BarNumbers](
        lambda numbers: bars_regret(market, numbers.bars, numbers.draws, ROUGH),
        work=lambda numbers: len(market.alike) ** 2 * len(market.values) * numbers.draws * (numbers.levels + TAIL),
        most=WORK,
        seconds=COST_SECONDS,
        gain=GAIN,
    )
    best = min(starts, key=search.cost)
    free = ["stake", "draws", "top"] if best.levels == 1 else ["stake", "draws", "both", "top", "bottom", "levels"]
    return search.descend(
        best,
        lambda numbers, step: [_changed(numbers, name, (1 + step) ** sign, most) for name in free for sign in (1, -1)],
        halved(*STEPS),
        choose="turns",
    )


def _starts(market: ReservoirMarket) -> tuple[list[BarNumbers], list[BarNumbers]]:
    """Return one bar between each two of the highest values, and bars between all, or between quantiles of many."""
    values, draws = market.values, DRAWS * max(map(len, market.agents))
    many = len(values) > MOST_VALUES
    if many:
        values = values[np.searchsorted(np.cumsum(market.average_law), QUANTILES)]
    pairs = pairwise(np.unique(values).tolist())
    between = [max(LOWEST, math.sqrt(max(low, high / 4) * high)) for low, high in pairs] or [HALF]
    bottom, top = between[0], between[-1]
    levels = 2 + math.ceil(math.log(top / bottom) / -math.log(RATIO))
    one = [] if many else [BarNumbers(bar, bar, 1, STAKE, draws) for bar in between[: -HIGHEST - 1 : -1]]
    counts, avoided = {max(2, len(between)), levels}, () if many else tuple(values.tolist())
    return one, [BarNumbers(top, bottom, several, STAKE, draws, avoided) for several in counts]


def _changed(numbers: BarNumbers, name: str, factor: float, most: int) -> BarNumbers:
    """Return the numbers with one of them, or both ends of the bars, changed by a factor as far as it goes."""
    whole = math.ceil if factor > 1 else math.floor
    changed = ("top", "bottom") if name == "both" else (name,)
    moved = numbers._replace(**{key: getattr(numbers, key) * factor for key in changed})
    return moved._replace(
        top=min(1.0, max(LOWEST, moved.top)),
        bottom=min(1.0, max(LOWEST, min(moved.top, moved.bottom))),
        levels=min(MOST_BARS, max(1, whole(moved.levels))),
        stake=float(f"{moved.stake:.3g}"),
        draws=min(most, max(1, whole(moved.draws))),
    )
