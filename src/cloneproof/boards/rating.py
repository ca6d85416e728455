"""Bradley-Terry ratings from battles, with standard errors.

They are fitted by Newton's method on the matrix of counts, because an audit refits the same board thousands of times. A
fit that starts from the last one takes two or three steps, and the same linear system gives the standard errors. A test
compares it with the package evalica.

Symbols: w[i, j] wins of i over j, n[i, j] battles, p[i, j] = 1 / (1 + exp(-(r[i] - r[j]))) in log-odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from cloneproof.boards.board import ELO, Floats
from cloneproof.errors import BoardError

PRIOR: Final = 0.1  # virtual half-won battles of each model against an average one: keeps unbeaten models finite
STEPS: Final = 100
TOLERANCE: Final = 1e-8  # in log-odds


class Ratings(NamedTuple):
    """Ratings on the Elo scale (their mean is zero) and their standard errors."""

    values: Floats
    errors: Floats


def bradley_terry(wins: Floats, start: Floats | None = None) -> Ratings:
    """The most likely Bradley-Terry ratings, and the standard errors of the inverse information matrix.

    >>> ratings = bradley_terry(np.array([[0, 100], [50, 0]]))
    >>> round(float(ratings.values[0] - ratings.values[1]), 1)   # 400 log10(2), less a little for the prior
    120.4
    """
    values = fitted(wins, None if start is None else start / ELO)
    counts = wins + wins.T
    chances = 1 / (1 + np.exp(values[None, :] - values[:, None]))
    inverse = np.linalg.inv(_information(counts, chances, values))
    centred = inverse - inverse.mean(axis=0, keepdims=True)
    centred = centred - centred.mean(axis=1, keepdims=True)
    errors: Floats = np.sqrt(np.maximum(np.diag(centred), 0)) * ELO
    return Ratings((values - values.mean()) * ELO, errors)


def counted_wins(models: int, first: Sequence[int], second: Sequence[int], points: Sequence[float]) -> Floats:
    """How often each model (row) beat each other one, from battles in turn; a tie is half a win for both.

    >>> counted_wins(2, [0, 1], [1, 0], [1, 0.5]).tolist()
    [[0.0, 1.5], [0.5, 0.0]]
    """
    won, wins = np.asarray(points, dtype=float), np.zeros((models, models))
    np.add.at(wins, (first, second), won)
    np.add.at(wins, (second, first), 1 - won)
    return wins


def fitted(wins: Floats, start: Floats | None = None) -> Floats:
    """Newton's method on the log-likelihood with the prior, in log-odds; begins at `start` if given."""
    counts = wins + wins.T
    won = wins.sum(axis=1)
    values: Floats = np.zeros(len(wins)) if start is None else start - start.mean()
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(np.clip(values[None, :] - values[:, None], -50, 50)))
        own = 1 / (1 + np.exp(-np.clip(values, -50, 50)))
        gradient = won - (counts * chances).sum(axis=1) + PRIOR * (0.5 - own)
        step: Floats = cho_solve(cho_factor(_information(counts, chances, values)), gradient)
        values = values + np.clip(step, -2, 2)
        if np.abs(step).max() < TOLERANCE:
            return values
    raise BoardError(f"expected ratings to settle in {STEPS} steps, got none; a model may have no battles")


def _information(counts: Floats, chances: Floats, values: Floats) -> Floats:
    """The information matrix of the log-odds, with the prior on its diagonal."""
    weights = counts * chances * (1 - chances)
    np.fill_diagonal(weights, 0)
    own = 1 / (1 + np.exp(-np.clip(values, -50, 50)))
    matrix: Floats = np.diag(weights.sum(axis=1) + PRIOR * own * (1 - own)) - weights
    return matrix
