"""The probability that each of independent draws from Beta posteriors is the largest, in many states at once.

After n coins of which s showed 1, the posterior of Beta(1, 1) is Beta(1 + s, 1 + n - s). With whole parameters its
density f and its distribution function F are polynomials of degree n and n + 1, so P(i is largest), the integral over
[0, 1] of f_i times the product of all F_j but F_i, is that of a polynomial of degree N + K - 1, where N counts all
coins and K the candidates. A Gauss-Legendre rule of ceil((N + K) / 2) nodes integrates it exactly (Stoer and Bulirsch,
Introduction to Numerical Analysis, section 3.6). Ties have probability 0.

Rounding. Nodes x, 1 - x and weights are taken from balls and rounded once, f and F are sums of products of x and 1 - x
with positive numbers, and so is the whole, hence nothing cancels. With M = N + K, relative errors in units of 2^-53 add
up to at most M (the nodes: a polynomial of degree below M in x and 1 - x) + 3 M (tables of F and f: a product, a sum
and a partial sum for each degree) + M (the product of all F; f_i is divided by the same float F_i that is in it) +
M / 2 (the sum over nodes) + 6, which `draw_roundings` states as 6 M + 8.
"""

from __future__ import annotations

from functools import lru_cache

import flint
import numpy as np

from cloneproof._arrays import FloatArray, IntArray

MOST_DEGREE = 88  # coins and candidates together: up to here no product at any node is below the smallest normal float
CHUNK = 1 << 19  # numbers in an array of states and nodes


def draw_nodes(coins: int, candidates: int) -> int:
    """The nodes at which the quadrature is exact."""
    return (coins + candidates + 1) // 2


def draw_roundings(coins: int, candidates: int) -> int:
    """A bound of the relative error of each probability, in units of 2^-53."""
    return 6 * (coins + candidates) + 8


def largest_draw(coins: IntArray, ones: IntArray) -> FloatArray:
    """P(candidate (row) has the largest draw) in each state (column).

    >>> largest_draw(np.array([[0], [1]]), np.array([[0], [1]]))[:, 0].round(12).tolist()
    [0.333333333333, 0.666666666667]
    """
    candidates, states = coins.shape
    most = int(coins.max(initial=0))
    nodes = draw_nodes(int(coins.sum(axis=0).max(initial=0)), candidates)
    below, ratio, weights = _tables(most, nodes)
    code = coins * (coins + 1) // 2 + ones
    shares = np.empty((candidates, states))
    step = max(1, CHUNK // nodes)
    for start in range(0, states, step):
        part = code[:, start : start + step]
        product = below[part[0]] * weights
        for row in part[1:]:
            product *= below[row]
        for k, row in enumerate(part):
            shares[k, start : start + step] = np.einsum("sq,sq->s", product, ratio[row])
    return shares


@lru_cache(maxsize=256)
def _tables(most: int, nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """F and f / F at the nodes for all (coins, ones) up to `most` coins, in rows n (n + 1) / 2 + s; and the weights."""
    x, y, weights = _rule(nodes)
    law = np.ones((1, nodes))  # of the number of ones among n coins of probability x
    below, ratio = [], []
    for n in range(most + 1):
        after = np.zeros((n + 2, nodes))
        after[:-1] = law * y
        after[1:] += law * x
        distribution = np.cumsum(after[:0:-1], axis=0)[::-1]  # P(Beta <= x) = P(more than s ones among n + 1 coins)
        below.append(distribution)
        ratio.append((n + 1) * law / distribution)
        law = after
    return np.concatenate(below), np.concatenate(ratio), weights


@lru_cache(maxsize=256)
def _rule(nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes x in [0, 1], the numbers 1 - x, and weights, each right to a rounding."""
    with flint.ctx.workprec(128):
        roots = [flint.arb.legendre_p_root(nodes, k, weight=True) for k in range(nodes)]
        columns = [((1 + root) / 2, (1 - root) / 2, weight / 2) for root, weight in roots]
        x, y, weights = np.array([[float(ball) for ball in column] for column in columns]).T
    return x, y, weights
