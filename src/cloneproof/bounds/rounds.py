"""Probabilities of a wrong judgement, the rounds that theorems require, and when copies cannot pay.

Probabilities concern averages of independent rewards of arms with given means, which lie in [0, 1] (spread 1/2) or are
sub-Gaussian with standard deviation `spread`.

L and the gaps are declared by the principal or read off priors, never inferred from what was registered. Real numbers
are rounded up and are at least 1. `trp_*` belongs to Theorem 3 (docs/reading.md), `holdout_*` to the hold-out theorem
(docs/textbook/hold-out.md), `doubling_arm_rounds` to the epochs of Algorithm 4 (`cloneproof._schedules`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cloneproof._checks import HORIZON_LIMIT
from cloneproof.bounds._domain import checked
from cloneproof.errors import MechanismError

__all__ = [
    "arm_rounds_without_gap", "covered_gap", "doubling_arm_rounds", "etc_rounds", "first_horizon_with_award",
    "holdout_applies", "holdout_arm_rounds", "holdout_award_horizon", "holdout_gain", "holdout_rounds",
    "holdout_score_rounds", "holdout_trial", "log_mistake", "mistake", "mistake_paper", "overtaken", "smallest",
    "trial_rounds", "trp_applies", "trp_arm_rounds",
]  # fmt: skip

LN_2 = 0.6931471805599453  # the double nearest to ln 2


@checked
def overtaken(gap: float, rounds: int, spread: float = 0.5) -> float:
    """Bound P(an average reaches that of an arm better by `gap`) after m rounds each: exp(-m gap^2 / (4 sd^2)).

    Hoeffding on all 2m rewards at once: the difference of the sums has mean -m gap and is sub-Gaussian with variance 2
    m sd^2. In [0, 1] this is exp(-m gap^2); `cl:concen` has 2 exp(-m gap^2 / 2).

    >>> round(overtaken(0.5, 46), 8)
    1.013e-05
    """
    return math.exp(-rounds * gap**2 / (4 * spread**2))


@checked
def log_mistake(originals: int, gap: float, arm_rounds: int, spread: float = 0.5) -> float:
    """Return the logarithm of `mistake`; minus infinity for one original or one mean."""
    if originals == 1 or math.isinf(gap):
        return -math.inf
    return math.log(originals - 1) - arm_rounds * gap**2 / (4 * spread**2)


@checked
def mistake(originals: int, gap: float, arm_rounds: int, spread: float = 0.5) -> float:
    """Bound P(an honest ETC over L arms commits to a worse one) by (L - 1) exp(-m gap^2 / (4 sd^2)), at most 1.

    A union bound over at most L - 1 worse arms, each at least `gap` worse; a tie counts as a mistake.
    """
    return min(1.0, (originals - 1) * overtaken(gap, arm_rounds, spread))


@checked
def mistake_paper(gap: float, arm_rounds: int) -> float:
    """Return the bound of `cl:concen`: 2 exp(-m gap^2 / 2) for one worse arm, rewards in [0, 1]; it is true."""
    return 2 * math.exp(-arm_rounds * gap**2 / 2)


@checked
def smallest(holds: Callable[[int], bool]) -> int:
    """Return the smallest whole number from 1 with a monotone property."""
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
    """Return the horizon from which T >= trial(T) always holds; `trial` must grow more slowly than T.

    >>> first_horizon_with_award(lambda horizon: 10 * math.ceil(math.log(horizon + 1)))
    40
    """
    high = 1
    while high < 2 * trial(high):
        high *= 2
    while trial(high) - 1 < high:
        high = trial(high) - 1
    return high + 1


@checked
def trp_applies(originals: int, gap: float, arm_rounds: int, horizon: int, spread: float = 0.5) -> bool:
    """Whether (l - 1) exp(-m gap^2) <= m / (l T), under which ETC is TRP (docs/reading.md#etc).

    >>> trp_applies(2, 0.5, 20, 1480), trp_applies(2, 0.5, 20, 1490)
    (True, False)
    """
    return fits(originals, gap, arm_rounds, horizon, spread, 1.0)


@checked
def holdout_applies(originals: int, gap: float, arm_rounds: int, horizon: int, spread: float = 0.5) -> bool:
    """Whether (L - 1) exp(-m gap^2 / (4 sd^2)) <= m gap / (L T), as the hold-out and the capped theorem need.

    If it holds for T it holds for every shorter horizon, and for every larger gap.

    >>> holdout_applies(2, 0.5, 46, 10**6), holdout_applies(2, 0.5, 45, 10**6)
    (True, False)
    """
    return fits(originals, gap, arm_rounds, horizon, spread, gap)


def fits(originals: int, gap: float, arm_rounds: int, horizon: int, spread: float, weight: float) -> bool:
    """Whether (L - 1) exp(-m gap^2 / (4 sd^2)) <= m weight / (L T), in logarithms."""
    if originals == 1 or math.isinf(gap):
        return True
    return log_mistake(originals, gap, arm_rounds, spread) <= math.log(arm_rounds * weight / (originals * horizon))


@checked
def etc_rounds(originals: int, gap: float, horizon: int, factor: float = 2.0) -> int:
    """Return m = (factor / gap^2) l ln(2T) of Theorems 3 and 4 (the proof of 4 takes four times the factor).

    >>> etc_rounds(originals=2, gap=1.0, horizon=4000)
    36
    """
    return max(1, math.ceil(factor / gap**2 * originals * math.log(2 * horizon)))


@checked
def trial_rounds(arm_rounds: int, originals: int, horizon: int) -> int:
    """Return M = max(mL, sqrt(T ln T)) of Theorem 5.

    >>> trial_rounds(59, 2, 10**6)
    3717
    """
    return max(arm_rounds * originals, math.ceil(math.sqrt(horizon * math.log(horizon))))


@checked
def trp_arm_rounds(originals: int, gap: float, horizon: int, spread: float = 0.5) -> int:
    """Return the smallest m that meets `trp_applies`, about 1 / (2l) of what Theorem 3 requires.

    >>> trp_arm_rounds(2, 0.5, 10**6), etc_rounds(2, 0.5, 10**6)
    (43, 233)
    """
    return smallest(lambda m: fits(originals, gap, m, horizon, spread, 1.0))


@checked
def covered_gap(originals: int, arm_rounds: int, horizon: int, spread: float = 0.5) -> float:
    """Find the smallest gap at which the hold-out theorem applies to this m; infinite if even 1 is too small.

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
    """Return the most that copies can gain under the hold-out mechanism: 0 where `holdout_applies`, else 2 eps T.

    docs/textbook/hold-out.md, section 7.
    """
    if holdout_applies(originals, gap, arm_rounds, horizon, spread):
        return 0.0
    return min(float(horizon), 2 * mistake(originals, gap, arm_rounds, spread) * horizon)


@checked
def doubling_arm_rounds(epoch: int, power: float = 4.0) -> int:
    """Return the m of an epoch in prior-independent ETC: floor(ln(2^i)^power), but at least 1."""
    return max(1, math.floor(math.pow(epoch * LN_2, power)))


@checked
def holdout_arm_rounds(originals: int, gap: float, horizon: int, spread: float = 0.5) -> int:
    """Find the smallest m with (L - 1) exp(-m gap^2 / (4 spread^2)) <= m gap / (L T), hold-out's condition.

    >>> holdout_arm_rounds(originals=2, gap=0.5, horizon=10**6)
    46
    """
    return smallest(lambda m: fits(originals, gap, m, horizon, spread, gap))


@checked
def arm_rounds_without_gap(horizon: int, power: float = 3.0) -> int:
    """Return (ln T)^3, for a platform that knows no gap. A choice, not a theorem; `covered_gap` falls like 1 / ln T.

    >>> [arm_rounds_without_gap(10**k) for k in (3, 6, 9)]
    [330, 2637, 8900]
    """
    return max(1, math.ceil(math.pow(math.log(horizon), power)))


@checked
def holdout_score_rounds(agents: int, agent_gap: float | None, horizon: int, spread: float = 0.5) -> int:
    """Return W = ln(nT) / agent_gap^2, or (T/n)^(2/3) (ln T)^(1/3) if the agents' gap is unknown.

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
    """Return the m and W of the hold-out mechanism; pass None for a gap that the platform does not know.

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
    """Return M = K m + W: every agent's rounds before the award."""
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
    """Find the horizon from which T >= n M, so that hold-out has an award; parameters derived for each T.

    >>> holdout_award_horizon(3, 2, 0.5, 0.5)
    174
    """
    allowed = originals if max_arms is None else max_arms

    def trials(horizon: int) -> int:
        if horizon > HORIZON_LIMIT:
            raise MechanismError("the hold-out mechanism has no award at any horizon up to 10^15; declare larger gaps")
        arm_rounds, score_rounds = holdout_rounds(agents, originals, gap, agent_gap, horizon, spread)
        return agents * holdout_trial(arm_rounds, score_rounds, allowed)

    return first_horizon_with_award(trials)
