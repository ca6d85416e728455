"""The law of the rates in a log, with its tail: draws of it, and what each draw says of every item.

What is best among many items depends on the law's tail, and neither clicks / views, nor posterior means, nor one family
of laws may stand in for it. So seven families are fitted to all items, also those that never earned anything, by the
likelihood of their rewards with the rate summed out: a Beta, a logit-normal, two Betas, equal rates, two and three
points, and an asymmetric Laplace in the log-odds, whose tails are powers. Weights by Schwarz's criterion (1978) say how
many of the draws a family gets, and a Metropolis chain within it gives the parameters of each; of the items under these
parameters, rates are drawn too. An answer that is averaged over the draws knows what the log leaves open.

Sums are over a grid that is even in log-odds; points lie anywhere. No item is believed to be known better than two
steps of the grid. A reward with a c-th of a binary one's variance counts as c of them.

Parameters lie on a lattice of binary fractions, and searches and chains only compare likelihoods: rounding, which
differs between processors, decides about once in 10^9 comparisons, and one seed gives one answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Final, NamedTuple

import numpy as np
from scipy.special import betaincinv, expit, log_expit, logit, softmax

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof.market.priors import Discrete, Mixture, Point, Prior, Uniform

DRAWS: Final = 200
CELLS: Final = 600  # of the grid
FAR: Final = 1e-7  # chance, by an item's own rewards, of rates beyond the items on either side
UNSEEN: Final = 1e-3  # rewards expected of the most served item at the lowest of these rates, at least
BEYOND: Final = 2.0  # log-odds by which the grid reaches beyond them
WIDEST: Final = 3.0  # spread of log-odds, at most
TINY: Final = 1e-15  # mass that every point has at least while a law is fitted
LATTICE: Final = 2.0**-20  # of parameters
STEPS: Final = 1600  # of a chain,
LEARNT: Final = 400  # of which the first ones tell how far to step, and are not used
SLICE: Final = 0.4  # log-odds of probability that a slice of a law which is written down is wide
OUTER: Final = 1e-4  # probability of its outer slices
LEAST_MASS: Final = 1e-7  # of a cell that counts then
DIGITS: Final = 6  # of a rate


class Law(NamedTuple):
    """Log-odds that a rate may have, and their probabilities."""

    places: FloatArray
    masses: FloatArray


@dataclass(frozen=True)
class Family:
    """A family of laws: its name, the law of some parameters on a grid, and their limits; `starts` of some items.

    Parameters are centres in log-odds (c), logarithms of spreads (s), and shares (p).
    """

    name: str
    kinds: str
    law: Callable[[FloatArray, FloatArray], Law]

    def limits(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        step = float(places[1] - places[0])
        ends = {
            "c": (float(places[0]), float(places[-1])),
            "s": (math.log(2 * step), math.log(max(WIDEST, 4 * step))),
            "p": (0.001, 0.999),
        }
        low, high = zip(*(ends[kind] for kind in self.kinds), strict=True)
        return np.array(low), np.array(high)


def _beta(centre: float, log_spread: float, places: FloatArray) -> FloatArray:
    """Return the masses of the Beta of mean m = expit(c) with the parameters 1 / (s^2 (1 - m)) and 1 / (s^2 m)."""
    mean, precision = float(expit(centre)), math.exp(-2 * log_spread)
    return np.asarray(
        softmax(precision / (1 - mean) * log_expit(places) + precision / mean * log_expit(-places)), dtype=float
    )


def _two_betas(numbers: FloatArray, places: FloatArray) -> Law:
    share, one, narrow, other, wide = map(float, numbers)
    return Law(places, share * _beta(one, narrow, places) + (1 - share) * _beta(other, wide, places))


def _normal(numbers: FloatArray, places: FloatArray) -> Law:
    return Law(places, softmax(-(((places - numbers[0]) * math.exp(-numbers[1])) ** 2) / 2))


def _laplace(numbers: FloatArray, places: FloatArray) -> Law:
    away = places - numbers[0]
    return Law(places, softmax(np.where(away < 0, away * math.exp(-numbers[1]), -away * math.exp(-numbers[2]))))


def _points(numbers: FloatArray, _: FloatArray) -> Law:
    """Return the law of 1, 2 or 3 points: their log-odds, then shares, each of what those before have left."""
    count = (len(numbers) + 1) // 2
    left, masses = 1.0, []
    for share in numbers[count:]:
        masses.append(left * share)
        left *= 1 - share
    return Law(numbers[:count], np.array([*masses, left]))


FAMILIES: Final = (
    Family("Beta", "cs", lambda numbers, places: Law(places, _beta(float(numbers[0]), float(numbers[1]), places))),
    Family("logit-normal", "cs", _normal),
    Family("two Betas", "pcscs", _two_betas),
    Family("equal", "c", _points),
    Family("two points", "ccp", _points),
    Family("three points", "cccpp", _points),
    Family("Laplace", "css", _laplace),
)


class Items(NamedTuple):
    """Kinds of items: rewards and rounds of each, how many of it there are; the likelihood of each cell, 1 at its best.

    `peaks` are the logarithms of that best likelihood.
    """

    earned: FloatArray
    missed: FloatArray
    number: FloatArray
    places: FloatArray
    likelihood: FloatArray
    peaks: FloatArray

    @classmethod
    def of(cls, earned: FloatArray, served: FloatArray, number: FloatArray, places: FloatArray) -> Items:
        step, smooth = float(places[1] - places[0]), (earned + 0.5) / (served + 1.0)
        believed = np.minimum(served, np.maximum(1.0, 1 / (smooth * (1 - smooth) * (2 * step) ** 2)))
        counted = np.divide(believed, served, out=np.zeros(len(served)), where=served > 0)
        up, down = counted * earned, counted * (served - earned)
        logs = _log_likelihood(up, down, places)
        peaks = logs.max(axis=1)
        return cls(up, down, number, places, np.exp(logs - peaks[:, None]), peaks)

    def under(self, law: Law) -> FloatArray:
        """Return the likelihood of each kind at each of a law's places."""
        if law.places is self.places:
            return self.likelihood
        return np.asarray(np.exp(_log_likelihood(self.earned, self.missed, law.places) - self.peaks[:, None]))

    def fit(self, law: Law) -> float:
        """Return the log-likelihood of all items."""
        return float(self.number @ np.log(self.under(law) @ law.masses + TINY))


