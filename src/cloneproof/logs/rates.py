"""The law of the rates in a log, with its tail, and what the log says of each item under it.

Three families are fitted to all items, also those that never earned anything, by the likelihood of their rewards with
the rate summed out: a Beta, a logit-normal, and a mixture of two Betas. Of their maxima the one of the best Bayesian
information criterion is taken (Schwarz 1978). What is best among many items depends on the law's tail, so neither
clicks / views, nor posterior means, nor a few levels may stand in for it.

Sums are over a grid that is even in log-odds and reaches as far as the items do. No item is believed to be known better
than two steps of it. A reward with a c-th of a binary one's variance counts as c of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaincinv, expit, log_expit, logit, softmax

from cloneproof._lib.arrays import FloatArray
from cloneproof.logs.log import LoggedArm
from cloneproof.market.priors import Beta, Discrete, Mixture, Point, Prior
from cloneproof.market.segments import LogOdds

CELLS: Final = 600  # of the grid
FAR: Final = 1e-7  # chance, by an item's own rewards, of rates beyond the items on either side
UNSEEN: Final = 1e-3  # rewards expected of the most served item at the lowest of these rates, at least
BEYOND: Final = 1.0  # log-odds by which the grid reaches beyond them
WIDEST: Final = 3.0  # spread of log-odds, at most
TINY: Final = 1e-15  # mass that every point has at least while a law is fitted
LEAST_SHARE: Final = 7.0  # log-odds of a mixture's share, at most
STARTS: Final = (0.5, 0.8, 0.95)  # shares of the items in the lower Beta, from which mixtures start
DIGITS: Final = 5  # significant digits of a fitted number
RateMasses = Callable[[float, float, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class FittedRates:
    """The law of an item's rate, and what the log says of each item: rows over the grid, by owner."""

    law: Prior
    grid: FloatArray
    posterior: Mapping[str, FloatArray]

    def item(self, owner: str, original: int, points: int) -> Prior:
        """Return what the log says of an item's rate: equally likely points, each the mean of a slice."""
        return sliced(self.posterior[owner][original], self.grid, points)


def fit_rates(originals: Mapping[str, Sequence[Sequence[LoggedArm]]]) -> FittedRates:
    """Fit the law to the originals of each owner, groups of arms.

    >>> def shown(rounds, clicks):
    ...     return (LoggedArm("a", "x", rounds, clicks, clicks),)
    >>> fitted = fit_rates({"a": [shown(10**5, clicks) for clicks in (0, 900, 1000, 1100, 4000)]})
    >>> fitted.posterior["a"].shape, round(fitted.item("a", 2, 64).mean, 3)
    ((5, 600), 0.01)
    """
    earned, served = np.array([_pooled(arms) for groups in originals.values() for arms in groups]).T
    places = _places(earned, served)
    kinds, kind_of, number = np.unique(np.stack([earned, served]), axis=1, return_inverse=True, return_counts=True)
    likelihood = _likelihood(kinds[0], kinds[1], places)
    law, masses = _fitted(likelihood, number.astype(float), places)
    rows = likelihood * masses
    rows /= rows.sum(axis=1, keepdims=True)
    ends = np.cumsum([0, *map(len, originals.values())])
    every = rows[kind_of.ravel()]
    posterior = {name: every[low:high] for name, (low, high) in zip(originals, pairwise(ends), strict=True)}
    return FittedRates(law, expit(places), posterior)


def sliced(chances: FloatArray, grid: FloatArray, points: int) -> Prior:
    """Return a law over a grid as equally likely points: the means of slices of equal probability.

    >>> sliced(np.full(2001, 1 / 2001), np.linspace(0, 1, 2001), 2)
    Discrete(values=(0.24988, 0.75012), weights=(0.5, 0.5))
    """
    whole = np.concatenate([[0.0], np.cumsum(chances)])
    earned = np.concatenate([[0.0], np.cumsum(chances * grid)])
    means = np.diff(np.interp(np.linspace(0.0, whole[-1], points + 1), whole, earned)) * points / whole[-1]
    values, counts = np.unique([_rounded(mean) for mean in np.clip(means, 0.0, 1.0)], return_counts=True)
    return Point(float(values[0])) if len(values) == 1 else Discrete(values.tolist(), (counts / points).tolist())


def _pooled(arms: Sequence[LoggedArm]) -> tuple[float, float]:
    """Return how many binary rewards the rewards of one original are worth, and how many of these are 1."""
    if not arms:
        return 0.0, 0.0
    rounds = sum(arm.rounds for arm in arms)
    mean = float(sum(arm.total for arm in arms) / rounds)
    variance = float(sum(arm.squares for arm in arms) / rounds) - mean * mean
    worth = min(max(mean * (1 - mean) / variance, 1.0), 1e3) if variance > 1e-9 else 1.0
    return mean * rounds * worth, rounds * worth


def _places(earned: FloatArray, served: FloatArray) -> FloatArray:
    """Return the grid, in log-odds."""
    seen = served > 0
    up, down = earned[seen] + 0.5, served[seen] - earned[seen] + 0.5
    least = UNSEEN / float(served[seen].max(initial=1.0))
    low = max(float(betaincinv(up, down, FAR).min(initial=0.5)), least)
    high = max(float(betaincinv(down, up, FAR).min(initial=0.5)), least)
    return np.asarray(np.linspace(logit(low) - BEYOND, BEYOND - logit(high), CELLS))


