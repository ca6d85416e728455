"""How often copies would have been found: planted into the log, and judged as its own arms are.

An arm is drawn, and its item is listed several times: with the rounds, in each cell, of the arms that were served
about as often. Rewards are drawn at its level, with deviations of the fitted law (in each table of cells by itself),
its agent's other arms stay as they are, and the e-value has to reach what a single finding needs. Of the groups of arms
only the planted one is judged by cells, which can only lose findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import betaincinv, gammaln

from cloneproof.analysis.copying.discoveries import CopyQuestion, SearchedLog, question_weights
from cloneproof.analysis.copying.judging import log_e_value
from cloneproof.analysis.copying.records import CopyPower

COPIES: Final = 4  # of the planted item
SEED: Final = 43
MISSED: Final = 0.05  # chance with which the stated interval misses
MOST_OTHERS: Final = 5  # other arms of the agent that are judged with the copies


def copy_power(log: SearchedLog, questions: Sequence[CopyQuestion], level: float, draws: int) -> CopyPower | None:
    """Return how often copies of an arm of the log are found; None where it has fewer arms than copies."""
    order = sorted(range(len(log.records)), key=lambda arm: -log.records[arm].rounds)
    if len(order) < COPIES or not draws:
        return None
    asked = [*questions, CopyQuestion(("planted",), (0, 1))]
    needed = np.log(len(asked) / (level * question_weights(asked)[-1]))
    dice = np.random.default_rng(SEED)
    starts = dice.integers(0, len(order) - COPIES + 1, draws)
    hits = sum(_log_planted(log, order[start : start + COPIES], dice) >= needed for start in starts)
    return estimated_power(COPIES, int(hits), draws)


def estimated_power(copies: int, hits: int, draws: int) -> CopyPower:
    """Return the chance and its interval, where so many of the planted items were found."""
    low = betaincinv(hits, draws - hits + 1, MISSED / 2) if hits else 0.0
    high = betaincinv(hits + 1, draws - hits, 1 - MISSED / 2) if hits < draws else 1.0
    return CopyPower(copies, hits / draws, float(low), float(high), draws)


def _log_planted(log: SearchedLog, arms: Sequence[int], dice: np.random.Generator) -> float:
    """Return ln of the e-value if an item, one of the arms drawn, is listed with the rounds of all of them."""
    first = arms[int(dice.integers(len(arms)))]
    agent = log.records[first].agent
    others = [arm for arm in log.by_agent[agent] if arm != first][:MOST_OTHERS]
    evidence, fold = log.evidence, int(log.priors.folds[first])
    here = np.array([np.argmin(np.abs(evidence.means - log.records[first].total / log.records[first].rounds))])
    with np.errstate(divide="ignore"):
        copies = [np.log(evidence.drawn(arm, here, dice)[0]) for arm in arms]
    rows = np.array([*copies, *(evidence.log_likelihood[arm] for arm in others)])
    values = [log_e_value(rows, log.laws("one agent", (fold, fold)))]
    count, size = len(arms) + len(others), len(arms)
    choices = gammaln(count + 1) - gammaln(size + 1) - gammaln(count - size + 1) + np.log(count - 1)
    for table in log.prints.tables:
        weights = table.weights({agent})
        values.append(table.log_drawn(arms, first, weights, dice) - choices)
    return float(np.logaddexp.reduce(values) - np.log(len(values)))
