"""Upper confidence bounds: Algorithm 1, and each level of Algorithm 2."""

from __future__ import annotations

import math
from collections.abc import Callable

from cloneproof._lib.discovery import formula
from cloneproof.errors import MechanismError
from cloneproof.laws.logarithm import root_exceeds
from cloneproof.mechanisms.bandits.rule import Clock, PriorityInputs, Rule, positive

PAPERS_CONSTANT = 2.0


@formula("ucb")
def index(inputs: PriorityInputs, constant: float) -> float:
    """Return mean + sqrt(constant ln t / n); a candidate without rewards comes first."""
    if inputs.pulls == 0:
        return math.inf
    return inputs.mean + math.sqrt(constant * inputs.log_clock / inputs.pulls)


def exceeds(inputs: PriorityInputs, level: float, constant: float) -> bool:
    """Whether the index is surely above a level."""
    return root_exceeds(inputs.mean, inputs.pulls, constant * inputs.log_clock, level)


def ucb(
    constant: float = PAPERS_CONSTANT, clock: Clock = "current", bonus: Callable[[float, float], float] | None = None
) -> Rule:
    """UCB with bonus sqrt(constant ln t / n): 2 as in the paper's pseudocode, 1 as in its proofs.

    `bonus(t, n)` replaces the bonus by your own function of clock and pulls. Each candidate is tried once first.

    >>> round(ucb().priority(PriorityInputs(7, math.log(7), 2, 0.5, 0, 0, 3), 2.0), 6)
    1.894959
    """
    if bonus is None:
        constant = positive(constant, "the constant of UCB")
        options = {"constant": constant, "clock": clock}
        return Rule("ucb", index, (constant,), explore=1, clock=clock, options=options, bound=index, exceeds=exceeds)
    if not callable(bonus):
        raise MechanismError(f"expected bonus to be a function f(t, n), got {bonus!r}; give a function of two numbers")
    if constant != PAPERS_CONSTANT:
        raise MechanismError("expected either bonus or constant, got both; put the constant into your bonus")
    return Rule("ucb", _with_bonus(bonus), explore=1, clock=clock, options={"bonus": bonus, "clock": clock})


def _with_bonus(bonus: Callable[[float, float], float]) -> Callable[..., float]:
    def own_index(inputs: PriorityInputs) -> float:
        if inputs.pulls == 0:
            return math.inf
        return inputs.mean + bonus(inputs.clock, inputs.pulls)

    return own_index
