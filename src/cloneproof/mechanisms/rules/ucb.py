"""Upper confidence bounds: Algorithm 1, and each level of Algorithm 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.rule import Clock, Rule, positive


def index(
    clock: float,
    log_clock: float,
    pulls: float,
    mean: float,
    coin: float,
    draw: float,
    candidates: float,
    constant: float,
) -> float:
    """Mean + sqrt(constant ln t / n); a candidate of which no reward is known yet comes first."""
    if pulls == 0:
        return math.inf
    return mean + math.sqrt(constant * log_clock / pulls)


def slow_index(
    clock: float,
    log_clock: float,
    pulls: float,
    mean: float,
    coin: float,
    draw: float,
    candidates: float,
    constant: float,
) -> float:
    """Mean + sqrt(constant sqrt(t) ln t / n), the agent level of RH-UCB (Shin, Lee and Ok 2022)."""
    if pulls == 0:
        return math.inf
    return mean + math.sqrt(constant * math.sqrt(clock) * log_clock / pulls)


def ucb(
    constant: float | None = None,
    clock: Clock = "current",
    bonus: Callable[[float, float], float] | None = None,
    slow: bool = False,
) -> Rule:
    """UCB with bonus sqrt(constant ln t / n): 2 as in the paper's pseudocode, 1 as in its proofs.

    `bonus(t, n)` replaces the bonus by one's own function of clock and pulls. `slow` is RH-UCB's, which multiplies
    ln t by sqrt(t) and has constant 1. Each candidate is tried once before the index counts.

    >>> round(ucb().priority(7, math.log(7), 2, 0.5, 0, 0, 3, 2.0), 6)
    1.894959
    """
    if clock not in get_args(Clock):
        raise MechanismError(f"expected clock to be current or completed, got {clock!r}; choose one of them")
    if bonus is None:
        constant = (1.0 if slow else 2.0) if constant is None else positive(constant, "the constant of UCB")
        options = {"constant": constant, "clock": clock, "slow": slow}
        return Rule("ucb", slow_index if slow else index, (constant,), explore=1, clock=clock, options=options)
    if not callable(bonus):
        raise MechanismError(f"expected bonus to be a function f(t, n), got {bonus!r}; give a function of two numbers")
    if constant is not None or slow:
        raise MechanismError("expected either bonus or constant and slow, got both; put the constant into your bonus")
    return Rule("ucb", _with_bonus(bonus), explore=1, clock=clock, options={"bonus": bonus, "clock": clock})


def _with_bonus(bonus: Callable[[float, float], float]) -> Callable[..., float]:
    def own_index(
        clock: float, log_clock: float, pulls: float, mean: float, coin: float, draw: float, candidates: float
    ) -> float:
        if pulls == 0:
            return math.inf
        return mean + bonus(clock, pulls)

    return own_index
