"""The numbers that the theorems ask for, from the principal's design parameters.

L (the largest number of originals) and the gaps are declared by the principal or read off the priors of the market,
never inferred from what was registered. Real numbers are rounded up and are at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cloneproof.errors import MechanismError
from cloneproof.market.market import Market
from cloneproof.mechanisms.rule import positive

SMALLEST_GAP = 1e-7  # its square still leaves m below 10^15 or so rounds


def known_gap(market: Market) -> float:
    """The market's gap, or the error that a theorem needs one."""
    if market.gap is None:
        raise MechanismError(
            "expected a market with a gap, which the theorem needs, got continuous priors without one; "
            "declare gap in the market, bin an empirical prior, or give the rounds yourself"
        )
    if market.gap < SMALLEST_GAP:
        raise MechanismError(
            f"expected a gap of at least {SMALLEST_GAP:g}, got {market.gap:g}, which no horizon can tell apart; "
            "declare a larger gap in the market, or bin an empirical prior"
        )
    return market.gap


def etc_rounds(originals: int, gap: float, horizon: int, factor: float = 2.0) -> int:
    """M = (factor / gap^2) l ln(2T), Theorems 3 and 4 (the proof of Theorem 4 takes four times the factor).

    >>> etc_rounds(originals=2, gap=1.0, horizon=4000)
    36
    """
    factor = positive(factor, "the factor of m")
    return max(1, math.ceil(factor / gap**2 * originals * math.log(2 * horizon)))


def trial_rounds(arm_rounds: int, originals: int, horizon: int) -> int:
    """M = max(mL, sqrt(T ln T)), Theorem 5.

    >>> trial_rounds(59, 2, 10**6)
    3717
    """
    return max(arm_rounds * originals, math.ceil(math.sqrt(horizon * math.log(horizon))))


def holdout_arm_rounds(originals: int, gap: float, horizon: int, spread: float = 0.5) -> int:
    """The smallest m with (L - 1) exp(-m gap^2 / (4 spread^2)) <= m gap / (L T), the hold-out theorem's condition.

    `spread` is the rewards' sub-Gaussian standard deviation: 1/2 in [0, 1], sd for Gaussian rewards.

    >>> holdout_arm_rounds(originals=2, gap=0.5, horizon=10**6)
    46
    """
    if originals == 1 or math.isinf(gap):
        return 1
    rate = gap**2 / (4 * spread**2)

    def holds(m: int) -> bool:
        return math.log(originals - 1) - m * rate <= math.log(m * gap / (originals * horizon))

    return smallest(holds)


def holdout_score_rounds(agents: int, agent_gap: float | None, horizon: int, spread: float = 0.5) -> int:
    """W = ln(nT) / agent_gap^2, or (T/n)^(2/3) (ln T)^(1/3) where the agents' gap is unknown."""
    if agent_gap is None:
        return max(1, math.ceil(math.pow(horizon / agents, 2 / 3) * math.pow(math.log(horizon), 1 / 3)))
    return max(1, math.ceil(4 * spread**2 * math.log(agents * horizon) / agent_gap**2))


def smallest(holds: Callable[[int], bool]) -> int:
    """The smallest whole number from 1 with a property that, once true, stays true."""
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2  # fails, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def first_horizon_with_award(trial: Callable[[int], int]) -> int:
    """The horizon from which on T >= trial(T) always holds, for a trial length that grows slower than T, with it.

    Going down from a horizon that is large enough: a T that fails has T < trial(T) <= trial(high), so everything
    from trial(high) up to high is fine.

    >>> first_horizon_with_award(lambda horizon: 10 * math.ceil(math.log(horizon + 1)))
    40
    """
    high = 1
    while high < 2 * trial(high):
        high *= 2
    while trial(high) - 1 < high:
        high = trial(high) - 1
    return high + 1
