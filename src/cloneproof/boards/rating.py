"""Ratings from battles by Bradley and Terry (1952), with standard errors.

They are fitted by Newton's method on the matrix of counts, and the same linear system gives the standard errors. A test
compares them with those of the package `evalica`.

Symbols: w[i, j] wins of i over j, n[i, j] battles, p[i, j] = 1 / (1 + exp(-(r[i] - r[j]))) in log-odds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, NamedTuple, ParamSpec, TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from cloneproof.boards.board import ELO, Floats
from cloneproof.errors import BoardError

P = ParamSpec("P")
T = TypeVar("T")
PRIOR: Final = 0.1  # virtual half-won battles of each model against an average one: keeps unbeaten models finite
STEPS: Final = 100  # Newton steps after which a fit fails
TOLERANCE: Final = 1e-8  # step in log-odds at which a fit ends
CLOSE: Final = 0.02  # step in log-odds below which the curvature is kept
LONGEST: Final = 2.0  # longest step in log-odds
START: Final = 8.0  # largest log-odds of a start
FARTHEST: Final = 300.0  # largest log-odds whose exponential is taken
RIDGE: Final = 1e-10  # added to the diagonal, relative to the largest curvature: covers Cholesky's roundings


def one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function use one thread for linear algebra, if `threadpoolctl` is installed.

    Matrices are small here. On a busy machine threads wait for each other most of the time.
    """

    @wraps(function)
    def alone(*args: P.args, **options: P.kwargs) -> T:
        try:
            from threadpoolctl import threadpool_limits
        except ImportError:
            return function(*args, **options)
        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **options)

    return alone


class Ratings(NamedTuple):
    """Ratings on the Elo scale (their mean is zero) and their standard errors."""

    values: Floats
    errors: Floats


def bradley_terry(wins: Floats, start: Floats | None = None) -> Ratings:
    """Fit the most likely Bradley-Terry ratings; return them with standard errors by the information matrix.

    >>> ratings = bradley_terry(np.array([[0, 100], [50, 0]]))
    >>> round(float(ratings.values[0] - ratings.values[1]), 1)   # 400 log10(2), less a little for the prior
    120.4
    """
    values = fitted(wins, None if start is None else start / ELO)
    inverse = np.linalg.inv(_information(wins + wins.T, _chances(values), values))
    centred = inverse - inverse.mean(axis=0, keepdims=True)
    centred = centred - centred.mean(axis=1, keepdims=True)
    errors: Floats = np.sqrt(np.maximum(np.diag(centred), 0)) * ELO
    return Ratings((values - values.mean()) * ELO, errors)


def fitted(wins: Floats, start: Floats | None = None) -> Floats:
    """Fit ratings in log-odds by Newton's method on the log-likelihood with the prior; starts near `start` if given.

    Far from the maximum, where everybody is sure to win or to lose, there is no curvature: starts are moved
    closer, and a little is added to the curvature (which changes the path, not the maximum).
    """
    counts = wins + wins.T
    won = wins.sum(axis=1)
    values: Floats = np.zeros(len(wins)) if start is None else np.clip(start - start.mean(), -START, START)
    factor, size = None, np.inf
    for _ in range(STEPS):
        chances = _chances(values)
        gradient = won - (counts * chances).sum(axis=1) + PRIOR * (0.5 - expit(values))
        if size > CLOSE:  # closer to the maximum the curvature hardly changes
            factor = cho_factor(_information(counts, chances, values), overwrite_a=True, check_finite=False)
        step: Floats = cho_solve(factor, gradient)
        values = values + np.clip(step, -LONGEST, LONGEST)
        size = np.abs(step).max()
        if size < TOLERANCE:
            return values
    raise BoardError(f"expected ratings to settle in {STEPS} steps, got none; a model may have no battles")


def _chances(values: Floats) -> Floats:
    """Return the probability that each model beats each other, from ratings in log-odds."""
    odds = np.exp(np.clip(values, -FARTHEST, FARTHEST))
    return np.asarray(odds[:, None] / (odds[:, None] + odds))


def _information(counts: Floats, chances: Floats, values: Floats) -> Floats:
    """Return the information matrix of the log-odds, with the prior and a little more on its diagonal."""
    information = -counts * chances * chances.T
    np.fill_diagonal(information, 0)
    own = expit(values)
    diagonal = PRIOR * own * (1 - own) - information.sum(axis=1)
    np.fill_diagonal(information, diagonal + RIDGE * diagonal.max())
    return np.asarray(information)
