"""Regret bounds of the paper's flat algorithms, given the realised means: ETC, its epochs, UCB1.

`gaps` are the distances of all arms (the best too, at 0) to the best of them. Everybody registers honestly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cloneproof.bounds._domain import checked
from cloneproof.bounds.epochs import doubling_arm_rounds, doubling_ends
from cloneproof.bounds.tails import overtaken


@checked
def etc_regret(gaps: Sequence[float], arm_rounds: int, horizon: int, spread: float = 0.5) -> float:
    """ETC at any m: sum of delta_a (m + (T - lm) exp(-m delta_a^2)). Ours; constants proven.

    An arm is pulled m times, and committed to only if its average reaches the best one's (Hoeffding on 2m rewards).

    Parameters
    ----------
    gaps : sequence of float
        The distance of every arm to the best of them; the best one too, at 0.
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

    Examples
    --------
    >>> round(etc_regret([0, 0.5], arm_rounds=46, horizon=10**6), 2)
    28.06
    """
    rest = max(0, horizon - len(gaps) * arm_rounds)
    total = math.fsum(gap * (arm_rounds + rest * overtaken(gap, arm_rounds, spread)) for gap in gaps)
    return min(total, horizon * max(gaps))


@checked
def etc_regret_paper(gaps: Sequence[float], gap: float, horizon: int) -> float:
    """Theorem 3: sum over all l arms of 2 delta_a l ln(2T) / gap^2 + 1, at its m. Rewards in [0, 1]; constants proven.

    `gap` is at most every positive delta_a. The paper's m is not rounded; rounding it up costs delta_a for each worse
    arm, which the 1 leaves room for, as a wrong commitment costs at most 1 / (4T) at this m and the best arm's 1 is
    spare.

    Parameters
    ----------
    gaps : sequence of float
        The distance of every arm to the best of them; the best one too, at 0.
    gap : float
        The smallest distance of two different means of an agent; infinite where all are equal.
    horizon : int
        The number T of rounds.

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    The paper, Theorem 3.
    """
    return math.fsum(2 * own * len(gaps) * math.log(2 * horizon) / gap**2 + 1 for own in gaps)


@checked
def prior_independent_etc_regret(gaps: Sequence[float], horizon: int, power: float = 4.0) -> float:
    """Proposition 2 (Algorithm 4) for one agent: `etc_regret` of every epoch at its own m, added up.

    The paper says "polylogarithmic" and gives no constant. This sum is ours and proven: statistics are cleared, so
    that each epoch is an ETC of its own. It is at most about ln(T)^5 / ln 2 times the sum of gaps, once epochs are
    long enough to explore; before that it is linear, which for small gaps lasts long.

    Parameters
    ----------
    gaps : sequence of float
        The distance of every arm to the best of them; the best one too, at 0.
    horizon : int
        The number T of rounds.
    power : float, default 4.0
        The power of the logarithm.

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    The paper, Proposition 2 and Algorithm 4.
    """
    ends = [0, *doubling_ends(horizon)]
    plan = [(ends[i] - ends[i - 1], doubling_arm_rounds(i, power)) for i in range(1, len(ends))]
    return math.fsum(etc_regret(gaps, m, rounds) for rounds, m in plan)


@checked
def ucb1_regret(gaps: Sequence[float], horizon: int) -> float:
    """UCB1 with bonus 2 ln t: sum over worse arms of 8 ln T / delta_a + (1 + pi^2/3) delta_a. Constants proven.

    Auer et al. 2002, Theorem 1. Rewards in [0, 1]. Their t counts completed rounds; the proof goes through for the
    current round too. The paper only refers to it. For H-UCB, RH-UCB and S-UCB it states no constant, and neither do
    we.

    Parameters
    ----------
    gaps : sequence of float
        The distance of every arm to the best of them; the best one too, at 0.
    horizon : int
        The number T of rounds.

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    Auer, Cesa-Bianchi and Fischer (2002), Theorem 1.
    """
    worse = [gap for gap in gaps if gap > 0]
    return math.fsum(8 * math.log(horizon) / gap + (1 + math.pi**2 / 3) * gap for gap in worse)
