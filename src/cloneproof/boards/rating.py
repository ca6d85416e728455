"""Ratings from battles: Bradley-Terry, Elo, Borda (the average win rate), Deviation Ratings, with standard errors.

Elo and Borda come from the package `evalica`. Bradley-Terry is fitted here by Newton's method on the matrix of counts,
because an audit refits the same board thousands of times. A fit that starts from the last one takes two or three steps,
and the same linear system gives the standard errors. A test compares it with evalica's.

Symbols: w[i, j] wins of i over j, n[i, j] battles, p[i, j] = 1 / (1 + exp(-(r[i] - r[j]))) in log-odds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Final, NamedTuple, ParamSpec, TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog
from scipy.special import expit

from cloneproof._checks import one_of
from cloneproof._clock import check_time
from cloneproof.boards.board import ELO, Battles, Floats
from cloneproof.errors import BoardError

P = ParamSpec("P")
T = TypeVar("T")
METHODS: Final[tuple[str, ...]] = ("bradley-terry", "elo", "borda", "deviation")
PRIOR: Final = 0.1  # virtual half-won battles of each model against an average one: keeps unbeaten models finite
STEPS: Final = 100  # Newton steps after which a fit fails
TOLERANCE: Final = 1e-8  # step in log-odds at which a fit ends
CLOSE: Final = 0.02  # step in log-odds below which the curvature is kept
LONGEST: Final = 2.0  # longest step in log-odds
START: Final = 8.0  # largest log-odds of a start
FARTHEST: Final = 300.0  # largest log-odds whose exponential is taken
RIDGE: Final = 1e-10  # added to the diagonal, relative to the largest curvature: covers Cholesky's roundings
BINDING: Final = 1e-7  # multiplier above which a constraint of a linear program binds
RESAMPLES: Final = 100  # bootstrap samples for the standard errors of Elo and Borda


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


def rate(battles: Battles, method: str = "bradley-terry", seed: int = 0) -> Ratings:
    """Rate the models of these battles."""
    if one_of(method, METHODS, "the rating", BoardError) == "bradley-terry":
        return bradley_terry(battles.wins)
    rated = _by_deviations if method == "deviation" else partial(_by_evalica, method=method)
    values = rated(battles)
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, len(battles.points), len(battles.points)) for _ in range(RESAMPLES)]
    again = []
    for rows in drawn:
        check_time("bootstrap of ratings")
        again.append(rated(_resampled(battles, rows)))
    errors: Floats = np.std(again, axis=0, ddof=1)
    return Ratings(values, errors)


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


def _resampled(battles: Battles, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Battles:
    """Battles resampled with replacement, in their old order (Elo depends on it)."""
    rows = np.sort(rows)
    return Battles.from_sequence(len(battles.wins), battles.first[rows], battles.second[rows], battles.points[rows])


def _by_deviations(battles: Battles) -> Floats:
    """Return Deviation Ratings as Elo points: the log-odds of a model against the equilibrium."""
    payoffs = np.clip(deviation_ratings(battle_payoffs(battles.wins)), -1 + 1e-6, 1 - 1e-6)
    values = 2 * np.arctanh(payoffs) * ELO
    return np.asarray(values - values.mean())


def _by_evalica(battles: Battles, method: str) -> Floats:
    try:
        import evalica
    except ImportError:
        raise BoardError(
            "expected the package evalica for Elo and Borda, got none; pip install 'cloneproof[board]'"
        ) from None
    import pandas as pd

    names = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y}
    winners = [names.get(float(point), evalica.Winner.Draw) for point in battles.points]
    index = pd.Index(range(len(battles.wins)))
    first, second = battles.first.tolist(), battles.second.tolist()
    if method == "elo":
        scores = evalica.elo(first, second, winners, index=index).scores
        values = np.asarray(scores.reindex(index), dtype=float)
    else:
        scores = evalica.average_win_rate(first, second, winners, index=index).scores
        rates = np.clip(np.asarray(scores.reindex(index).fillna(0.5), dtype=float), 1e-6, 1 - 1e-6)
        values = np.log(rates / (1 - rates)) * ELO
    return np.asarray(values - values.mean())


def battle_payoffs(wins: Floats) -> Floats:
    """Return won less lost battles of each pair, as a share of its battles and one drawn battle more.

    The drawn battle keeps a single win from being a certainty; models that never met are even.

    >>> battle_payoffs(np.array([[0, 3], [0, 0]])).tolist()
    [[0.0, 0.75], [-0.75, 0.0]]
    """
    return np.asarray((wins - wins.T) / (wins + wins.T + 1))


def deviation_ratings(payoffs: Floats) -> Floats:
    """Return the rating of each strategy of a symmetric zero-sum game; `payoffs` are antisymmetric.

    Marris et al. (2025, arXiv 2502.11645) rate a strategy by what a player gains by deviating to it from a coarse
    correlated equilibrium, the one whose sorted gains are least in lexicographic order. These ratings are unique, and a
    clone changes nobody's, since it adds a gain that is there already. Battles are a symmetric zero-sum game of two
    players. No gain of its equilibria is above 0, and these are pairs of optimal mixtures; so each player's gains are
    the payoffs A x against the other's mixture x, and x is the mixture for which the largest entry of A x is least,
    then the next, and so on: a sequence of linear programs, each of which fixes the entries that cannot fall further.
    It ends as soon as what is fixed determines A x.

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
        solution = linprog(cost, rows, level, one[None], [1.0], bounds, method="highs-ds")
        if not solution.success:
            raise BoardError(f"expected a linear program that has a solution, got: {solution.message}; report this")
        binding = ~fixed & (solution.ineqlin.marginals < -BINDING)
        level[binding] = solution.fun
        level[fixed] += np.maximum(0, payoffs[fixed] @ solution.x[:-1] - level[fixed])  # roundings must not exclude all
        fixed |= binding
        allowed &= solution.lower.marginals[:-1] <= BINDING
        columns = payoffs[:, allowed]
        ones = np.ones((1, columns.shape[1]))
        rank_fixed, rank = (np.linalg.matrix_rank(np.vstack([part, ones])) for part in (columns[fixed], columns))
        if rank_fixed == rank or fixed.all() or not binding.any():
            return np.asarray(payoffs @ solution.x[:-1])
