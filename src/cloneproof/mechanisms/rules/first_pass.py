"""First pass: slots are tested one after the other, and the first whose count reaches a threshold becomes champion."""

from __future__ import annotations

from typing import get_args

from cloneproof._checks import real
from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.rule import MOST_ROUNDS, Fallback, Rule, coins_or_sums, rounds_number
from cloneproof.mechanisms.rules.etc import average


def first_pass(
    draws: int = 4, rounds: int = 10, threshold: float = 6, fallback: Fallback = "best", coins: bool = True
) -> Rule:
    """Up to `draws` uniform draws from an agent's arms, tested for `rounds` pulls each until one counts `threshold`.

    A test passes or fails after its last pull, though the threshold may be reached sooner. If no draw passes, the best
    count wins (ties to the earlier draw), or with `fallback="draw"` a fresh draw. Rewards in [0, 1] become coins that
    show 1 with their probability. The scan theorem covers both (docs/textbook/reservoir.md). Without coins the
    threshold is a sum of rewards, any number, for Gaussian rewards of one standard deviation.

    >>> first_pass(draws=16, rounds=154, threshold=113).threshold
    113
    """
    draws = rounds_number(draws, "the draws of a reservoir")
    rounds = rounds_number(rounds, "the pulls of a test")
    threshold = rounds_number(threshold, "the threshold of a test") if coins_or_sums(coins) else _sum(threshold)
    if coins and threshold > rounds:
        raise MechanismError(
            f"expected a threshold of at most the {rounds} pulls of a test, got {threshold}; lower it, or test no draw "
            "with the rule best-of-draws"
        )
    if fallback not in get_args(Fallback):
        raise MechanismError(f"expected fallback to be 'best' or 'draw', got {brief(fallback)}; choose one of them")
    options = {"draws": draws, "rounds": rounds, "threshold": threshold, "fallback": fallback}
    if not coins:
        options["coins"] = False
    return Rule(
        "first-pass", average, explore=rounds, commits=True, binarise=coins,
        draws=draws, threshold=threshold, fallback=fallback, options=options,
    )  # fmt: skip


def _sum(threshold: object) -> float:
    number = real(threshold)
    if number is None or abs(number) > MOST_ROUNDS:
        raise MechanismError(
            f"expected the threshold of a test without coins as a sum of rewards, got {brief(threshold)}; use e.g. 4.5"
        )
    return number
