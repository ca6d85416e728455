"""The numbers of rounds that the theorems ask for, from the principal's design parameters.

L and the gaps are declared by the principal or read off priors, never inferred from what was registered. Real numbers
are rounded up and are at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cloneproof.bounds._domain import checked
from cloneproof.bounds.applicability import fits
from cloneproof.errors import MechanismError

MOST_ROUNDS = 10**15


@checked
def etc_rounds(originals: int, gap: float, horizon: int, factor: float = 2.0) -> int:
    """M = (factor / gap^2) l ln(2T), Theorems 3 and 4 (the proof of Theorem 4 takes four times the factor).

    >>> etc_rounds(originals=2, gap=1.0, horizon=4000)
    36
    """
    return max(1, math.ceil(factor / gap**2 * originals * math.log(2 * horizon)))


@checked
def trial_rounds(arm_rounds: int, originals: int, horizon: int) -> int:
    """M = max(mL, sqrt(T ln T)), Theorem 5.

    >>> trial_rounds(59, 2, 10**6)
    3717
    """
    return max(arm_rounds * originals, math.ceil(math.sqrt(horizon * math.log(horizon))))


@checked
def trp_arm_rounds(originals: int, gap: float, horizon: int, spread: float = 0.5) -> int:
    """The smallest m to which fact 4 applies, about 1 / (2l) of what Theorem 3 asks for.

    >>> trp_arm_rounds(2, 0.5, 10**6), etc_rounds(2, 0.5, 10**6)
    (43, 233)
    """
    return smallest(lambda m: fits(originals, gap, m, horizon, spread, 1.0))


@checked
def holdout_arm_rounds(originals: int, gap: float, horizon: int, spread: float = 0.5) -> int:
    """The smallest m with (L - 1) exp(-m gap^2 / (4 spread^2)) <= m gap / (L T), the hold-out theorem's condition.

    >>> holdout_arm_rounds(originals=2, gap=0.5, horizon=10**6)
    46
    """
    return smallest(lambda m: fits(originals, gap, m, horizon, spread, gap))


@checked
def arm_rounds_without_gap(horizon: int, power: float = 3.0) -> int:
    """An m for a platform that knows no gap: (ln T)^3.

    A choice, not a theorem: it grows so slowly that the regret stays polylogarithmic, and fast enough that the gap from
    which on the hold-out theorem applies (`covered_gap`) falls like 1 / ln T.

    >>> [arm_rounds_without_gap(10**k) for k in (3, 6, 9)]
    [330, 2637, 8900]
    """
    return max(1, math.ceil(math.pow(math.log(horizon), power)))


@checked
def holdout_score_rounds(agents: int, agent_gap: float | None, horizon: int, spread: float = 0.5) -> int:
    """W = ln(nT) / agent_gap^2, or (T/n)^(2/3) (ln T)^(1/3) where the agents' gap is unknown.

    >>> holdout_score_rounds(3, 0.5, 10**6), holdout_score_rounds(3, None, 10**6)
    (60, 11536)
    """
    if agent_gap is None:
        return max(1, math.ceil(math.pow(horizon / agents, 2 / 3) * math.pow(math.log(horizon), 1 / 3)))
    return max(1, math.ceil(4 * spread**2 * math.log(agents * horizon) / agent_gap**2))


@checked
def holdout_rounds(
    agents: int, originals: int, gap: float | None, agent_gap: float | None, horizon: int, spread: float = 0.5
) -> tuple[int, int]:
    """M and W of the hold-out mechanism from what the platform knows; None where it does not know a gap.

    >>> holdout_rounds(3, 2, 0.5, 0.5, 10**6), holdout_rounds(3, 2, None, None, 10**6)
    ((46, 60), (2637, 11536))
    """
    if gap is None and originals > 1:
        arm_rounds = arm_rounds_without_gap(horizon)
    else:
        arm_rounds = holdout_arm_rounds(originals, math.inf if gap is None else gap, horizon, spread)
    return arm_rounds, holdout_score_rounds(agents, agent_gap, horizon, spread)


@checked
def holdout_trial(arm_rounds: int, score_rounds: int, max_arms: int) -> int:
    """M = K m + W: every agent's rounds before the award."""
    return max_arms * arm_rounds + score_rounds


@checked
def holdout_award_horizon(
    agents: int,
    originals: int,
    gap: float | None,
    agent_gap: float | None = None,
    max_arms: int | None = None,
    spread: float = 0.5,
) -> int:
    """The horizon from which on the hold-out mechanism always has an award: T >= n M, parameters derived for each T.

    None for a gap that is not known: m = (ln T)^3, W = (T/n)^(2/3) (ln T)^(1/3).

    >>> holdout_award_horizon(3, 2, 0.5, 0.5)
    174
    """
    allowed = originals if max_arms is None else max_arms

    def trials(horizon: int) -> int:
        if horizon > MOST_ROUNDS:
            raise MechanismError("the hold-out mechanism has no award at any horizon up to 10^15; declare larger gaps")
        arm_rounds, score_rounds = holdout_rounds(agents, originals, gap, agent_gap, horizon, spread)
        return agents * holdout_trial(arm_rounds, score_rounds, allowed)

    return first_horizon_with_award(trials)


@checked
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


@checked
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
