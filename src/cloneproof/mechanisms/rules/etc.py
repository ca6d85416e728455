"""Explore, then commit: Algorithm 3, and each level of Algorithm 5."""

from __future__ import annotations

import math
from typing import get_args

from cloneproof._lib.checks import one_of
from cloneproof._lib.discovery import formula
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.bandits.rule import Choice, Order, PriorityInputs, Rule, rounds_number


@formula("mean")
def average(inputs: PriorityInputs) -> float:
    """Return the empirical mean; a candidate without rewards ranks below every other."""
    if inputs.pulls == 0:
        return -math.inf
    return inputs.mean


def etc(rounds: int, choice: Choice = "commit", order: Order = "round-robin") -> Rule:
    """`rounds` rounds for every candidate, then the one with the highest empirical mean.

    `commit` freezes the choice when exploration ends, as the proofs assume; `greedy` takes the argmax in every round,
    as Algorithm 5 is printed.
    """
    one_of(choice, get_args(Choice), "choice", MechanismError)
    rounds = rounds_number(rounds, "the rounds of exploration")
    options = {"rounds": rounds, "choice": choice, "order": order}
    return Rule("etc", average, explore=rounds, order=order, commits=choice == "commit", options=options)
