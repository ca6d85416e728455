"""Who wins the award: the highest score, ties uniformly at random."""

from __future__ import annotations

import numpy as np

from cloneproof.engines.closed_form.laws.arithmetic import Arithmetic, Array, Number
from cloneproof.engines.closed_form.laws.tie_breaking import products_without_each, tie_nodes
from cloneproof.engines.closed_form.phases.trial_score import ScoreLaw
from cloneproof.engines.time_limit import check_time


def awards(scores: list[ScoreLaw], arithmetic: Arithmetic) -> tuple[list[Number], int]:
    """The expected reward of each agent from the award, and the roundings."""
    grid = np.unique(np.concatenate([score.scores for score in scores]))
    at, before, prizes = {}, {}, {}
    for score in {id(score): score for score in scores}.values():
        chances, prize = arithmetic.zeros(len(grid)), arithmetic.zeros(len(grid))
        position = np.searchsorted(grid, score.scores)
        chances[position], prize[position] = score.chances, score.awards
        below = arithmetic.zeros(len(grid))
        below[1:] = np.cumsum(chances)[:-1]
        at[id(score)], before[id(score)], prizes[id(score)] = chances, below, prize
    nodes, weights = tie_nodes(len(scores) - 1, arithmetic)
    totals: list[Number] = [arithmetic.number(0)] * len(scores)
    for x, weight in zip(nodes, weights, strict=True):
        check_time("closed form")
        below_or_tied: dict[int, Array] = {key: before[key] + x * at[key] for key in at}
        rivals = products_without_each([below_or_tied[id(score)] for score in scores])
        for i, score in enumerate(scores):
            totals[i] = totals[i] + weight * (prizes[id(score)] @ rivals[i])
    worst = sum(score.roundings for score in scores) + len(scores) * (len(grid) + 4) + len(nodes) + len(grid)
    return totals, worst
