"""A bar on slots: what all agents earn in a market that ends at random, in closed form.

A view costs a slot one point, a click earns it K on average, 1 / K being the bar. An attempt starts with B points and
ends when they are lost. The slot that has failed fewest attempts is shown, ties in an order drawn once. Each view ends
the market with probability 1 / T. An agent earns T times the mean of the slot whose view does, and this is the slot of
fewest failures before the end that its own views would bring: a best of all slots by independent scores.

A slot with mean v loses a point before such an end with probability r, the root of r = (1 - 1 / T) (1 - v + v r^K); if
K is not whole, r^K is a mixture of two powers. It fails an attempt with probability r^B, and A(k), the probability of
failing k attempts, is a power of it. Give each slot a uniform place u in the order. Then a slot with k
failures ends the market if each other slot has failed k times, and once more if it comes first. With s slots of each
agent and x(k, u) = average over its arms of u A(k + 1) + (1 - u) A(k), this has the probability

    s sum over k of  int du  E[x^(s - 1) average of A(k) - A(k + 1)]  prod over the others of E[x^s].

Both expectations are over one agent's means. The integral is of a polynomial, and of a positive mixture of products of
1 - u c. Terms are positive mixtures of powers q^k, whose sum over a block of levels k that is no longer than the levels
before it a Gauss rule with a few nodes gives to full precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from cloneproof._lib.arrays import FloatArray
from cloneproof._lib.schedules import Bar
from cloneproof.laws.arithmetic import legendre_nodes, products_of_other_agents
from cloneproof.laws.draws import DIRECTLY, UniformDraws
from cloneproof.laws.reservoir import ReservoirMarket

NEWTON = 200  # most steps to a root; each is closer to it, from above
ROOT = 1e-15  # relative step at which the root is found
LOWEST = -700.0  # logarithm of the probability that a slot fails which never does
FINE = 1e-22  # probability of what is left out
AT_ONCE = 1_000_000  # numbers in the largest table that is computed at once
DOUBLE = 13  # nodes of a block of levels that leave an error of 2^-52


class BarPath(NamedTuple):
    """Levels and places in the order, as rows: for each value (columns) A there and its fall; weights of the rows."""

    left: FloatArray
    fall: FloatArray
    weights: FloatArray
    amplified: float  # how much a rounding may grow in a probability


def point_losses(values: FloatArray, bar: Bar, horizon: int) -> tuple[FloatArray, float]:
    """Return 1 - r for each mean, and the factor by which a rounding may grow in it.

    Newton's steps approach the root from above, where the difference of both sides is convex.

    >>> losses, _ = point_losses(np.array([0.0, 0.5]), Bar(1, 2, 0.0), 4)  # r = 3/4, and r = 3/4 (1/2 + r^2 / 2)
    >>> np.round(1 - losses, 12).tolist(), round((4 - math.sqrt(7)) / 3, 12)
    ([0.75, 0.451416229645], 0.451416229645)
    """
    _, whole, fraction = bar
    end, clicks = 1 / horizon, (1 - 1 / horizon) * values
    loss = np.minimum(1.0, end + clicks)
    slope = np.ones(loss.shape)
    for _ in range(NEWTON):
        with np.errstate(divide="ignore"):
            missing = -np.expm1(whole * np.log1p(-loss) + np.log1p(-fraction * loss))  # 1 - r^K
        kept = (1 - loss) ** (whole - 1)
        slope = 1 - clicks * kept * (whole * (1 - fraction * loss) + fraction * (1 - loss))
        excess = loss - end - clicks * missing
        loss = loss - excess / slope
        if (excess <= ROOT * loss).all():
            break
    return loss, float((1 / slope).max())


def bar_path(values: FloatArray, bar: Bar, horizon: int, slots: int, precision: float = FINE) -> BarPath:
    """Return all levels and places in the order that `slots` slots of these values reach."""
    losses, amplified = point_losses(values, bar, horizon)
    with np.errstate(divide="ignore"):
        fails = np.maximum(bar.stake * np.log1p(-losses), LOWEST)
    times, weights = _levels(math.ceil(math.log(precision) / (slots * fails.max())), precision)
    falls, reached = -np.expm1(fails), np.exp(times[:, None] * fails)
    kept = reached.max(axis=1) ** slots * weights > precision
    nodes, shares = legendre_nodes(_places(slots, float(falls.max()), precision))
    left = reached[kept, None, :] * (1 - nodes[:, None] * falls)
    fall = np.repeat((reached * falls)[kept], len(nodes), axis=0)
    return BarPath(left.reshape(fall.shape), fall, np.outer(weights[kept], shares).ravel(), amplified)


def bar_pay(draws: UniformDraws, agents: Sequence[int], slots: int, path: BarPath, directly: int = 0) -> FloatArray:
    """Return what one agent of each kind earns, as a part of T; `draws` are of an agent of each kind, `slots` is s.

    The path is that of the values of `draws` and all slots together. Up to `directly` slots errors are relative; with
    more it is faster otherwise.
    """
    several, earned = np.array(agents)[:, None], np.zeros(len(agents))
    width = max(1, AT_ONCE // (len(draws.values) * (slots + 1)))
    for begin in range(0, len(path.weights), width):
        row = slice(begin, begin + width)
        left, _, paid = draws.last_powers(slots, path.left[row], path.fall[row], max(DIRECTLY, directly))
        others = products_of_other_agents(left, several)
        earned += slots * (paid * others * path.weights[row]).sum(axis=1)
    return earned


def bar_regret(market: ReservoirMarket, bar: Bar, draws: int, precision: float = FINE) -> float:
    """Return the expected regret against the best original if everybody is honest and the market ends at random.

    >>> from cloneproof._lib.schedules import bar_of
    >>> prior = [(0.01, 1.0), (0.02, 1.0), (0.03, 1.0)]
    >>> round(bar_regret(ReservoirMarket([[prior] * 3] * 5, horizon=10**5), bar_of(0.025, 0.5), draws=16), 6)
    12.615165
    """
    path = bar_path(market.values, bar, market.horizon, len(market.agents) * draws, precision)
    counts = [*market.alike.values()]
    return market.horizon * (market.best_mean - float(np.dot(counts, bar_pay(market.draws, counts, draws, path))))


def _places(slots: int, fall: float, precision: float) -> int:
    """Return enough Legendre nodes for the integral over the order; (slots + 1) / 2 are exact.

    On the ellipse of radius e a factor 1 - u c is at most 1 + c (h - 1) / 2, with h = (e + 1 / e) / 2. So for every
    e > 1 the error with p nodes is less than 5 exp(slots c (h - 1) / 2) e^(-2 p) / (1 - e^-2).
    """
    radius = 1 + np.geomspace(1e-3, 1e3, 121)
    most = slots * fall * (radius - 1) ** 2 / (4 * radius) + np.log(5 / (1 - radius**-2.0)) - math.log(precision)
    return min(slots // 2 + 1, math.ceil(float((most / (2 * np.log(radius))).min())))


def _levels(count: int, precision: float) -> tuple[FloatArray, FloatArray]:
    """Return levels 0, .., count - 1 with weight 1, after the first few as nodes of blocks that double.

    The Gauss rule of m equal weights has the recurrence of Gram's polynomials. For q^k on levels m, .., 2 m - 1 the
    error with p nodes is at most m 2^(-4 p), since (c m)^(2 p) exp(-c m) / (2 p)! < 1.
    """
    most = min(DOUBLE, math.ceil(-math.log2(precision) / 4))
    begin, times, weights = most, [np.arange(float(min(most, count)))], [np.ones(min(most, count))]
    while begin < count:
        nodes, shares = _gram_nodes(begin, most)
        times.append(begin + nodes)
        weights.append(shares)
        begin *= 2
    return np.concatenate(times), np.concatenate(weights)


@lru_cache(maxsize=64)
def _gram_nodes(count: int, most: int) -> tuple[FloatArray, FloatArray]:
    """Return a Gauss rule with at most so many nodes for sums over 0, .., count - 1."""
    k = np.arange(1.0, min(count, most))
    squares = k**2 * (float(count) ** 2 - k**2) / (4 * (4 * k**2 - 1))
    nodes, vectors = scipy.linalg.eigh_tridiagonal(np.full(len(k) + 1, (count - 1) / 2), np.sqrt(squares))
    return nodes, count * vectors[0] ** 2
