"""UCB with a constant exploration term: the index depends only on a candidate's own rewards."""

from __future__ import annotations

import math

from cloneproof._lib.discovery import formula
from cloneproof.laws.logarithm import ln, root_exceeds
from cloneproof.mechanisms.bandits.rule import Order, PriorityInputs, Rule, positive, rounds_number


@formula("steady-ucb")
def index(inputs: PriorityInputs, width: float) -> float:
    """Return mean + sqrt(width / n); a candidate without rewards ranks below every other."""
    if inputs.pulls == 0:
        return -math.inf
    return inputs.mean + math.sqrt(width / inputs.pulls)


def exceeds(inputs: PriorityInputs, level: float, width: float) -> bool:
    """Whether the index is surely above a level."""
    return root_exceeds(inputs.mean, inputs.pulls, width, level)


def steady_ucb(
    horizon: int = 1000, constant: float = 1.0, rounds: int = 1, order: Order = "round-robin", coins: bool = False
) -> Rule:
    """`rounds` rounds for every candidate, then the highest mean + sqrt(constant ln T / n), T the horizon.

    Better rewards never cost a candidate a round: the others play the same sequence among themselves, and only how soon
    it interrupts them changes. With ln t instead of ln T this fails from three candidates on, since the clock then
    affects how the others compare. With constant 1 each mean in [0, 1] is within its bonus except with probability
    T^-2. With coins, a reward in [0, 1] counts as 1 with its probability and else as 0.

    >>> round(steady_ucb(horizon=100).priority(PriorityInputs(7, 0, 4, 0.5, 0, 0, 3), math.log(100)), 6)
    1.572983
    """
    horizon = rounds_number(horizon, "the horizon of steady UCB")
    constant = positive(constant, "the constant of steady UCB")
    rounds = rounds_number(rounds, "the rounds of exploration")
    options = {"horizon": horizon, "constant": constant, "rounds": rounds, "order": order}
    if coins:
        options["coins"] = True
    width = constant * ln(horizon)
    return Rule(
        "steady-ucb", index, (width,), explore=rounds, order=order, binarise=coins, options=options,
        bound=index, exceeds=exceeds,
    )  # fmt: skip
