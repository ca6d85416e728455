"""A policy played again on a log's own rewards: each arm that it serves pays the next of the rewards that it has there.

The queue method (Mandel, Liu, Brunskill and Popovic 2016). An arm's rewards count as exchangeable, so the next one is
drawn without replacement; rewards are 0 and 1. It ends when the policy asks for an arm that has none left: later rounds
would be chosen by what the log happens to have. For logs that drew arms evenly this is replay in the sense of Li et al.
(2011), without the rows that it throws away. Over R rounds the mean of rewards is within sqrt(ln(2/0.05) / 2R) of the
mean of their conditional expectations, with 95 % (Azuma and Hoeffding).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from cloneproof.engines.estimate import Estimate
from cloneproof.logs.originals import LogOwner
from cloneproof.mechanisms import Mechanism, session

LEAST_REPLAYED: Final = 100


def replayed(
    made: Mechanism, owners: Sequence[LogOwner], rounds: int, most: int, seed: int = 0
) -> tuple[Estimate | None, int]:
    """The mean reward a round in [0, 1], and over how many of `rounds`; None where rewards are not 0 and 1, or too few.

    A round of neutral waiting cannot occur, since every reward comes before the next decision.
    """
    arms = {owner.name: [arm for group in owner.originals for arm in group] for owner in owners}
    if any(arm.squares != arm.total for mine in arms.values() for arm in mine):
        return None, 0
    left = {name: [[arm.rounds, int(arm.total)] for arm in mine] for name, mine in arms.items()}
    live = session(made, {name: len(mine) for name, mine in arms.items()}, horizon=rounds, seed=seed)
    draws = np.random.default_rng(seed).random(min(rounds, most))
    total = done = 0
    for draw in draws:
        decision = live.decide()
        queue = left[decision.agent][decision.arm]
        if queue[0] == 0:
            break
        reward = int(draw * queue[0] < queue[1])
        queue[0] -= 1
        queue[1] -= reward
        live.reward(decision.id, float(reward))
        total, done = total + reward, done + 1
    if done < LEAST_REPLAYED:
        return None, done
    width = math.sqrt(math.log(2 / 0.05) / (2 * done))
    return Estimate(total / done, width, "confidence", f"{done:,} rounds on the log's own rewards, 95 %"), done
