"""Deviation Ratings (Marris et al. 2025, arXiv 2502.11645) of models that fight each other: clones change nobody's.

The paper rates a strategy by what a player gains by deviating to it from a coarse correlated equilibrium, the one whose
sorted gains are least in lexicographic order. They are unique, and a clone adds a gain that is there already.
Battles are a symmetric zero-sum game of two players. No gain of its equilibria is above 0, and these are pairs of
optimal mixtures; so each player's gains are the payoffs A x against the other's mixture x, and x is the mixture for
which the largest entry of A x is least, then the next, and so on: a sequence of linear programs, each of which fixes
the entries that cannot fall further. It ends as soon as what is fixed determines A x.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.optimize import linprog

from cloneproof._clock import check_time
from cloneproof.boards.board import Floats
from cloneproof.errors import BoardError

LEAST: Final = 1e-7  # a multiplier above which a constraint binds


def battle_payoffs(wins: Floats) -> Floats:
    """Return won less lost battles of each pair, as a share of its battles and one drawn battle more.

    The drawn battle keeps a single win from being a certainty; models that never met are even.

    >>> battle_payoffs(np.array([[0, 3], [0, 0]])).tolist()
    [[0.0, 0.75], [-0.75, 0.0]]
    """
    return np.asarray((wins - wins.T) / (wins + wins.T + 1))


def deviation_ratings(payoffs: Floats) -> Floats:
    """Return the rating of each strategy of a symmetric zero-sum game; `payoffs` are antisymmetric.

    >>> rock = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    >>> (deviation_ratings(rock).round(9) + 0.0).tolist()
    [0.0, 0.0, 0.0]
    """
    size = len(payoffs)
    fixed, level, allowed = np.zeros(size, dtype=bool), np.zeros(size), np.ones(size, dtype=bool)
    cost, one = np.append(np.zeros(size), 1.0), np.append(np.ones(size), 0.0)
    while True:
        check_time("linear program of Deviation Ratings")
        bounds = [*((0.0, None if kept else 0.0) for kept in allowed), (None, None)]
        rows = np.column_stack([payoffs, -1.0 * ~fixed])
        found = linprog(cost, rows, level, one[None], [1.0], bounds, method="highs-ds")
        if not found.success:
            raise BoardError(f"expected a linear program that has a solution, got: {found.message}; report this")
        binding = ~fixed & (found.ineqlin.marginals < -LEAST)
        level[binding] = found.fun
        level[fixed] += np.maximum(0, payoffs[fixed] @ found.x[:-1] - level[fixed])  # roundings must not exclude all
        fixed |= binding
        allowed &= found.lower.marginals[:-1] <= LEAST
        columns = payoffs[:, allowed]
        ones = np.ones((1, columns.shape[1]))
        known, whole = (np.linalg.matrix_rank(np.vstack([part, ones])) for part in (columns[fixed], columns))
        if known == whole or fixed.all() or not binding.any():
            return np.asarray(payoffs @ found.x[:-1])
