"""Drift in a log: whether rates move from week to week more than by chance, by how much, and how long a rate lasts.

Rates of all items may move together, as with a season or the traffic: a factor for each week, fitted so that the items
shown in it earned what their own means say. That changes who is best no more than a longer week would. What is left is
an item's own movement. Both have Pearson's statistic, over cells that expect at least five rewards and failures, which
is chi-square without movement.

How long a rate lasts is said in the terms of `cp.recommend(drift=..)`: a rate is drawn again from its prior with
probability 1/D in a round. Averages over weeks of R = u D rounds then have these covariances, V the prior's variance:

    Var = V f(u), f(u) = 2 (u - 1 + e^-u) / u^2;    Cov of two neighbours = V g(u), g(u) = ((1 - e^-u) / u)^2,

so the mean square of a step between weeks, less its noise, over twice the variance of means over W weeks estimates
(f(u) - g(u)) / f(W u), which rises with u. Steps count by the inverse variance of their squares. The interval is that
of 95 % of bootstrap samples of items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.logs.log import Log
from cloneproof.logs.originals import ArmPlace, LogOwner

LEAST_EXPECTED: Final = 5.0  # rewards and failures that a cell must expect
LEVEL: Final = 0.001  # of the tests
STEPS: Final = 12  # of fits, which are done after three or four
SAMPLES: Final = 100  # of the bootstrap
SEED: Final = 43
RANGE: Final = (1e-6, 1e3)  # of u


@dataclass(frozen=True)
class Drift:
    """Movement of a log's rates.

    what      "weeks", "days" or "spans"
    names     of them
    rounds    in each
    factors   of the rates of all items in each, 1 on average
    together  p-value of rates that stay
    alone     p-value of rates that move only together
    own       standard deviation of an item's own movement, of its rate
    lifetime  rounds after which a rate is drawn again, and the ends of a 95 % interval; None if items do not move alone
    """

    what: str
    names: tuple[str, ...]
    rounds: tuple[int, ...]
    factors: tuple[float, ...]
    together: float
    alone: float
    own: float
    lifetime: tuple[float, float, float] | None

    @property
    def moves(self) -> bool:
        return min(self.together, self.alone) < LEVEL / 2


def fitted_drift(log: Log, owners: Sequence[LogOwner]) -> Drift | None:
    """Return how rates of the owners' originals move; None without times, or with too few rewards to tell."""
    cells = log.weeks
    if cells is None or len(cells.names) < 3:
        return None
    row_of: dict[ArmPlace, int] = {arm.place: row for row, arm in enumerate(log.arms)}
    groups = [[row_of[arm.place] for arm in group] for owner in owners for group in owner.originals]
    rounds, totals = (
        np.array([table[group].sum(axis=0) for group in groups]) for table in (cells.rounds, cells.totals)
    )
    factors, means = _together(rounds, totals)
    together, alone = (_unlikely(rounds, totals, fixed) for fixed in (True, False))
    if together is None or alone is None:
        return None
    expected = means[:, None] * factors
    seen = _enough(rounds, expected)
    weights = (rounds * expected)[seen]
    excess = (totals / np.maximum(rounds, 1) / np.maximum(expected, 1e-300) - 1)[seen] ** 2
    own = math.sqrt(max(0.0, float(np.average(excess, weights=weights) - seen.sum() / weights.sum())))
    length = float(rounds.sum()) / len(cells.names)
    lifetime = _lifetime(rounds, totals, factors, length) if alone < LEVEL / 2 else None
    views = tuple(int(count) for count in cells.rounds.sum(axis=0))
    return Drift(cells.what, cells.names, views, tuple(map(float, factors)), together, alone, own, lifetime)


