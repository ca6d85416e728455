"""First pass: slots are tested one after the other, and the first to reach a threshold becomes champion."""

from __future__ import annotations

from cloneproof._lib.checks import HORIZON_LIMIT, count, number_in
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.bandits.rule import Rule, Slots, rounds_number
from cloneproof.mechanisms.rules.etc import average


def first_pass(draws: int = 4, rounds: int = 10, threshold: float = 6, coins: bool = True) -> Rule:
    """Up to `draws` uniform draws from an agent's arms, tested for `rounds` pulls each until one counts `threshold`.

    A test always takes all its pulls, even if the threshold is reached sooner. If no draw passes, the best count wins
    (ties to the earlier draw; docs/textbook/reservoir.md). Rewards in [0, 1] become coins that show 1 with their
    probability. Without coins the threshold is a sum of rewards, for Gaussian rewards of one standard deviation.

    >>> first_pass(draws=16, rounds=154, threshold=113).slots.threshold
    113
    """
    draws = rounds_number(draws, "the draws of a reservoir")
    rounds = rounds_number(rounds, "the pulls of a test")
    if coins:
        threshold = count(threshold, "the threshold of a test", 1, rounds, MechanismError)
    else:
        threshold = number_in(threshold, "the threshold of a test", -HORIZON_LIMIT, HORIZON_LIMIT, MechanismError)
    options: dict[str, object] = {"draws": draws, "rounds": rounds, "threshold": threshold}
    if not coins:
        options["coins"] = False
    slots = Slots(draws, threshold)
    return Rule("first-pass", average, explore=rounds, commits=True, binarise=coins, slots=slots, options=options)
