"""The numbers of rounds of the hold-out mechanism, from what a platform knows. Rounded up, and at least 1."""

from __future__ import annotations

import math

from cloneproof.bounds._domain import checked
from cloneproof.bounds.applicability import fits
from cloneproof.bounds.searches import first_horizon_with_award, smallest
from cloneproof.errors import MechanismError

MOST_ROUNDS = 10**15


@checked
def holdout_arm_rounds(originals: int, gap: float, horizon: int, spread: float = 0.5) -> int:
    """The smallest m with (L - 1) exp(-m gap^2 / (4 spread^2)) <= m gap / (L T), the hold-out theorem's condition.

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
    The hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
    >>> holdout_arm_rounds(originals=2, gap=0.5, horizon=10**6)
    46
    """
    return smallest(lambda m: fits(originals, gap, m, horizon, spread, gap))


@checked
def arm_rounds_without_gap(horizon: int, power: float = 3.0) -> int:
    """An m for a platform that knows no gap: (ln T)^3.

    A choice, not a theorem: it grows so slowly that the regret stays polylogarithmic, and fast enough that the gap from
    which on the hold-out theorem applies (`covered_gap`) falls like 1 / ln T.

    Parameters
    ----------
    horizon : int
        The number T of rounds.
    power : float, default 3.0
        The power of the logarithm.

    Returns
    -------
    int
        m.

    Examples
    --------
    >>> [arm_rounds_without_gap(10**k) for k in (3, 6, 9)]
    [330, 2637, 8900]
    """
    return max(1, math.ceil(math.pow(math.log(horizon), power)))


@checked
def holdout_score_rounds(agents: int, agent_gap: float | None, horizon: int, spread: float = 0.5) -> int:
    """W = ln(nT) / agent_gap^2, or (T/n)^(2/3) (ln T)^(1/3) where the agents' gap is unknown.

    Parameters
    ----------
    agents : int
        The number n of agents.
    agent_gap : float or None
        The smallest distance of different best means of two agents; None where it is not known.
    horizon : int
        The number T of rounds.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    int
        W.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
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

    Parameters
    ----------
    agents : int
        The number n of agents.
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    gap : float or None
        The smallest distance of two different means of an agent; infinite where all are equal; None where it is
        not known.
    agent_gap : float or None
        The smallest distance of different best means of two agents; None where it is not known.
    horizon : int
        The number T of rounds.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    tuple of int
        m and W.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
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
    """M = K m + W: every agent's rounds before the award.

    Parameters
    ----------
    arm_rounds : int
        The rounds m for each arm.
    score_rounds : int
        The fresh rewards W that a score counts.
    max_arms : int
        The arms K up to which an agent has a score.

    Returns
    -------
    int
        M.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md.
    """
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

    Parameters
    ----------
    agents : int
        The number n of agents.
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    gap : float or None
        The smallest distance of two different means of an agent; infinite where all are equal; None where it is
        not known.
    agent_gap : float or None, optional
        The smallest distance of different best means of two agents; None where it is not known.
    max_arms : int or None, optional
        The arms K up to which an agent has a score; as many as originals if left out.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    int
        The horizon.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
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
