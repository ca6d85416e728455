"""KL-UCB whose exploration term falls with a candidate's own rounds, and depends on no clock."""

from __future__ import annotations

import math

from cloneproof._discovery import formula
from cloneproof.mechanisms.arithmetic import kl_exceeds, kl_upper_bound, log_ratio
from cloneproof.mechanisms.rule import PriorityInputs, Rule, positive, rounds_number


@formula("kl-moss")
def index(inputs: PriorityInputs, horizon: float, constant: float) -> float:
    """Return the largest q with n kl(mean, q) <= constant ln(1 + T / (N n)); a candidate without rewards is first."""
    if inputs.pulls == 0:
        return math.inf
    width = constant * log_ratio(horizon / (inputs.candidates * inputs.pulls))
    return kl_upper_bound(inputs.mean, inputs.pulls, width)


def exceeds(inputs: PriorityInputs, level: float, horizon: float, constant: float) -> bool:
    """Whether the index is surely above a level."""
    if inputs.pulls == 0:
        return False
    width = constant * log_ratio(horizon / (inputs.candidates * inputs.pulls))
    return kl_exceeds(inputs.mean, inputs.pulls, width, level)


def kl_moss(horizon: int = 1000, constant: float = 1.0) -> Rule:
    """KL-UCB with exploration constant * ln(1 + T / (N n)): T the horizon, N the candidates, n a candidate's rounds.

    The exploration term of MOSS (Audibert and Bubeck 2009) in the divergence of coins (Menard and Garivier 2017). As in
    `steady_kl_ucb` the index depends on a candidate's own rewards alone and rises with them, so that better rewards
    never cost a round. Rewards in [0, 1] become coins that show 1 with their probability.

    >>> round(kl_moss().priority(PriorityInputs(7, 0, 4, 0.5, 0, 0, 3), 1000.0, 1.0), 6)
    0.971992
    """
    horizon = rounds_number(horizon, "the horizon of KL-MOSS")
    constant = positive(constant, "the constant of KL-MOSS")
    options = {"horizon": horizon, "constant": constant}
    return Rule(
        "kl-moss", index, (float(horizon), constant), explore=1, binarise=True, options=options,
        bound=index, exceeds=exceeds,
    )  # fmt: skip
