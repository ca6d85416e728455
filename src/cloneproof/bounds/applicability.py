"""When copies cannot pay: the conditions for ETC with one agent, and of the hold-out and the capped theorem.

Both ask for an m so large that what a wrong commitment may cost is less than what the copies' own exploration costs.
"""

from __future__ import annotations

import math

from cloneproof.bounds._domain import checked
from cloneproof.bounds.tails import unchecked_log_mistake


@checked
def trp_applies(originals: int, gap: float, arm_rounds: int, horizon: int, spread: float = 0.5) -> bool:
    """(l - 1) exp(-m gap^2) <= m / (l T), under which ETC is truthful under random permutation up to T.

    One agent (or a number of rounds that does not depend on what it registers), exchangeable means of smallest gap
    `gap`, a committing ETC. Sufficient for every horizon up to T, and not beyond (docs/reading.md#etc).

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
    bool
        Whether the condition holds.

    References
    ----------
    docs/reading.md, what we found on Theorem 3.

    Examples
    --------
    >>> trp_applies(2, 0.5, 20, 1480), trp_applies(2, 0.5, 20, 1490)
    (True, False)
    """
    return fits(originals, gap, arm_rounds, horizon, spread, 1.0)


@checked
def holdout_applies(originals: int, gap: float, arm_rounds: int, horizon: int, spread: float = 0.5) -> bool:
    """The hold-out theorem's condition: (L - 1) exp(-m gap^2) <= m gap / (L T); for a spread, exp(-m gap^2 / (4 sd^2)).

    At most L <= K originals with exchangeable means in [0, 1] of smallest gap at least `gap`; rewards stochastically
    ordered by their means. It is also the capped theorem's condition, for H-ETC-R where agents with more than
    floor(M/m) >= L arms have no score. If it holds for T it holds for every shorter horizon, and for every larger gap.

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
    bool
        Whether the condition holds.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md, and the capped theorem, docs/textbook/capped-h-etc-r.md.

    Examples
    --------
    >>> holdout_applies(2, 0.5, 46, 10**6), holdout_applies(2, 0.5, 45, 10**6)
    (True, False)
    """
    return fits(originals, gap, arm_rounds, horizon, spread, gap)


def fits(originals: int, gap: float, arm_rounds: int, horizon: int, spread: float, weight: float) -> bool:
    """Both conditions, for numbers that were checked: a search over m asks often."""
    if originals == 1 or math.isinf(gap):
        return True
    return unchecked_log_mistake(originals, gap, arm_rounds, spread) <= math.log(
        arm_rounds * weight / (originals * horizon)
    )
