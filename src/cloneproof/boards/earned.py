"""What near-equal entries of one owner earn it now: the best of several measurements is higher than one of them.

Entries of a group have strengths about a common mean, and each was measured with an error. How much the strengths
themselves differ is what the spread of the measurements leaves beyond these errors (often nothing). From strengths that
fit, measurements are drawn anew: the score and the rank of the best of the group, and of one of them, whichever. What
lies between is luck of selection and, where strengths differ, the lead of the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtr

from cloneproof._lib.clock import check_time
from cloneproof._lib.data import Data
from cloneproof._lib.findings import NamedFinding
from cloneproof.boards.board import Board, Floats
from cloneproof.runs.estimate import Estimate

APART: Final = 2.0  # standard errors of a difference up to which entries are near
MOST_ERROR: Final = 60.0  # Elo: standard error from which on a model is measured too poorly, about 34 even battles
NEAR_IF_EQUAL: Final = 0.954  # chance that two equal entries are so near
DRAWS: Final = 200  # strengths that fit, and of each as many measurements
GRID: Final = 500
SEED: Final = 11


@dataclass(frozen=True)
class Earned(Data):
    """One owner's group of entries: scores and expected ranks with 95 % intervals, of their best and of one alone."""

    keys_of_data = ("owner", "entries", "score", "alone", "rank", "rank_alone", "points", "ranks")

    owner: str
    entries: tuple[str, ...]
    score: Estimate
    alone: Estimate
    rank: Estimate
    rank_alone: Estimate
    points: Estimate
    """Score of the best less that of one alone."""
    ranks: Estimate
    """Ranks that the best stands above one alone."""

    @property
    def about(self) -> tuple[str, ...]:
        """What a finding is about: its owner and the entries."""
        return self.owner, *self.entries


def earned(board: Board) -> tuple[Earned, ...]:
    """Return what each owner's models near its best in strength earn it, the largest first.

    Models with a few dozen battles or less are left out: their ratings are not yet normal about their strengths.
    """
    near = {}
    for name in board.names:
        own = board.models_of(name)
        measured = own[(board.errors[own] > 0) & (board.errors[own] <= MOST_ERROR)]
        first = measured[:1] if len(measured) else own[:1]
        apart = (board.ratings[first] - board.ratings[measured]) / np.hypot(board.errors[first], board.errors[measured])
        near[name] = measured[apart <= APART] if len(measured) else first
    return of_groups(board.models, board.ratings, board.errors, near)


def gained_ranks(rows: Sequence[Earned]) -> tuple[NamedFinding, ...]:
    """Return the findings: groups whose best stands above one of them alone, beyond the error."""
    return tuple(NamedFinding("near-equal", row.about) for row in rows if row.ranks.low > 0)


def of_groups(
    names: Sequence[str], values: Floats, errors: Floats, groups: Mapping[str, np.ndarray]
) -> tuple[Earned, ...]:
    """Return what groups of entries earn their owners where the best counts; groups of one are rivals only."""
    best = np.array([own[values[own].argmax()] for own in groups.values()])
    earnings = []
    for place, (owner, own) in enumerate(groups.items()):
        if len(own) < 2:
            continue
        check_time("worth of variants")
        with_all, alone = _measured(values[own], np.maximum(errors[own], 1e-9), np.random.default_rng((SEED, place)))
        others = np.delete(best, place)
        grid = np.linspace(alone.min(), with_all.max(), GRID)  # of scores, at which the expected rank is computed
        above = ndtr((values[others] - grid[:, None]) / np.maximum(errors[others], 1e-9)).sum(axis=1)
        points = [drawn.mean(axis=1) for drawn in (with_all, alone)]
        ranks = [1 + np.interp(drawn, grid, above).mean(axis=1) for drawn in (with_all, alone)]
        entries = tuple(names[i] for i in own)
        rows = (*points, *ranks, points[0] - points[1], ranks[1] - ranks[0])
        earnings.append(Earned(owner, entries, *map(_interval, rows)))
    return tuple(sorted(earnings, key=lambda row: -row.ranks.value))


def _measured(values: Floats, errors: Floats, dice: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw measurements of the best entry, and of any one: a row for each set of strengths that fits."""
    size = len(values)
    spread = values.var(ddof=1) * (size - 1) / dice.chisquare(size - 1, DRAWS)
    between = np.maximum(spread - (errors**2).mean(), 0)[:, None]
    weights = 1 / (between + errors**2)
    mean = (weights * values).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    mean = mean + dice.normal(size=(DRAWS, 1)) / np.sqrt(weights.sum(axis=1, keepdims=True))
    kept = between * weights
    strengths = mean + kept * (values - mean) + np.sqrt(kept) * errors * dice.normal(size=(DRAWS, size))
    drawn = strengths[:, None] + errors * dice.normal(size=(DRAWS, DRAWS, size))
    one = dice.integers(size, size=(DRAWS, DRAWS, 1))
    return drawn.max(axis=2), np.take_along_axis(drawn, one, axis=2)[..., 0]


def _interval(values: Floats) -> Estimate:
    low, high = np.quantile(values, [0.025, 0.975])
    return Estimate(float(values.mean()), float(high - low) / 2, "confidence", f"{DRAWS} sets of strengths, 95 %")