def _together(rounds: FloatArray, totals: FloatArray, fixed: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return the factor of each week, 1 on average over rounds (1 everywhere if fixed), and the items' means at 1."""
    factors, share = np.ones(rounds.shape[1]), rounds.sum(axis=0) / rounds.sum()
    means = totals.sum(axis=1) / np.maximum(rounds.sum(axis=1), 1e-300)
    for _ in range(0 if fixed else STEPS):
        factors = totals.sum(axis=0) / np.maximum(means @ rounds, 1e-300)
        factors = np.where(factors > 0, factors, 1.0)
        factors /= share @ factors
        means = totals.sum(axis=1) / np.maximum(rounds @ factors, 1e-300)
    return factors, means


def _enough(rounds: FloatArray, expected: FloatArray) -> npt.NDArray[np.bool_]:
    return np.asarray(rounds * np.minimum(expected, 1 - expected) >= LEAST_EXPECTED)


def _unlikely(rounds: FloatArray, totals: FloatArray, fixed: bool) -> float | None:
    """Return the p-value of rates that are an item's mean, times the week's factor unless fixed; None of few cells."""
    from scipy.special import chdtrc  # slow to import, and not always needed

    factors, means = _together(rounds, totals, fixed)
    seen = _enough(rounds, means[:, None] * factors)
    seen &= (seen.sum(axis=1) > 1)[:, None]
    items, weeks = (int(seen.any(axis=axis).sum()) for axis in (1, 0))
    freedom = int(seen.sum()) - items - (0 if fixed else max(weeks - 1, 0))
    if freedom <= 0:
        return None
    rounds, totals = rounds * seen, totals * seen  # what is fitted is fitted again to the cells that count
    factors, means = _together(rounds, totals, fixed)
    expected = np.clip(means[:, None] * factors, 1e-12, 1 - 1e-12)
    terms = (totals - rounds * expected) ** 2 / np.maximum(rounds * expected * (1 - expected), 1e-300)
    return float(chdtrc(freedom, terms[seen].sum()))


def _lifetime(
    rounds: FloatArray, totals: FloatArray, factors: FloatArray, length: float
) -> tuple[float, float, float] | None:
    """Return the lifetime of a rate in rounds with the ends of its interval, given the rounds of a week."""
    seen = _enough(rounds, totals / np.maximum(rounds, 1))
    rates = totals / np.maximum(rounds * factors, 1e-300)
    noise = rates / factors / np.maximum(rounds, 1)  # of a rate: about p / n
    pairs = seen[:, 1:] & seen[:, :-1]
    steps = np.where(pairs, (rates[:, 1:] - rates[:, :-1]) ** 2, 0.0)
    errors = np.where(pairs, noise[:, 1:] + noise[:, :-1], 1.0)
    means = totals.sum(axis=1) / np.maximum(rounds @ factors, 1e-300)
    spread = means / np.maximum(rounds.sum(axis=1), 1)
    weeks = rounds.shape[1]

    def fitted(items: IntArray) -> float:
        square, rated = 0.0, seen[items].any(axis=1)
        for _ in range(STEPS):
            weights = pairs[items] / (errors[items] + square) ** 2
            square = max(0.0, float((weights * (steps - errors)[items]).sum() / max(weights.sum(), 1e-300)))
        apart = means[items][rated]
        between = float(apart.var(ddof=1) - spread[items][rated].mean()) if len(apart) > 1 else 0.0
        return length / _solved(square / (2 * between) if between > 0 else math.inf, weeks)

    dice, everybody = np.random.default_rng(SEED), np.arange(len(rounds))
    if pairs.sum() < 2 or len(everybody) < 2:
        return None
    drawn = [fitted(dice.choice(everybody, len(everybody))) for _ in range(SAMPLES)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return fitted(everybody), float(low), float(high)


def _solved(ratio: float, weeks: int) -> float:
    """Return u with (f(u) - g(u)) / f(weeks u) = ratio, within RANGE.

    >>> round(_solved((_f(0.3) - _g(0.3)) / _f(2.4), 8), 6)
    0.3
    """
    low, high = (math.log(end) for end in RANGE)
    for _ in range(100):
        middle = (low + high) / 2
        u = math.exp(middle)
        low, high = (middle, high) if (_f(u) - _g(u)) / _f(weeks * u) < ratio else (low, middle)
    return math.exp((low + high) / 2)


def _f(u: float) -> float:
    return 1 - u / 3 + u * u / 12 if u < 1e-3 else 2 * (u + math.expm1(-u)) / u**2


def _g(u: float) -> float:
    return 1 - u + 7 * u * u / 12 if u < 1e-3 else (math.expm1(-u) / u) ** 2
