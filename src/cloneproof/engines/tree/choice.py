"""How a level spreads over its candidates in many states at once: `mechanisms.online.level` without the dice."""

from __future__ import annotations

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.largest_draw import largest_draw
from cloneproof.engines.tree.beliefs import Ints
from cloneproof.engines.tree.priorities import Mask, best, draws_posteriors, flips_coin
from cloneproof.mechanisms.rule import Rule


def spread(
    rule: Rule, explore: int, clock: Ints, pulls: Ints, mean: FloatArray, decided: Ints, chosen: Mask | None
) -> tuple[FloatArray, Mask]:
    """The probability of each candidate (rows) in each state (columns), and where a commitment is made now.

    Exploration comes first: least-pulled with ties uniform, or block after block in an order drawn as it goes (the
    next block is uniform among the untouched), or by registration. Then the highest priority, ties uniform; or the
    largest draw from the posteriors.
    """
    owed = decided < explore
    exploring = owed.any(axis=0)
    committed = np.zeros(pulls.shape[1], dtype=bool) if chosen is None else chosen.any(axis=0)
    weights = np.zeros(pulls.shape)
    turn = np.flatnonzero(exploring & ~committed)
    if len(turn):
        weights[:, turn] = _even(_next_explored(rule, decided[:, turn], owed[:, turn]))
    free = np.flatnonzero(~exploring & ~committed)
    if len(free):
        at = clock[free] - (rule.clock == "completed")
        if draws_posteriors(rule):
            ones = np.rint(mean[:, free] * pulls[:, free]).astype(np.int64)
            shares = largest_draw(pulls[:, free], ones)
        else:
            shares = _even(best(rule, at, pulls[:, free], mean[:, free]))
        if flips_coin(rule):
            count = len(pulls)
            with np.errstate(divide="ignore"):
                random = np.where(at > 0, np.minimum(1.0, rule.parameters[0] * count / np.maximum(at, 1)), 1.0)
            shares = random / count + (1.0 - random) * shares
        weights[:, free] = shares
    if chosen is not None:
        weights[:, committed] = chosen[:, committed]
    return weights, np.asarray(~exploring & ~committed & rule.commits)


def _next_explored(rule: Rule, decided: Ints, owed: Mask) -> Mask:
    if rule.order == "round-robin":
        least = np.where(owed, decided, np.iinfo(np.int64).max).min(axis=0)
        return np.asarray(owed & (decided == least))
    if rule.order == "block":
        begun = owed & (decided > 0)
        return np.where(begun.any(axis=0), begun, owed)
    return np.asarray(owed & (owed.cumsum(axis=0) == 1))


def _even(candidates: Mask) -> FloatArray:
    return np.asarray(candidates / candidates.sum(axis=0))