def _log_likelihood(up: FloatArray, down: FloatArray, places: FloatArray) -> FloatArray:
    return np.asarray(up[:, None] * log_expit(places) + down[:, None] * log_expit(-places))


@dataclass(frozen=True)
class FittedRates:
    """Draws of the law of an item's rate, and of each item's rate under it.

    families   how many draws each family has
    laws       of each draw: the law
    rates      draws x items: the items' rates
    grid       the rates of cells, and
    average    the average law over them; `posterior` is that of each item
    """

    families: dict[str, int]
    laws: tuple[Law, ...]
    rates: FloatArray
    grid: FloatArray
    average: FloatArray
    posterior: FloatArray

    @cached_property
    def prior(self) -> Mixture:
        """The average law, as a mixture of slices: in each, rates are uniform."""
        return slices(self.average, self.grid)

    def item(self, item: int, points: int) -> Prior:
        """Return what the log says of an item's rate: equally likely points, each the mean of a slice."""
        return sliced(self.posterior[item], self.grid, points)

    def fresh(self, rows: int, items: int, seed: int) -> FloatArray:
        """Return rates of new items: row r has those of draw r modulo the number of draws."""
        levels = np.random.default_rng([seed, 1]).random((rows, items))
        drawn = np.empty((rows, items))
        for number, law in enumerate(self.laws):
            own = slice(number, None, len(self.laws))
            drawn[own] = rates_at(law.places)[_chosen(law.masses, levels[own])]
        return drawn

    def quantile(self, level: float) -> float:
        """Return the rate below which that part of the items lies."""
        return float(self.grid[_chosen(self.average, np.array(level))])


def rates_at(places: FloatArray) -> FloatArray:
    """Return the rates of log-odds, rounded alike on every machine."""
    return np.array([float(f"{rate:.10g}") for rate in expit(places)])


def _chosen(masses: FloatArray, levels: FloatArray) -> IntArray:
    cumulated = np.cumsum(masses)
    return np.minimum(np.searchsorted(cumulated / cumulated[-1], levels, side="right"), len(masses) - 1)


