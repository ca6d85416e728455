"""UCB with a bonus that shrinks slowly: the agent level of RH-UCB (Shin, Lee and Ok 2022)."""

from __future__ import annotations

import math

from cloneproof._discovery import formula
from cloneproof.mechanisms.arithmetic import root_exceeds
from cloneproof.mechanisms.rule import Clock, PriorityInputs, Rule, positive


@formula("slow-ucb")
def index(inputs: PriorityInputs, constant: float) -> float:
    """Return mean + sqrt(constant sqrt(t) ln t / n); a candidate without rewards comes first."""
    if inputs.pulls == 0:
        return math.inf
    return inputs.mean + math.sqrt(constant * math.sqrt(inputs.clock) * inputs.log_clock / inputs.pulls)


def exceeds(inputs: PriorityInputs, level: float, constant: float) -> bool:
    """Whether the index is surely above a level."""
    width = constant * math.sqrt(inputs.clock) * inputs.log_clock
    return root_exceeds(inputs.mean, inputs.pulls, width, level)


def slow_ucb(constant: float = 1.0, clock: Clock = "completed") -> Rule:
    """UCB with bonus sqrt(constant sqrt(t) ln t / n), t counting completed rounds as in the 2022 paper's code."""
    constant = positive(constant, "the constant of slow UCB")
    options = {"constant": constant, "clock": clock}
    return Rule("slow-ucb", index, (constant,), explore=1, clock=clock, options=options, bound=index, exceeds=exceeds)
