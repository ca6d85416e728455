"""Searches for the first whole number from which on a condition holds."""

from __future__ import annotations

from collections.abc import Callable

from cloneproof.bounds._domain import checked


@checked
def smallest(holds: Callable[[int], bool]) -> int:
    """The smallest whole number from 1 with a property that, once true, stays true.

    Parameters
    ----------
    holds : callable
        The property of a whole number.

    Returns
    -------
    int
        The number.
    """
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

    Parameters
    ----------
    trial : callable
        The rounds of all trials, as a function of the horizon.

    Returns
    -------
    int
        The horizon.

    Examples
    --------
    >>> import math
    >>> first_horizon_with_award(lambda horizon: 10 * math.ceil(math.log(horizon + 1)))
    40
    """
    high = 1
    while high < 2 * trial(high):
        high *= 2
    while trial(high) - 1 < high:
        high = trial(high) - 1
    return high + 1
