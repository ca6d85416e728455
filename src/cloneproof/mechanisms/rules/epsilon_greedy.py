"""Epsilon-greedy with a falling epsilon (Auer, Cesa-Bianchi and Fischer 2002)."""

from __future__ import annotations

import numpy as np

from cloneproof._lib.discovery import formula
from cloneproof.mechanisms.bandits.rule import Numbers, PriorityInputs, Rule, positive


@formula("epsilon-greedy")
def priority(inputs: PriorityInputs, c: float) -> float:
    """Prefer, with probability min(1, cK/t), a random candidate, else the highest mean (0 for one never pulled)."""
    if inputs.coin * inputs.clock < c * inputs.candidates:
        return inputs.draw
    return inputs.mean


def chance(clock: Numbers, pulls: Numbers, means: Numbers, outstanding: Numbers, c: float) -> Numbers:
    """Spread epsilon over all, the rest over the highest means with the fewest outstanding rewards.

    >>> chance(np.array(4), np.array([1, 1]), np.array([0.5, 0.25]), np.array([0, 0]), 1.0).tolist()
    [0.75, 0.25]
    """
    count = len(means)
    epsilon = np.where(clock > 0, np.minimum(1.0, c * count / np.maximum(clock, 1)), 1.0)
    top = means == means.max(axis=0)
    late = np.where(top, outstanding, outstanding.max())
    greedy = top & (late == late.min(axis=0))
    return np.asarray(epsilon / count + (1 - epsilon) * greedy / greedy.sum(axis=0))


def epsilon_greedy(c: float = 1.0) -> Rule:
    """epsilon_t = min(1, cK/t) for K candidates; with K >= T/c every pick up to round T is uniform."""
    c = positive(c, "the parameter c of epsilon-greedy")
    return Rule("epsilon-greedy", priority, (c,), chance=chance, options={"c": c})