def _likelihood(earned: FloatArray, served: FloatArray, places: FloatArray) -> FloatArray:
    """Return the likelihood of each item (rows) at each point of the grid, 1 at its largest."""
    smooth = (earned + 0.5) / (served + 1.0)
    believed = np.minimum(served, np.maximum(1.0, 1 / (smooth * (1 - smooth) * (2 * _step(places)) ** 2)))
    counted = np.divide(believed, served, out=np.zeros(len(served)), where=served > 0)
    up, down = (counted * earned)[:, None], (counted * (served - earned))[:, None]
    logs = up * log_expit(places) + down * log_expit(-places)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _step(places: FloatArray) -> float:
    return float(places[1] - places[0])


def _fitted(likelihood: FloatArray, number: FloatArray, places: FloatArray) -> tuple[Prior, FloatArray]:
    """Return the law of the best family, and its masses on the grid; there are so many items of each kind (row).

    Every part of a law has a centre c and a spread s of log-odds: a logit-normal these, a Beta the mean m = expit(c)
    and the parameters 1 / (s^2 (1 - m)) and 1 / (s^2 m). With w the masses and r the sum of the items' posteriors, the
    log-likelihood has the derivative sum (r - n w) h', where h' is that of a mass's logarithm (Fisher's identity).
    """
    count, step = float(number.sum()), _step(places)
    even = number @ (likelihood / likelihood.sum(axis=1, keepdims=True)) / count
    centre = float(even @ places)
    spread = math.log(min(max(math.sqrt(float(even @ (places - centre) ** 2)), 2 * step), WIDEST))
    limits = [(float(places[0]), float(places[-1])), (math.log(2 * step), math.log(max(WIDEST, 4 * step)))]

    def fitted(parts: Sequence[RateMasses], start: Sequence[float]) -> tuple[float, FloatArray, FloatArray]:
        """Climb from a start; return the surprise, the numbers and the masses. The first of two parts has a share."""

        def at(numbers: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            shares = np.array([1.0]) if len(parts) == 1 else expit(np.array([numbers[0], -numbers[0]]))
            own = [part(pair[0], pair[1], places) for part, pair in zip(parts, _pairs(numbers), strict=True)]
            masses = sum(share * mass for share, (mass, _) in zip(shares, own, strict=True))
            seen = likelihood @ (masses + TINY)
            weights = (number / seen) @ likelihood
            rise = [] if len(parts) == 1 else [shares[0] * float(weights @ own[0][0]) - count * shares[0]]
            for share, (mass, slopes) in zip(shares, own, strict=True):
                explained = share * weights * mass
                rise += list(slopes @ (explained - explained.sum() * mass))
            return -float(number @ np.log(seen)), -np.array(rise), masses

        bounds = [*([(-LEAST_SHARE, LEAST_SHARE)] if len(parts) == 2 else []), *limits * len(parts)]
        inside = [min(max(number, low), high) for number, (low, high) in zip(start, bounds, strict=True)]
        end = minimize(lambda numbers: at(numbers)[:2], inside, jac=True, method="L-BFGS-B", bounds=bounds)
        return float(end.fun), end.x, at(end.x)[2]

    alone, apart = [centre, spread], math.exp(spread)
    low, narrow = centre - apart / 2, spread - 1
    two = [(float(logit(share)), low, narrow, centre + 2 * share * apart, narrow) for share in STARTS]
    both = [fitted([_beta, _beta], start) for start in two]
    candidates = [fitted([_beta], alone), fitted([_normal], alone), min(both, key=itemgetter(0))]
    scores = [2 * surprise + len(numbers) * math.log(count) for surprise, numbers, _ in candidates]
    family = int(np.argmin(scores))
    _, numbers, masses = candidates[family]
    laws = [Beta(*map(_rounded, _shape(*pair))) for pair in _pairs(numbers)]
    if family == 1:
        return LogOdds(_rounded(float(expit(numbers[0]))), _rounded(math.exp(numbers[1]))), masses
    share = _rounded(float(expit(numbers[0])))
    return (laws[0] if len(laws) == 1 else Mixture([share, 1 - share], laws)), masses


def _pairs(numbers: FloatArray) -> list[FloatArray]:
    """Return centre and log of the spread of each part: of five numbers the first is a share."""
    return [numbers] if len(numbers) == 2 else [numbers[1:3], numbers[3:5]]


def _shape(centre: float, log_spread: float) -> tuple[float, float]:
    mean, precision = float(expit(centre)), math.exp(-2 * log_spread)
    return precision / (1 - mean), precision / mean


def _beta(centre: float, log_spread: float, places: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the masses of a Beta, and the derivatives of their logarithms by centre and log of the spread."""
    (a, b), mean = _shape(centre, log_spread), float(expit(centre))
    up, down = a * log_expit(places), b * log_expit(-places)
    return softmax(up + down), np.stack([mean * up - (1 - mean) * down, -2 * (up + down)])


def _normal(centre: float, log_spread: float, places: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the same of a logit-normal."""
    away = (places - centre) * math.exp(-log_spread)
    return softmax(-(away**2) / 2), np.stack([away * math.exp(-log_spread), away**2])


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
