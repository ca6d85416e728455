"""KL-UCB: upper confidence bounds by the divergence of coins (Garivier and Cappe 2011)."""

from __future__ import annotations

import math

from cloneproof._lib.discovery import formula
from cloneproof.laws.logarithm import KL_MARGIN, kl_exceeds, kl_upper_bound
from cloneproof.mechanisms.bandits.rule import Clock, PriorityInputs, Rule, positive


@formula("kl-ucb")
def index(inputs: PriorityInputs, constant: float) -> float:
    """Return the largest q with n kl(mean, q) <= constant ln t; a candidate without rewards comes first."""
    if inputs.pulls == 0:
        return math.inf
    return kl_upper_bound(inputs.mean, inputs.pulls, constant * inputs.log_clock)


def bound(inputs: PriorityInputs, constant: float) -> float:
    """Return the index and a margin, as indices of two clocks are rounded apart."""
    return index(inputs, constant) + KL_MARGIN


def exceeds(inputs: PriorityInputs, level: float, constant: float) -> bool:
    """Whether the index is surely above a level."""
    return kl_exceeds(inputs.mean, inputs.pulls, constant * inputs.log_clock, level)


def kl_ucb(constant: float = 1.0, clock: Clock = "current") -> Rule:
    """KL-UCB with exploration constant * ln t; rewards in [0, 1] become coins that show 1 with their probability.

    Each candidate is tried once before the index counts. With constant 1 the regret of Bernoulli rewards has the
    constant of Lai and Robbins.

    >>> round(kl_ucb().priority(PriorityInputs(7, math.log(7), 2, 0.5, 0, 0, 3), 1.0), 6)
    0.96291
    """
    constant = positive(constant, "the constant of KL-UCB")
    options = {"constant": constant, "clock": clock}
    return Rule(
        "kl-ucb", index, (constant,), explore=1, clock=clock, binarise=True, options=options,
        bound=bound, exceeds=exceeds,
    )  # fmt: skip
