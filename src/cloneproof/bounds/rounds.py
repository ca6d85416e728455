"""The numbers of rounds that the paper's theorems ask for, from the principal's design parameters.

L and the gaps are declared by the principal or read off priors, never inferred from what was registered. Real numbers
are rounded up and are at least 1.
"""

from __future__ import annotations

import math

from cloneproof.bounds._domain import checked
from cloneproof.bounds.applicability import fits
from cloneproof.bounds.searches import smallest


@checked
def etc_rounds(originals: int, gap: float, horizon: int, factor: float = 2.0) -> int:
    """M = (factor / gap^2) l ln(2T), Theorems 3 and 4 (the proof of Theorem 4 takes four times the factor).

    Parameters
    ----------
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    gap : float
        The smallest distance of two different means of an agent; infinite where all are equal.
    horizon : int
        The number T of rounds.
    factor : float, default 2.0
        The constant of the formula.

    Returns
    -------
    int
        m.

    References
    ----------
    The paper, Theorems 3 and 4.

    Examples
    --------
    >>> etc_rounds(originals=2, gap=1.0, horizon=4000)
    36
    """
    return max(1, math.ceil(factor / gap**2 * originals * math.log(2 * horizon)))


@checked
def trial_rounds(arm_rounds: int, originals: int, horizon: int) -> int:
    """M = max(mL, sqrt(T ln T)), Theorem 5.

    Parameters
    ----------
    arm_rounds : int
        The rounds m for each arm.
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    horizon : int
        The number T of rounds.

    Returns
    -------
    int
        M.

    References
    ----------
    The paper, Theorem 5.

    Examples
    --------
    >>> trial_rounds(59, 2, 10**6)
    3717
    """
    return max(arm_rounds * originals, math.ceil(math.sqrt(horizon * math.log(horizon))))


@checked
def trp_arm_rounds(originals: int, gap: float, horizon: int, spread: float = 0.5) -> int:
    """The smallest m that meets `trp_applies`, about 1 / (2l) of what Theorem 3 asks for.

    Parameters
    ----------
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    gap : float
        The smallest distance of two different means of an agent; infinite where all are equal.
    horizon : int
        The number T of rounds.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    int
        m.

    References
    ----------
    docs/reading.md, what we found on Theorem 3.

    Examples
    --------
    >>> trp_arm_rounds(2, 0.5, 10**6), etc_rounds(2, 0.5, 10**6)
    (43, 233)
    """
    return smallest(lambda m: fits(originals, gap, m, horizon, spread, 1.0))
