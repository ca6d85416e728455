"""Models of a table of scores that look like one: by ties to the last digit, and near-ties.

Unrelated models tie on a task by chance: more often where scores are coarse or many models have the same one, and more
often if they are equally strong. So each tie has a chance of its own, from models of other producers. An e-value
compares what was seen with models that tie on most tasks. Tasks on which scores degenerate tie together, so a share of
ties is asked for as well.

For near-ties scores become normal scores by task, and the part that a model's strength explains (one factor) is taken
away. What is left of two unrelated models has a correlation near 0, whose law is fitted to the pairs of different
producers; what is left of near-copies has one near 1, but for a few tasks. The second e-value compares these, and a
pair's e-value is the average of both.

e-BH (Wang and Ramdas 2022) says which pairs are findings at the level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtri

from cloneproof._lib.arrays import joined
from cloneproof._lib.checks import number_in
from cloneproof._lib.data import fields_of
from cloneproof._lib.findings import NamedFinding, WithFindings
from cloneproof.boards.board import Floats, Kinship, Scores
from cloneproof.boards.reading import read_scores
from cloneproof.errors import BoardError

LEVEL: Final = 0.05  # false discovery rate
LEAST_SHARED: Final = 5  # tasks that both models of a pair have
LEAST_TIES: Final = 0.2  # share of the shared tasks on which models must tie for ties to count
FEWEST_TIES: Final = 3  # ties that count at all
COMMON: Final = 0.05  # share of unrelated models with one score from which on a tie in it says nothing
FEWEST_COMMON: Final = 3  # and the number of them
TIED: Final = np.array([0.3, 0.6, 0.9, 0.99])  # chances of a tie of models that are one
NEAR: Final = np.array([0.95, 0.98, 0.99, 0.999])  # correlations of near-copies beyond strength
CHANGED: Final = 0.1  # share of a near-copy's tasks on which it is as any other model
PROMISING: Final = 0.7  # correlation from which on a pair is looked at closely
STEPS: Final = 30  # of the fit of one factor
LEAST_LEFT: Final = 0.02  # of a task's variance, that strength does not explain
LEAST_SPREAD: Final = 0.1  # of the correlations of unrelated models, as atanh
LARGEST: Final = 600.0  # ln of an e-value that is stated
PLANTED: Final = 20  # second entries that are planted where none was found
SEED: Final = 43
UNRELATED: Final = np.tanh(np.linspace(-4.0, 4.0, 161))  # grid of the correlations of unrelated models


@dataclass(frozen=True)
class LikePair:
    """Two models that look like one.

    kinship   "same producer", "declared" (one is adapted from the other, or both from one model) or "none declared"
    nearness  correlation of their scores beyond what their strengths explain
    e_value   how many times likelier scores like these are of one model than of two
    tied      tasks on which their scores are equal
    differ    other tasks that both have, those on which they differ most first
    """

    models: tuple[str, str]
    producers: tuple[str, str]
    kinship: Kinship
    nearness: float
    e_value: float
    tied: tuple[str, ...]
    differ: tuple[str, ...]

    @property
    def shared(self) -> int:
        """Number of tasks that both have."""
        return len(self.tied) + len(self.differ)


@dataclass(frozen=True)
class LikeModels:
    """Models joined by findings: their places on the board, and what counting the best of them adds.

    places  by strength, from 1, each model counted
    gain    places between the best of them and the average of them
    """

    models: tuple[str, ...]
    places: tuple[int, ...]
    gain: float


@dataclass(frozen=True)
class BoardCopies(WithFindings):
    """Pairs of models that look like one, at a level of false discoveries, the strongest first.

    power  how often a model entered twice would have been found, if none was and some were compared
    """

    said_in = "board_copies"
    scores: Scores
    level: float
    hypotheses: int
    pairs: tuple[LikePair, ...]
    groups: tuple[LikeModels, ...]
    power: CopyPower | None = None

    @property
    def named(self) -> tuple[NamedFinding, ...]:
        return tuple(NamedFinding("models", pair.models) for pair in self.pairs)

    def to_dict(self) -> dict[str, object]:
        table = {"models": len(self.scores.models), "tasks": len(self.scores.tasks), "notes": list(self.scores.notes)}
        findings = {"findings": self.finding_rows}
        return {**table, **findings, **fields_of(self, "level", "hypotheses", "pairs", "groups", "power")}


@dataclass(frozen=True)
class Strengths:
    """One factor of the normal scores.

    strength  of each model, in units of a task's normal scores
    left      of each score, what strength does not explain, in standard units
    variance  of each task's normal scores, what strength does not explain
    """

    strength: Floats
    left: Floats
    variance: Floats


def copied_scores(
    scores: object,
    *,
    owners: object = None,
    kin: object = None,
    columns: Mapping[str, str] | None = None,
    level: float = LEVEL,
) -> BoardCopies:
    """Find models of a table of scores that look like one, whoever lists them.

    A finding is a reason to look, never an accusation. The expected share of findings about different models is at most
    the level, if scores of different models are independent given their strengths, up to correlations of the law that
    is fitted: to pairs of different producers, and to declared kin for those.

    scores   `Scores`, or a table as `read_scores` takes it, which explains `owners`, `kin` and `columns`
    level    the false discovery rate that is aimed at
    """
    wanted = number_in(level, "the level of false discoveries", 0, 1, low_open=True, error=BoardError)
    table = scores if isinstance(scores, Scores) else read_scores(scores, owners=owners, kin=kin, columns=columns)
    compared = _compare(table.values, table.unrelated)
    if not compared.asked.any():
        raise BoardError(f"expected two models that share {LEAST_SHARED} tasks, got none; add tasks")
    asked, pairs = int(compared.asked.sum()), compared.pairs
    chosen = discoveries(compared.log_e, asked, wanted)
    listed = tuple(_listed(table, compared, number) for number in chosen)
    groups = _groups(table, compared.strengths.strength, [pairs[number] for number in chosen])
    power = None if listed else _power(table, compared, asked, wanted)
    return BoardCopies(table, wanted, asked, listed, groups, power)


class ComparedModels(NamedTuple):
    """Which pairs of models share enough to be asked about, and the promising ones: ln of e-values, correlations."""

    asked: np.ndarray
    pairs: list[tuple[int, int]]
    log_e: Floats
    nearness: Floats
    strengths: Strengths


def _compare(values: Floats, unrelated: np.ndarray, only: tuple[int, int] | None = None) -> ComparedModels:
    """Compare the models of a table, or one pair of them as all are."""
    finite = np.isfinite(values)
    shared = finite.astype(float) @ finite.T
    asked, fitted = np.triu(shared >= LEAST_SHARED, 1), fit_strengths(values)
    ties = np.zeros(shared.shape, dtype=np.int32)
    chances = np.zeros(values.shape)  # that an unrelated model ties; infinite where too many have the same score
    for task, column in enumerate(values.T):
        tied, chances[:, task] = _ties(column, unrelated)
        ties += tied & np.isfinite(chances[:, task])
    chances /= np.sqrt(fitted.variance)  # models of one strength tie more often
    near = _correlations(fitted.left, finite)
    spreads = [_spread(near[chosen], shared[chosen]) for chosen in (asked & ~unrelated, asked & unrelated)]
    spreads[0] = max(spreads)  # kin are at least as much alike as others
    worth = asked & ((ties >= np.maximum(LEAST_TIES * shared, FEWEST_TIES)) | (near >= PROMISING))
    pairs = [(int(i), int(j)) for i, j in np.argwhere(worth) if only in (None, (i, j))]
    log_e = [_log_e_value(values, fitted, chances, pair, spreads[int(unrelated[pair])]) for pair in pairs]
    return ComparedModels(asked, pairs, np.array(log_e), np.array([near[pair] for pair in pairs]), fitted)


def _planted(scores: Scores, compared: ComparedModels, dice: np.random.Generator) -> float:
    """Return ln of the e-value of a model that is entered again in another's place, as near as NEAR says."""
    first, second = map(int, dice.choice(np.argwhere(compared.asked)))
    finite = np.isfinite(scores.values)
    number = np.maximum(finite.sum(axis=0), 1)  # a task that nobody has spreads by 0
    apart = np.where(finite, scores.values - np.nansum(scores.values, axis=0) / number, 0.0)
    left = np.sqrt((apart**2).sum(axis=0) / number * compared.strengths.variance)
    noise = left * np.sqrt(dice.choice(NEAR) ** -2 - 1) * dice.normal(size=len(left))
    values = scores.values.copy()
    values[second] = np.where(np.isfinite(values[second]), values[first] + noise, np.nan)
    return float(max(_compare(values, scores.unrelated, (first, second)).log_e, default=-np.inf))


