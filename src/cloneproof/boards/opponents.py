"""Models of a board of battles that look like one: their results against each opponent.

A model's log-odds against an opponent are its strength less the opponent's, and a deviation: how their styles meet. Two
entries of one model share strength and deviations. So opponents are cells as weeks of a log are
(`analysis.copying.fingerprints`), with the opponents' strengths as effects. Battles of the two with each other are left
out. How much unrelated models deviate and share is fitted to other pairs of different producers, and for models of one
producer to other such pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.special import expit

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.fingerprints import TYPICAL, CellTable
from cloneproof.boards.board import Board, Floats

LEAST_MET: Final = 5  # opponents that both models of a pair have met
MOST_COMPARED: Final = 150  # pairs whose e-values are computed, the most promising; others count as 0
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


def battle_pairs(wins: Floats, board: Board, unrelated: np.ndarray) -> BattlePairs:
    """Return the most promising pairs of models.

    wins        how often each model (row) beat each opponent (column), ties as halves
    unrelated   whether two models are of different producers
    """
    rounds = np.asarray(wins + wins.T)
    table = OpponentTable(rounds, wins, board.models)
    met = (rounds > 0).astype(float)
    asked = np.triu(met @ met.T >= LEAST_MET, 1)
    chances = expit(table.levels[:, None] + table.effects)
    information = rounds * chances * (1 - chances)
    left = (wins - rounds * chances) / np.sqrt(np.maximum(information * (1 + TYPICAL * information), 1e-12))
    alike = left @ left.T
    squares = left**2 @ met.T
    near = alike / np.sqrt(np.maximum(squares * squares.T, 1e-12))
    levels, errors = table.levels, 1 / (information.sum(axis=1) + 1) + TYPICAL / np.maximum(met.sum(axis=1), 1)
    gap = (levels[:, None] - levels) ** 2 / (errors[:, None] + errors)
    order = np.argsort(np.where(asked, gap / 2 - alike, np.inf), axis=None, kind="stable")[:MOST_COMPARED]
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, asked.shape), strict=True) if asked[i, j]]
    ranked = np.argsort(-levels, kind="stable")
    spaced = [(int(ranked[k]), int(ranked[k + 1 + k % LEAST_MET])) for k in range(len(ranked) - LEAST_MET)]
    apart = [pair for pair in spaced if unrelated[pair]][:: max(1, len(spaced) // MOST_FITTED)]
    kin = [(int(i), int(j)) for i, j in zip(*np.nonzero(asked & ~unrelated), strict=True)][:MOST_FITTED]

    def weights(pair: tuple[int, int]) -> FloatArray:
        return table.weights([board.models[model] for model in pair], apart if unrelated[pair] else [*apart, *kin])

    def planted(dice: np.random.Generator) -> float:
        one, other = map(int, dice.permutation(dice.choice(np.argwhere(asked))))
        return table.log_drawn((one, other), one, weights((one, other)), dice)

    log_e = [table.log_one_item(*table.counts(pair), weights(pair)) for pair in pairs]
    return BattlePairs(pairs, np.array(log_e), np.array([near[pair] for pair in pairs]), int(asked.sum()), planted)
