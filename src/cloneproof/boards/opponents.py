"""Models of a board of battles that look like one: their results against each opponent.

A model's log-odds against an opponent are its strength less the opponent's, and a deviation: how their styles meet. Two
entries of one model share strength and deviations. So opponents are cells as weeks of a log are
(`analysis.copying.fingerprints`), with the opponents' strengths as effects. Battles of the two with each other are left
out. How much unrelated models deviate and share is fitted to other pairs of different producers, and for models of one
producer to other such pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Final, NamedTuple

import numpy as np
from scipy.special import expit

from cloneproof._arrays import FloatArray
from cloneproof._clock import check_time
from cloneproof.analysis.copying.fingerprints import TYPICAL, CellTable
from cloneproof.boards.board import Board, Floats
from cloneproof.boards.rating import fitted

LEAST_MET: Final = 5  # opponents that both models of a pair have met
MOST_COMPARED: Final = 150  # pairs whose e-values are computed, the most promising; others count as 0
MOST_ROWS: Final = 400  # models that are all fitted; of a larger board those of the pairs that are looked at
MOST_FITTED: Final = 40  # pairs that the law of unrelated models is fitted to


class BattlePairs(NamedTuple):
    """Pairs of models with ln of their e-values and the correlations of their deviations, and how many were asked.

    planted  ln of the e-value of a model entered twice, with the battles of a pair that is drawn at random
    """

    pairs: list[tuple[int, int]]
    log_e: Floats
    nearness: Floats
    asked: int
    planted: Callable[[np.random.Generator], float]


class OpponentTable(CellTable):
    """Wins of models (rows) by opponent (columns)."""

    def counts(self, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return the battles and wins of some models, without those with each other."""
        rounds, totals = super().counts(arms)
        rounds[:, list(arms)] = totals[:, list(arms)] = 0
        return rounds, totals

    def _evidence(self, rounds: FloatArray, totals: FloatArray, own: FloatArray | None = None) -> FloatArray:
        """Return the evidence by the opponents that the models met; of a large board those are few."""
        check_time("comparison of models")
        met = np.flatnonzero(rounds.any(axis=0))
        met = met if len(met) else np.arange(1)
        narrow = copy(self)
        narrow.effects = self.effects[met]
        return super(OpponentTable, narrow)._evidence(rounds[:, met], totals[:, met], own)


def battle_pairs(wins: Floats, board: Board, unrelated: np.ndarray) -> BattlePairs:
    """Return the most promising pairs of models.

    wins        how often each model (row) beat each opponent (column), ties as halves
    unrelated   whether two models are of different producers
    """
    check_time("comparison of models")
    rounds = np.asarray(wins + wins.T)
    met = (rounds > 0).astype(np.float32)
    asked = np.triu(met @ met.T >= LEAST_MET, 1)
    levels = fitted(wins)
    chances = expit(levels[:, None] - levels)
    information = rounds * chances * (1 - chances)
    left = (wins - rounds * chances) / np.sqrt(np.maximum(information * (1 + TYPICAL * information), 1e-12))
    left = left.astype(np.float32)
    alike = left @ left.T
    squares = left**2 @ met.T
    near = alike / np.sqrt(np.maximum(squares * squares.T, 1e-12))
    errors = 1 / (information.sum(axis=1) + 1) + TYPICAL / np.maximum(met.sum(axis=1), 1)
    gap = (levels[:, None] - levels) ** 2 / (errors[:, None] + errors)
    order = np.argsort(np.where(asked, gap / 2 - alike, np.inf), axis=None, kind="stable")[:MOST_COMPARED]
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, asked.shape), strict=True) if asked[i, j]]
    ranked = np.argsort(-levels, kind="stable")
    spaced = [(int(ranked[k]), int(ranked[k + 1 + k % LEAST_MET])) for k in range(len(ranked) - LEAST_MET)]
    apart = [pair for pair in spaced if unrelated[pair]][:: max(1, len(spaced) // MOST_FITTED)]
    kin = [(int(i), int(j)) for i, j in zip(*np.nonzero(asked & ~unrelated), strict=True)]
    kin = kin[:: max(1, len(kin) // MOST_FITTED)][:MOST_FITTED]
    drawn = np.argwhere(asked)
    if len(wins) > MOST_ROWS:
        drawn = drawn[np.linspace(0, len(drawn) - 1, min(len(drawn), MOST_FITTED)).astype(int)]
    # Of a large board only the models of these pairs are fitted, by all of their opponents, in the models' places.
    rows = np.unique([*np.ravel(pairs).astype(int), *np.ravel([*apart, *kin]).astype(int), *drawn.ravel()])
    rows = np.arange(len(wins)) if len(wins) <= MOST_ROWS else rows
    others = np.setdiff1d(np.flatnonzero(met[rows].any(axis=0)), rows) if len(rows) < len(wins) else rows[:0]
    columns = np.concatenate([rows, others])
    at = {int(model): place for place, model in enumerate(rows)}
    table = OpponentTable(rounds[np.ix_(rows, columns)], wins[np.ix_(rows, columns)], [board.models[i] for i in rows])

    def places(pair: Sequence[int]) -> tuple[int, int]:
        return at[int(pair[0])], at[int(pair[1])]

    def weights(pair: tuple[int, int]) -> FloatArray:
        alike_pairs = apart if unrelated[pair] else [*apart, *kin]
        return table.weights([board.models[model] for model in pair], [places(each) for each in alike_pairs])

    def planted(dice: np.random.Generator) -> float:
        check_time("comparison of models")
        one, other = map(int, dice.permutation(dice.choice(drawn)))
        return table.log_drawn(places((one, other)), at[one], weights((one, other)), dice)

    log_e = []
    for pair in pairs:
        check_time("comparison of models")
        log_e.append(table.log_one_item(*table.counts(places(pair)), weights(pair)))
    return BattlePairs(pairs, np.array(log_e), np.array([near[pair] for pair in pairs]), int(asked.sum()), planted)
