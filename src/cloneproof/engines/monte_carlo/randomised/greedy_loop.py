"""The rounds of epsilon-greedy: two words hashed and a division, whatever the number of arms, while one arm leads.

The leader's average enters the tree only when it has fallen to the next one's or below, or another arm has passed it.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomised.average_tree import best_arm, best_of_others, clear, enter_average
from cloneproof.engines.monte_carlo.randomised.click_table import one_of, pull
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.mechanisms.online.streams import COIN_STREAM, TIE_STREAM


@compiled
def greedy_rounds(arms, tree, horizon, stream, c):
    """All rounds of a run; `stream` is that of the level."""
    coins, chance = word(stream, COIN_STREAM), c * len(arms)
    clear(tree, len(arms))
    leader, others = np.int64(-1), 0.0  # the one arm of the highest average, and the highest of the others
    for t in range(horizon):
        if uniform(coins, t) * (t + 1) < chance:
            a = _explored(arms, t, stream)
        elif leader >= 0:
            a = leader
        else:
            a = best_arm(tree, np.int64(uniform(word(stream, TIE_STREAM), t) * tree.ties[1]))
            if tree.ties[1] == 1:
                leader, others = a, best_of_others(tree, a)
        pull(arms[a])
        average = arms[a].wins / arms[a].pulls
        if a == leader and average > others:
            continue
        enter_average(tree, a, average)
        if leader >= 0 and (a == leader or average > others):
            enter_average(tree, leader, arms[leader].wins / arms[leader].pulls)
            leader = np.int64(-1)


@compiled
def _explored(arms, t, stream):
    """The arm of the highest draw."""
    highest, ties = -1.0, 0
    for a in range(len(arms)):
        value = uniform(arms[a].draw, t)
        if value > highest:
            highest, ties = value, 0
        elif value != highest:
            continue
        arms[ties].tie = a
        ties += 1
    return one_of(arms, ties, stream, t)
