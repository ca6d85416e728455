"""Best of s draws: slots are tested one after the other, and the highest count becomes champion."""

from __future__ import annotations

from cloneproof.mechanisms.bandits.rule import Rule, Slots, rounds_number
from cloneproof.mechanisms.rules.etc import average


def best_of_draws(draws: int = 4, rounds: int = 10, coins: bool = True) -> Rule:
    """`draws` uniform draws from an agent's arms, `rounds` pulls each; the highest count wins, ties to the earlier.

    Rewards in [0, 1] become coins that show 1 with their probability. Counts are then binomial and have monotone
    likelihood ratios, as the scan theorem requires (docs/textbook/reservoir.md). Without coins the sums of rewards
    count, for Gaussian rewards of one standard deviation, whose sums have such ratios.

    On pages of several places a test has `rounds` views in each place (docs/textbook/slates.md).

    >>> best_of_draws(draws=18, rounds=15).draws
    18
    """
    draws = rounds_number(draws, "the draws of a reservoir")
    rounds = rounds_number(rounds, "the pulls of a test")
    options: dict[str, object] = {"draws": draws, "rounds": rounds}
    if not coins:
        options["coins"] = False
    slots = Slots(draws)
    return Rule("best-of-draws", average, explore=rounds, commits=True, binarise=coins, slots=slots, options=options)
