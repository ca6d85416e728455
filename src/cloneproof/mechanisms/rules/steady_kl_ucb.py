"""KL-UCB with a constant exploration term: the index depends only on a candidate's own rewards."""

from __future__ import annotations

import math

from cloneproof._lib.discovery import formula
from cloneproof.laws.logarithm import kl_exceeds, kl_upper_bound, ln
from cloneproof.mechanisms.bandits.rule import Order, PriorityInputs, Rule, positive, rounds_number


@formula("steady-kl-ucb")
def index(inputs: PriorityInputs, width: float) -> float:
    """Return the largest q with n kl(mean, q) <= width; a candidate without rewards ranks below every other."""
    if inputs.pulls == 0:
        return -math.inf
    return kl_upper_bound(inputs.mean, inputs.pulls, width)


def exceeds(inputs: PriorityInputs, level: float, width: float) -> bool:
    """Whether the index is surely above a level."""
    return kl_exceeds(inputs.mean, inputs.pulls, width, level)


def steady_kl_ucb(horizon: int = 1000, constant: float = 1.0, rounds: int = 1, order: Order = "round-robin") -> Rule:
    """`rounds` rounds for every candidate, then the largest q with n kl(mean, q) <= constant ln T, T the horizon.

    The index depends only on a candidate's own count and sum and rises with the sum, so better rewards never cost a
    candidate a round (see `steady_ucb`). It suits low rates, since the bonus follows the variance. Rewards in [0, 1]
    become coins that show 1 with their probability.

    >>> round(steady_kl_ucb(horizon=100).priority(PriorityInputs(7, 0, 4, 0.5, 0, 0, 3), math.log(100)), 6)
    0.974342
    """
    horizon = rounds_number(horizon, "the horizon of steady KL-UCB")
    constant = positive(constant, "the constant of steady KL-UCB")
    rounds = rounds_number(rounds, "the rounds of exploration")
    options = {"horizon": horizon, "constant": constant, "rounds": rounds, "order": order}
    width = constant * ln(horizon)
    return Rule(
        "steady-kl-ucb", index, (width,), explore=rounds, order=order, binarise=True, options=options,
        bound=index, exceeds=exceeds,
    )  # fmt: skip
