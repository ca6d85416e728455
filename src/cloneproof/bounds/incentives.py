"""How far a given m reaches: from which gap on no copy pays, and what copies can gain below it."""

from __future__ import annotations

import math

from cloneproof.bounds._domain import checked
from cloneproof.bounds.applicability import fits, holdout_applies
from cloneproof.bounds.tails import mistake


@checked
def covered_gap(originals: int, arm_rounds: int, horizon: int, spread: float = 0.5) -> float:
    """The gap from which on the hold-out theorem applies to this m: no copy pays if all gaps are at least this.

    The condition's left side falls with the gap and its right side grows, so a bisection finds the only crossing; the
    upper end is returned, so that the condition does hold there. Infinite if not even a gap of 1 is covered.

    Parameters
    ----------
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    arm_rounds : int
        The rounds m for each arm.
    horizon : int
        The number T of rounds.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    float
        The gap.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
    >>> round(covered_gap(2, 46, 10**6), 3)
    0.497
    """
    if originals == 1:
        return 0.0
    low, high = 0.0, 1.0
    if not fits(originals, high, arm_rounds, horizon, spread, high):
        return math.inf
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(originals, middle, arm_rounds, horizon, spread, middle) else (middle, high)
    return high


@checked
def holdout_gain(originals: int, gap: float, arm_rounds: int, horizon: int, spread: float = 0.5) -> float:
    """The most that copies can gain under the hold-out mechanism, at share 1, whatever the others do.

    0 where `holdout_applies`. Otherwise 2 eps T: without the condition, step 1 of the proof still says that copies save
    at most H eps in H rounds inside the agent, and step 2 that they raise its chance to win by at most eps of the best
    arm's; the award then gains at most 2 eps N and the trial eps M. (docs/textbook/hold-out.md, section 7.)

    Parameters
    ----------
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    gap : float
        The smallest distance of two different means of an agent; infinite where all are equal.
    arm_rounds : int
        The rounds m for each arm.
    horizon : int
        The number T of rounds.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    docs/textbook/hold-out.md, section 7.
    """
    if holdout_applies(originals, gap, arm_rounds, horizon, spread):
        return 0.0
    return min(float(horizon), 2 * mistake(originals, gap, arm_rounds, spread) * horizon)
