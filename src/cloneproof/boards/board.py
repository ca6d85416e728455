"""A leaderboard: models, their producers, and their measured strength.

Ratings are on the Elo scale: a model 400 points ahead wins ten battles for each that it loses (Bradley and Terry 1952).
They are known up to a common constant and average zero here, unless a table has its own zero.

Ratings from battles by Bradley and Terry (1952), with standard errors.

They are fitted by Newton's method on the matrix of counts, and the same linear system gives the standard errors. A test
compares them with those of the package `evalica`.

Symbols: w[i, j] wins of i over j, n[i, j] battles, p[i, j] = 1 / (1 + exp(-(r[i] - r[j]))) in log-odds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Final, Literal, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from cloneproof.errors import BoardError, brief
from cloneproof.runs.estimate import Estimate
from cloneproof.runs.statistics import FIRST_TIME

Floats = NDArray[np.float64]
Source = Literal["battles", "ratings", "win rates"]
Kinship = Literal["same producer", "declared", "none declared"]
ELO: Final = 400 / math.log(10)  # Elo points in one unit of log-odds
LEAST: Final = 1e-9  # smallest information of a battle
DEVIATIONS: Final = 2.58  # standard errors on each side of a mean: 99 %
MOST_MODELS: Final = 5_000  # the matrix of battles grows with their square


@dataclass(frozen=True)
class Battles:
    """Battles between models: `wins[i, j]` is how often i beat j, where a tie is half a win for both."""

    wins: Floats

    @property
    def counts(self) -> Floats:
        """Number of battles of each pair."""
        return np.asarray(self.wins + self.wins.T)

    @staticmethod
    def from_sequence(models: int, first: Iterable[int], second: Iterable[int], points: Iterable[float]) -> Battles:
        """Count battles: `points` are 1 where the first model won, 0 where the second did, one half for a tie.

        >>> Battles.from_sequence(2, [0, 1], [1, 0], [1, 0.5]).wins.tolist()
        [[0.0, 1.5], [0.5, 0.0]]
        """
        left, right = np.asarray(list(first), dtype=np.int32), np.asarray(list(second), dtype=np.int32)
        won = np.asarray(list(points), dtype=float)
        wins = np.zeros((models, models))
        np.add.at(wins, (left, right), won)
        np.add.at(wins, (right, left), 1 - won)
        return Battles(wins)


@dataclass(frozen=True)
class Board:
    """Models with their producers, ratings, standard errors and votes, and where these came from."""

    models: tuple[str, ...]
    producers: tuple[str, ...]
    ratings: Floats
    errors: Floats
    votes: NDArray[np.int64]
    source: Source
    battles: Battles | None = None
    means: Floats | None = None
    """Win rates against a fixed reference, where the table had these."""
    panel: Floats | None = None
    """Ratings of the models that all are measured against; None: the models of the board."""
    notes: tuple[str, ...] = ()
    """Guesses made when the board was read."""

    def __post_init__(self) -> None:
        sizes = {len(self.models), len(self.producers), len(self.ratings), len(self.errors), len(self.votes)}
        if len(sizes) != 1:
            raise BoardError(
                f"expected a producer, rating, error and votes for each model, got lengths {sorted(sizes)}"
            )
        if len(self.models) < 2:
            raise BoardError(f"expected at least two models, got {len(self.models)}; a board compares models")
        if len(self.models) > MOST_MODELS:
            raise BoardError(f"expected at most {MOST_MODELS:,} models, got {len(self.models):,}; leave some out")
        if len(set(self.models)) < len(self.models):
            twice = next(name for name in self.models if self.models.count(name) > 1)
            raise BoardError(f"expected each model once, got {brief(twice)} twice; merge its rows")
        if not (np.isfinite(self.ratings).all() and np.isfinite(self.errors).all() and (self.errors >= 0).all()):
            raise BoardError("expected finite ratings and standard errors from 0 on, got others; drop those rows")

    @property
    def names(self) -> tuple[str, ...]:
        """Producers, each once, by their best model from the top."""
        order = np.argsort(-self.ratings, kind="stable")
        return tuple(dict.fromkeys(self.producers[i] for i in order))

    @property
    def unowned(self) -> bool:
        """Whether nobody said who made what, so that every model is its own producer."""
        return self.producers == self.models

    def models_of(self, producer: str) -> NDArray[np.int64]:
        """Return the indices of a producer's models, the best first."""
        own = [i for i, name in enumerate(self.producers) if name == producer]
        if not own:
            raise BoardError(f"expected a producer of this board, got {brief(producer)}; one is {self.names[0]!r}")
        return np.asarray(sorted(own, key=lambda i: -self.ratings[i]), dtype=np.int64)

    def chances(self) -> Floats:
        """Return the probability that each model (row) beats each opponent of the panel (column).

        The panel is all models, or the reference. A battle against itself, or a copy of itself, is a fair coin.
        """
        if self.means is not None:
            return self.means[:, None]
        panel = self.ratings if self.panel is None else self.panel
        return win_chance(self.ratings[:, None] - panel[None, :])

    @property
    def worth(self) -> Floats:
        """Votes that would measure each model as well as the table's standard error says; 0 if it has none.

        A vote is a battle with the panel, won with probability p: it has p (1 - p) of information on the log-odds.
        Battles that were read are counted as they are.
        """
        if self.battles is not None:
            return self.votes.astype(float)
        panel = np.zeros(1) if self.means is not None else self.ratings if self.panel is None else self.panel
        information = votes_information(self.ratings, panel)
        stated = self.errors > 0
        return np.divide(ELO**2, self.errors**2 * information, out=np.zeros(len(stated)), where=stated)

    def typical_votes(self) -> int:
        """Return the median of what the models' votes are worth."""
        worth = self.worth[self.worth > 0]
        if not len(worth):
            raise BoardError(
                "expected votes or standard errors in the table, got neither; say how many votes a model has with "
                "votes= (--votes N)"
            )
        return max(1, round(float(np.median(worth))))

    def at_most(self, models: int) -> Board:
        """Return the board with each producer's best `models` models only."""
        keep = sorted(i for name in self.names for i in self.models_of(name)[:models])
        return self.subset(keep)

    def subset(self, keep: Sequence[int]) -> Board:
        """Return the board of some models; battles with the others are left out, ratings and the panel stay."""
        index = np.asarray(keep, dtype=np.int64)
        return replace(
            self,
            models=tuple(self.models[i] for i in index),
            producers=tuple(self.producers[i] for i in index),
            ratings=self.ratings[index],
            errors=self.errors[index],
            votes=self.votes[index],
            battles=None,
            means=None if self.means is None else self.means[index],
            panel=self.ratings if self.panel is None else self.panel,
        )