def discoveries(log_e: Floats, hypotheses: int, level: float) -> list[int]:
    """Return the places of the discoveries by e-BH (Wang and Ramdas 2022), the strongest first.

    E-values are given as logarithms; hypotheses without one count as e = 0.

    >>> discoveries(np.log([90.0, 50.0, 2.0]), hypotheses=4, level=0.05)
    [0, 1]
    """
    order = np.argsort(-log_e, kind="stable")
    ranks = np.arange(1, len(order) + 1)
    passed = np.flatnonzero(log_e[order] >= np.log(hypotheses / level) - np.log(ranks))
    return [int(number) for number in order[: passed[-1] + 1]] if len(passed) else []


@dataclass(frozen=True)
class CopyPower:
    """Chance with which a second entry would have been found, and a 95 % interval for it (Clopper and Pearson)."""

    chance: float
    low: float
    high: float
    draws: int


def _power(scores: Scores, compared: ComparedModels, asked: int, level: float) -> CopyPower:
    """Return how often a second entry has the e-value that a single finding needs."""
    from scipy.stats import binomtest  # slow to import

    dice = np.random.default_rng(SEED)
    hits = sum(_planted(scores, compared, dice) >= np.log(asked / level) for _ in range(PLANTED))
    low, high = binomtest(int(hits), PLANTED).proportion_ci()
    return CopyPower(hits / PLANTED, float(low), float(high), PLANTED)