def fit_rates(
    earned: Sequence[float], served: Sequence[float], asked: Sequence[int] | None = None, seed: int = 0
) -> FittedRates:
    """Fit the law to what items earned and how often they were served; draw the rates of those `asked` for, or of all.

    >>> fitted = fit_rates([900, 1000, 1100, 4000, 0], [10**5] * 5)
    >>> fitted.rates.shape, round(fitted.item(1, 64).mean, 3)
    ((200, 5), 0.01)
    """
    table = np.array([earned, served], float)
    places = _places(*table)
    kinds, kind_of, number = np.unique(table, axis=1, return_inverse=True, return_counts=True)
    items = Items.of(kinds[0], kinds[1], number.astype(float), places)
    dice = np.random.default_rng([seed, 0])
    best = [(family, *_climbed(family, items)) for family in FAMILIES]
    scores = np.array([2 * fit - len(top) * math.log(len(table[0])) for family, top, fit in best])
    shares = np.round(DRAWS * np.cumsum(softmax(scores / 2))).astype(int)
    counts = np.diff([0, *shares])
    rows = kind_of.ravel()[np.arange(len(table[0])) if asked is None else np.array(asked, int)]
    used, where = np.unique(rows, return_inverse=True)
    laws, rates = list[Law](), list[FloatArray]()
    average, posterior = np.zeros(CELLS), np.zeros((len(used), CELLS))
    for (family, top, _), count in zip(best, counts, strict=True):
        for numbers in _chain(family, items, top, dice)[:: max(1, (STEPS - LEARNT) // count)][:count] if count else []:
            law = family.law(numbers, places)
            own = items.under(law)[used] * (law.masses + TINY)
            own /= own.sum(axis=1, keepdims=True)
            levels = dice.random(len(rows))
            cells = (np.cumsum(own, axis=1)[where] < levels[:, None]).sum(axis=1)
            laws.append(law)
            rates.append(rates_at(law.places)[np.minimum(cells, len(law.places) - 1)])
            average += _on_grid(law, law.masses, places)
            posterior += _on_grid(law, own, places)
    told = {family.name: int(count) for family, count in zip(FAMILIES, counts, strict=True) if count}
    order = np.random.default_rng([seed, 2]).permutation(DRAWS)
    return FittedRates(
        told, tuple(laws[k] for k in order), np.array(rates)[order], rates_at(places), average / DRAWS,
        posterior[where] / DRAWS,
    )  # fmt: skip


def _on_grid(law: Law, masses: FloatArray, places: FloatArray) -> FloatArray:
    """Return masses over the grid; those of a point go to the cells on both sides of it."""
    if law.places is places:
        return masses
    spread = np.zeros((*masses.shape[:-1], CELLS))
    along = (law.places - places[0]) / (places[1] - places[0])
    left = np.clip(along.astype(int), 0, CELLS - 2)
    for k, place in enumerate(left):
        right = along[k] - place
        spread[..., place] += masses[..., k] * (1 - right)
        spread[..., place + 1] += masses[..., k] * right
    return spread


def _places(earned: FloatArray, served: FloatArray) -> FloatArray:
    """Return the grid, in log-odds; its ends are quarters."""
    seen = served > 0
    up, down = earned[seen] + 0.5, served[seen] - earned[seen] + 0.5
    least = UNSEEN / float(served[seen].max(initial=1.0))
    low = max(float(betaincinv(up, down, FAR).min(initial=0.5)), least)
    high = max(float(betaincinv(down, up, FAR).min(initial=0.5)), least)
    ends = math.floor(4 * (logit(low) - BEYOND)) / 4, math.ceil(4 * (BEYOND - logit(high))) / 4
    return np.asarray(np.linspace(*ends, CELLS))


def _starts(family: Family, items: Items) -> list[FloatArray]:
    """Return where to begin: the items' centre and spread, or those of the lower and the upper ones, cut somewhere."""
    own = np.log((items.earned + 0.5) / (items.missed + 0.5))
    order = np.argsort(own, kind="stable")
    own, weight = own[order], np.minimum(items.earned, 10.0)[order] * items.number[order] + 0.1
    below = np.cumsum(items.number[order]) / items.number.sum()

    def part(low: float, high: float) -> tuple[float, float]:
        inside = (below > low) & (below <= high)
        if not inside.any():
            inside[np.argmin(abs(below - (low + high) / 2))] = True
        centre = float(np.average(own[inside], weights=weight[inside]))
        variance = float(np.average((own[inside] - centre) ** 2, weights=weight[inside]))
        return centre, math.log(max(0.05, math.sqrt(variance)))

    parts = max(family.kinds.count("c"), 1)
    cuts = [c for c in product((0.1, 0.25, 0.5, 0.75, 0.9, 0.97), repeat=parts - 1) if list(c) == sorted(set(c))]
    starts = []
    for cut in cuts:
        centres, spreads = zip(*(part(*ends) for ends in pairwise([0.0, *cut, 1.0])), strict=True)
        shares = [(high - low) / (1 - low) for low, high in pairwise([0.0, *cut])]
        left = {"c": iter(centres), "s": iter((*spreads, *spreads)), "p": iter(shares)}
        starts.append(np.array([next(left[kind]) for kind in family.kinds]))
    return starts


def _climbed(family: Family, items: Items) -> tuple[FloatArray, float]:
    """Return the most likely parameters, by a search along each of them in steps that halve, and the log-likelihood."""
    low, high = family.limits(items.places)

    def at(numbers: FloatArray) -> float:
        return items.fit(family.law(numbers, items.places))

    inside = [_on_lattice(np.clip(start, low, high)) for start in _starts(family, items)]
    fits = [at(start) for start in inside]
    top, fit = inside[int(np.argmax(fits))], max(fits)
    step = 0.25
    while step > 0.002:
        moved = False
        for place, sign in product(range(len(top)), (1.0, -1.0)):
            other = top.copy()
            other[place] += sign * step * (0.2 if family.kinds[place] == "p" else 1.0)
            other = _on_lattice(np.clip(other, low, high))
            if (higher := at(other)) > fit + 1e-9:
                top, fit, moved = other, higher, True
        step = step if moved else step / 2
    return top, fit


def _on_lattice(numbers: FloatArray) -> FloatArray:
    return np.asarray(np.round(numbers / LATTICE) * LATTICE)


def _chain(family: Family, items: Items, top: FloatArray, dice: np.random.Generator) -> FloatArray:
    """Return parameters from a Metropolis chain that begins at the top; all are equally likely beforehand.

    Steps are first by the curvature along each parameter, and then by the covariance of those so far (Haario, Saksman
    and Tamminen 2001), which afterwards stays.
    """
    (low, high), count = family.limits(items.places), len(top)

    def at(numbers: FloatArray) -> float:
        return items.fit(family.law(numbers, items.places))

    fit, alone = at(top), _deviations(at, top, low, high)
    root: FloatArray = np.diag(alone)
    states, size = np.empty((STEPS, count)), 2.4 / math.sqrt(count)
    normals, chances = dice.standard_normal((STEPS, count)), np.log(dice.random(STEPS))
    now = top
    for step in range(STEPS):
        if step == LEARNT:
            covariance = np.cov(states[:LEARNT].T).reshape(count, count)
            root = np.asarray(np.linalg.cholesky(covariance + np.diag((0.02 * alone) ** 2 + LATTICE)), float)
        other = _on_lattice(now + size * (root @ normals[step]))
        if ((other >= low) & (other <= high)).all() and (higher := at(other)) - fit > chances[step]:
            now, fit = other, higher
        states[step] = now
    return states[LEARNT:]


def _deviations(at: Callable[[FloatArray], float], top: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the step along each parameter at which the log-likelihood is lower by about a half."""
    found, fit = np.empty(len(top)), at(top)
    for place in range(len(top)):
        step = (high[place] - low[place]) / 4
        while step > 1e-4:
            ends = [top.copy(), top.copy()]
            ends[0][place], ends[1][place] = max(low[place], top[place] - step), min(high[place], top[place] + step)
            if fit - max(map(at, ends)) < 1.0:
                break
            step /= 2
        found[place] = max(LATTICE, round(step / LATTICE) * LATTICE)
    return found


def sliced(chances: FloatArray, grid: FloatArray, points: int) -> Prior:
    """Return a law over a grid as equally likely points: the means of slices of equal probability.

    >>> sliced(np.full(2001, 1 / 2001), np.linspace(0, 1, 2001), 2)
    Discrete(values=(0.249875, 0.750125), weights=(0.5, 0.5))
    """
    whole = np.concatenate([[0.0], np.cumsum(chances)])
    earned = np.concatenate([[0.0], np.cumsum(chances * grid)])
    means = np.diff(np.interp(np.linspace(0.0, whole[-1], points + 1), whole, earned)) * points / whole[-1]
    values, counts = np.unique([_rounded(mean) for mean in np.clip(means, 0.0, 1.0)], return_counts=True)
    return Point(float(values[0])) if len(values) == 1 else Discrete(values.tolist(), (counts / points).tolist())


def slices(chances: FloatArray, grid: FloatArray) -> Mixture:
    """Return a law over a grid with its tails: slices that are even in the log-odds of probability, without gaps in it.

    >>> law = slices(np.full(500, 1 / 500), np.linspace(0.001, 0.999, 500))
    >>> len(law.priors) < 50, round(law.mean, 3), round(law.quantile(0.99), 2)
    (True, 0.5, 0.99)
    """
    middles = np.cumsum(chances) - chances / 2
    edges = np.concatenate([grid[:1], (grid[1:] + grid[:-1]) / 2, grid[-1:]])
    kept = np.flatnonzero(chances > LEAST_MASS)
    kind = np.floor(logit(np.clip(middles[kept], OUTER, 1 - OUTER)) / SLICE)
    ends = [0, *(np.flatnonzero((np.diff(kind) != 0) | (np.diff(kept) > 1)) + 1), len(kept)]
    parts = [kept[low:high] for low, high in pairwise(ends)]
    weights = [float(f"{chances[own].sum():.9f}") for own in parts]
    priors = [_slice(float(edges[own[0]]), float(edges[own[-1] + 1])) for own in parts]
    return Mixture([weight / math.fsum(weights) for weight in weights], priors)


def _slice(low: float, high: float) -> Uniform:
    """Return an even law, its ends in few digits, unless these are alike (next to 1 they may be)."""
    ends = _rounded(low), _rounded(high)
    return Uniform(*ends) if ends[0] < ends[1] else Uniform(low, high)


def _rounded(rate: float) -> float:
    return float(f"{rate:.{DIGITS}g}")
