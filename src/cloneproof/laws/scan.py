"""Law of a scan: draws are tested one after the other; the first that passes wins, or else the highest count.

Given an agent's means, its draws are independent and alike, so everything follows from the law of one draw. With f the
probability that a draw fails, the first j draws all fail with probability f^j. Let b and u be the probabilities that a
draw fails with a count below a level, and with one up to that level. Then the draw at place j = 0, .., s - 1 has the
highest count, and this level is its count, with probability b^j (u - b) u^(s - 1 - j): equal counts go to the earlier
draw. Levels may be any scores that are compared, and draws may come from any law over an agent's arms.

Several agents take turns: the first draws of all, then the second draws of all, in a uniformly random order of the
agents. For the draw at place j of one agent, another agent contributes the factor b^(j + 1) u^(s - 1 - j) if it comes
earlier in the order, and b^j u^(s - j) if it comes later.

Arrays hold floats or fractions. All terms are nonnegative, so nothing cancels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloneproof._lib.arrays import IntArray
from cloneproof.laws.arithmetic import Array, products_of_other_agents

AT_ONCE = 500_000  # numbers of the largest table that is computed at once


def powers(base: Array, most: int) -> Array:
    """Return the powers 0, 1, .., most along a last axis.

    >>> powers(np.array([2.0, 3.0]), 2).tolist()
    [[1.0, 2.0, 4.0], [1.0, 3.0, 9.0]]
    """
    raised = np.ones((*base.shape, most + 1), dtype=base.dtype)
    raised[..., 1:] = base[..., None]
    return np.asarray(np.cumprod(raised, axis=-1, out=raised))


def scan_law(draws: int, failing: Array) -> tuple[Array, Array]:
    """Return the probability that 0, 1, .., s draws fail, and the law of the highest count if all of them do.

    `failing` has for each arm (rows) and level (columns) the probability that a draw is this arm and fails with this
    count, and the law that all draws fail and the one with the highest count is this arm with this count.

    >>> coins = np.array([[0.25, 0.25], [0.0, 0.5]])  # a draw is a fair coin or a sure one, and its count is 0 or 1
    >>> scan_law(2, coins)[1].tolist()
    [[0.0625, 0.3125], [0.0, 0.625]]
    """
    up_to = failing.sum(axis=0).cumsum()
    below = np.concatenate([up_to[:1] * 0, up_to[:-1]])
    reached = powers(np.asarray(failing.sum()).reshape(1), draws)[0]
    return reached, failing * _place_weights(draws, below, up_to).sum(axis=-1)


def scan_moments(draws: int, chances: Array, below: Array, up_to: Array, marks: Sequence[Array]) -> list[Array]:
    """Average b^j u^(s - 1 - j) z over an agent's means, for each mark z: places j as rows, levels as columns.

    With the probability of a count at the level as z it is the law above; with b or u, another agent's factor. Each
    realisation of the means has its chance; `below`, `up_to` and the marks are b, u and z in it (rows) at each level.
    """
    count, levels = below.shape
    width = max(1, AT_ONCE // (count * draws))
    tables = [np.empty((draws, levels), dtype=below.dtype) for _ in marks]
    for begin in range(0, levels, width):
        block = slice(begin, begin + width)
        weight = _place_weights(draws, below[:, block], up_to[:, block]) * chances[:, None, None]
        for table, mark in zip(tables, marks, strict=True):
            table[:, block] = np.einsum("rlj,rl->jl", weight, mark[:, block])
    return tables


def _place_weights(draws: int, below: Array, up_to: Array) -> Array:
    """Return b^j u^(s - 1 - j) for the places j along a last axis."""
    return np.asarray(powers(below, draws - 1) * powers(up_to, draws - 1)[..., ::-1])


def place_rounds(horizon: int, pulls: int, places: IntArray) -> tuple[Array, Array]:
    """Return the rounds of the test at each place of the whole schedule, and the rounds that are left after it."""
    left = horizon - places * pulls
    return np.clip(left, 0, pulls), np.maximum(0, left - pulls)


def order_averages(others: Sequence[tuple[int, Array, Array]]) -> Array:
    """Average the product of the other agents' factors over the order: along a last axis, if 0, 1, .. come first.

    Each kind of others is given as their number, the factor of one that comes later, and of one that comes first. Equal
    agents have a product of powers; each further agent raises the degree of a Bernstein polynomial by one.

    >>> order_averages([(1, np.array(0.5), np.array(0.25)), (1, np.array(1.0), np.array(0.0))]).tolist()
    [0.5, 0.125, 0.0]
    """
    (agents, later, first), *rest = others
    places = np.arange(agents + 1)
    averages = later[..., None] ** places[::-1] * first[..., None] ** places
    one = averages[..., :1] * 0 + 1
    for more, later, first in rest:
        for size in range(agents + 1, agents + more + 1):
            places = np.arange(1, size + 1)
            grown = np.concatenate([averages, one * 0], axis=-1) * 0
            grown[..., :-1] += later[..., None] * averages * (one * places[::-1] / size)
            grown[..., 1:] += first[..., None] * averages * (one * places / size)
            averages = grown
        agents += more
    return np.asarray(averages)


def highest_count_pay(
    agents: Sequence[int], own: Array, first: Array, last: Array, nodes: Array, weights: Array
) -> Array:
    """Return what one agent of each kind earns in a round that goes to the highest count of all agents.

    A uniformly random order arises from uniform times: given an agent's time t, each other agent comes first with
    probability t. The average over t is the integral of a polynomial, whose degree is the number of other agents, by a
    quadrature that is exact for it. `own`, `first` and `last` are those of `scan_moments` for each kind, place and
    level, with three marks: the mean of a draw whose count is at the level, b and u.
    """
    several = np.array(agents)[:, None, None]
    earned = own.sum(axis=(1, 2)) * 0
    for node, weight in zip(nodes, weights, strict=True):
        factors = node * first + (1 - node) * last
        others = products_of_other_agents(factors, several)
        earned = earned + weight * (own * others).sum(axis=(1, 2))
    return np.asarray(earned)