def _listed(scores: Scores, compared: ComparedModels, number: int) -> LikePair:
    pair, log_e = compared.pairs[number], float(compared.log_e[number])
    one, other = (scores.values[model] for model in pair)
    tied = one == other
    apart = np.abs(np.subtract(*compared.strengths.left[list(pair)]))
    order = np.argsort(-np.nan_to_num(apart), kind="stable")
    names = [tuple(listed[place] for place in pair) for listed in (scores.models, scores.producers)]
    return LikePair(
        (names[0][0], names[0][1]), (names[1][0], names[1][1]), scores.kinship(*pair),
        float(compared.nearness[number]), float(np.exp(min(log_e, LARGEST))),
        tuple(scores.tasks[task] for task in np.flatnonzero(tied)),
        tuple(scores.tasks[task] for task in order if np.isfinite(apart[task]) and not tied[task]),
    )  # fmt: skip


def _groups(scores: Scores, strength: Floats, pairs: list[tuple[int, int]]) -> tuple[LikeModels, ...]:
    """Return the models that pairs join, the strongest first."""
    places = np.empty(len(strength), int)
    places[np.argsort(-strength, kind="stable")] = np.arange(1, len(strength) + 1)
    groups = [sorted(group, key=lambda row: places[row]) for group in joined(len(strength), pairs) if len(group) > 1]
    return tuple(
        LikeModels(
            tuple(scores.models[row] for row in group), tuple(int(places[row]) for row in group),
            float(places[group].mean() - places[group].min()),
        )
        for group in sorted(groups, key=lambda group: places[group[0]])
    )  # fmt: skip


def fit_strengths(values: Floats) -> Strengths:
    """Fit one factor to the normal scores of each task by alternating least squares; what is missing is left out."""
    from scipy.stats import rankdata  # slow to import

    finite = np.isfinite(values)
    ranks = rankdata(np.where(finite, values, np.inf), axis=0)  # what is missing comes after all others
    normal = np.where(finite, ndtri(np.where(finite, ranks, 0.5) / (finite.sum(axis=0) + 1)), 0.0)
    strength, loadings, variance = np.zeros(len(values)), np.ones(values.shape[1]), np.ones(values.shape[1])
    for _ in range(STEPS):
        scaled = loadings / variance
        strength = normal @ scaled / (finite @ (scaled * loadings) + 1)
        loadings = strength @ normal / (strength**2 @ finite + 1)
        squares = (finite * (normal - strength[:, None] * loadings) ** 2).sum(axis=0)
        variance = np.maximum(squares / np.maximum(finite.sum(axis=0), 1), LEAST_LEFT)
    left = (normal - strength[:, None] * loadings) / np.sqrt(variance)
    return Strengths(strength * np.sqrt(np.mean(loadings**2)), np.where(finite, left, np.nan), variance)


