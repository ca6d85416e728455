"""Explore, then commit: Algorithm 3, and each level of Algorithm 5."""

from __future__ import annotations

import math
from typing import get_args

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.rule import Choice, Order, Rule, checked_order, rounds_number


def average(
    clock: float, log_clock: float, pulls: float, mean: float, coin: float, draw: float, candidates: float
) -> float:
    """The empirical mean; a candidate with no reward to judge by ranks below every other."""
    if pulls == 0:
        return -math.inf
    return mean


def etc(rounds: int, choice: Choice = "commit", order: Order = "round-robin") -> Rule:
    """`rounds` rounds for every candidate, then the one of highest empirical mean.

    `commit` freezes the choice when exploration ends, which is what the proofs use; `greedy` takes the running argmax
    in every round, as Algorithm 5 is printed.
    """
    if choice not in get_args(Choice):
        raise MechanismError(f"expected choice to be commit or greedy, got {choice!r}; choose one of them")
    rounds = rounds_number(rounds, "the rounds of exploration")
    options = {"rounds": rounds, "choice": choice, "order": checked_order(order)}
    return Rule("etc", average, explore=rounds, order=order, commits=choice == "commit", options=options)