def votes_information(ratings: Floats, panel: Floats) -> Floats:
    """Return the information of one battle with the panel on each model's log-odds: the average of p (1 - p)."""
    chances = win_chance(ratings[:, None] - panel)
    return np.asarray(np.maximum((chances * (1 - chances)).mean(axis=1), LEAST))


def simulated_mean(values: Floats, runs: str) -> Estimate:
    """Return the mean of values of independent runs, described in words, with its 99 % interval; of few, none."""
    error = DEVIATIONS * float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) >= FIRST_TIME else math.inf
    return Estimate(float(np.mean(values)), error, "confidence", f"{runs}, 99 %", level=0.99)


def win_chance(difference: Floats) -> Floats:
    """Return the probability to win with a lead of `difference` Elo points (Bradley-Terry).

    >>> round(float(win_chance(np.array(400.0))), 4)
    0.9091
    """
    return np.asarray(expit(difference / ELO))


@dataclass(frozen=True)
class Scores:
    """A table of scores: a row for each model, a column for each task; what was not measured is NaN.

    producers  who made each model
    parents    the model that each is declared to be adapted from; empty where none is declared
    notes      guesses made when the table was read
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats
    producers: tuple[str, ...]
    parents: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(self.models), len(self.values), len(self.producers), len(self.parents)}
        if len(sizes) != 1 or self.values.shape[1:] != (len(self.tasks),):
            raise BoardError(f"expected a producer, a parent and a score for each task of each model, got {sizes}")
        if not 2 <= len(self.models) <= MOST_MODELS:
            raise BoardError(f"expected 2 to {MOST_MODELS:,} models, got {len(self.models):,}; choose some")

    def kinship(self, one: int, other: int) -> Kinship:
        """Return how two models are declared to be related."""
        if self.producers[one] == self.producers[other]:
            return "same producer"
        return "declared" if self._declared()[one, other] else "none declared"

    @cached_property
    def unrelated(self) -> NDArray[np.bool_]:
        """Whether nothing is declared of each two models."""
        makers = np.unique(self.producers, return_inverse=True)[1]
        return np.asarray((makers[:, None] != makers) & ~self._declared())

    def _declared(self) -> NDArray[np.bool_]:
        """Return whether one of two models is adapted from the other, or both from one."""
        names = np.unique([*self.models, *self.parents], return_inverse=True)[1]
        models, parents = names[: len(self.models)], names[len(self.models) :]
        siblings = (parents[:, None] == parents) & np.array([bool(parent) for parent in self.parents])
        child = parents[:, None] == models
        return np.asarray(siblings | child | child.T)


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