def _ties(column: Floats, unrelated: np.ndarray) -> tuple[np.ndarray, Floats]:
    """Return which models tie on a task, and how often unrelated models tie with each.

    The larger of the share of all unrelated pairs that tie, and of unrelated models that have this model's score; where
    that is common, infinity. One tie is left out, that of the pair which is asked about.
    """
    tied = (column[:, None] == column) & ~np.eye(len(column), dtype=bool)
    both = np.isfinite(column)[:, None] & np.isfinite(column) & unrelated
    often, of = np.maximum((tied & both).sum(axis=1) - 1, 0), both.sum(axis=1)
    overall = (max((tied & both).sum() - 2, 0) + 1) / (of.sum() + 1)
    common = often >= np.maximum(COMMON * of, FEWEST_COMMON)
    return tied, np.where(common, np.inf, np.maximum(overall, often / np.maximum(of, 1)))


def _log_e_value(values: Floats, fitted: Strengths, chances: Floats, pair: tuple[int, int], spread: float) -> float:
    """Return ln of a pair's e-value; scores that both have with many others do not count."""
    one, other = values[list(pair)]
    tie = one == other
    chance = np.maximum(*chances[list(pair)])
    counted = np.isfinite(one) & np.isfinite(other) & ~(tie & np.isinf(chance))
    tie, chance = tie[counted], np.minimum(chance[counted], 1.0)
    if len(tie) < LEAST_SHARED:
        return -np.inf
    by_ties = -np.inf
    if tie.sum() >= max(LEAST_TIES * len(tie), FEWEST_TIES):
        terms = np.log(np.where(tie, TIED[:, None] / chance, 1 - TIED[:, None]))  # no tie: its chance was 1 at most
        by_ties = float(logsumexp(terms.sum(axis=1)) - np.log(len(TIED)))
    return float(np.logaddexp(by_ties, _log_near(fitted, pair, counted, spread)) - np.log(2))


def _correlations(left: Floats, finite: np.ndarray) -> Floats:
    filled, counted = np.where(finite, left, 0.0), finite.astype(float)
    squares = filled**2 @ counted.T
    return np.asarray(filled @ filled.T / np.sqrt(np.maximum(squares * squares.T, 1e-300)))


def _spread(near: Floats, shared: Floats) -> float:
    """Return the mean absolute deviation of the true correlations of unrelated models, as atanh (a Laplace law)."""
    if not len(near):
        return LEAST_SPREAD
    noise = 1 / np.maximum(shared - 3, 1)
    angles = np.arctanh(np.clip(near, -NEAR[0], NEAR[0]))
    return max(LEAST_SPREAD, math.sqrt(max(float(np.mean(angles**2 - noise)), 0.0) / 2))


def _log_near(fitted: Strengths, pair: tuple[int, int], counted: np.ndarray, spread: float) -> float:
    """Return ln of the e-value of near-ties: correlations of near-copies against those of unrelated models.

    Strengths of near-copies differ as little as their scores on one task.
    """
    left = fitted.left[list(pair)][:, counted]
    x, y = left / np.maximum(np.sqrt(np.mean(left**2, axis=1, keepdims=True)), 1e-9)
    rho = np.concatenate([NEAR, UNRELATED])[:, None]
    exponent = (2 * rho * x * y - rho**2 * (x**2 + y**2)) / (2 * (1 - rho**2))
    likened = exponent - np.log1p(-(rho**2)) / 2 + np.log(1 - CHANGED)
    terms = np.logaddexp(likened, np.log(CHANGED)).sum(axis=1) * (len(x) - 2) / len(x)
    prior = -np.abs(np.arctanh(UNRELATED)) / spread
    gap, usual = float(np.diff(fitted.strength[list(pair)])[0]) ** 2, float(fitted.strength.var())
    close = (1 - NEAR) * fitted.variance.mean()
    alike = terms[: len(NEAR)] + (np.log(usual / close) + gap / (2 * usual) - gap / (2 * close)) / 2
    apart = terms[len(NEAR) :] + prior - logsumexp(prior)
    return float(logsumexp(alike) - np.log(len(NEAR)) - logsumexp(apart))
