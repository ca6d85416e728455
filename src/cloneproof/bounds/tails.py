"""Probabilities of a wrong judgement: the tail bounds behind every theorem.

All concern averages of independent rewards of arms with given means. Rewards lie in [0, 1] (spread 1/2) or are
sub-Gaussian with standard deviation `spread`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cloneproof.bounds._domain import checked
from cloneproof.errors import MechanismError


@checked
def overtaken(gap: float, rounds: int, spread: float = 0.5) -> float:
    """P(the average of an arm >= that of an arm better by `gap`) after m rounds each: exp(-m gap^2 / (4 sd^2)).

    Hoeffding on all 2m rewards at once: the difference of the sums has mean -m gap and is sub-Gaussian with variance 2
    m sd^2. In [0, 1] this is exp(-m gap^2); `cl:concen` has 2 exp(-m gap^2 / 2).

    >>> round(overtaken(0.5, 46), 8)
    1.013e-05
    """
    return math.exp(-rounds * gap**2 / (4 * spread**2))


@checked
def log_mistake(originals: int, gap: float, arm_rounds: int, spread: float = 0.5) -> float:
    """The logarithm of `mistake`; minus infinity for one original or one mean."""
    return unchecked_log_mistake(originals, gap, arm_rounds, spread)


def unchecked_log_mistake(originals: int, gap: float, arm_rounds: int, spread: float) -> float:
    """`log_mistake` for arguments that were already checked."""
    if originals == 1 or math.isinf(gap):
        return -math.inf
    return math.log(originals - 1) - arm_rounds * gap**2 / (4 * spread**2)


@checked
def mistake(originals: int, gap: float, arm_rounds: int, spread: float = 0.5) -> float:
    """Eps = (L - 1) exp(-m gap^2 / (4 sd^2)), at most 1: an honest ETC over L arms commits to one that is not best.

    A union bound over at most L - 1 worse arms, each at least `gap` worse; a tie counts as a mistake.
    """
    return min(1.0, (originals - 1) * overtaken(gap, arm_rounds, spread))


@checked
def mistake_paper(gap: float, arm_rounds: int) -> float:
    """`cl:concen`: 2 exp(-m gap^2 / 2) for one worse arm, rewards in [0, 1]. True; `overtaken` is sharper."""
    return 2 * math.exp(-arm_rounds * gap**2 / 2)


@checked
def psi(means: Sequence[float], arm_rounds: int, agent_rounds: int, threshold: float) -> float:
    """The paper's psi_i(M, y, v): m Bernoulli rewards of each arm and M - lm of the best one average at least y.

    An honest agent's score if it always commits to its best arm, as the proof of `cl:tail_lower` uses it. (The
    statement prints M rewards of the best arm, more than an honest agent can have.)
    """
    from scipy.stats import binom  # late, as it takes long to load

    left = agent_rounds - len(means) * arm_rounds
    if left < 0:
        raise MechanismError(
            f"expected a trial of at least {len(means) * arm_rounds} rounds, got {agent_rounds}; psi explores every arm"
        )
    law = binom.pmf(np.arange(left + 1), left, max(means))
    for mean in means:
        law = np.convolve(law, binom.pmf(np.arange(arm_rounds + 1), arm_rounds, mean))
    first = max(0, math.ceil(agent_rounds * threshold - 1e-9))
    return min(1.0, math.fsum(law[first:]))


@checked
def tail_lower_paper(means: Sequence[float], arm_rounds: int, agent_rounds: int, threshold: float) -> float:
    """`cl:tail_lower`: P(honest score >= y) >= psi (1 - 2 sum exp(-delta_a^2 m / 2)), Bernoulli rewards.

    As in its proof, with `psi`. The paper does not argue the "positive correlation" it rests on, which fails if the
    best arm ties with a worse one at the highest scores (means (1, 1/2), y = 1: q is half of psi), by negligible
    amounts; our tests find no other exception. As printed, with M rewards of the best arm, it is false: means (1, 0), y
    = 1.
    """
    best = max(means)
    wrong = sum(mistake_paper(best - mean, arm_rounds) for mean in means if mean < best)
    return psi(means, arm_rounds, agent_rounds, threshold) * max(0.0, 1 - wrong)


@checked
def tail_upper_paper(means: Sequence[float], arm_rounds: int, agent_rounds: int, threshold: float) -> float:
    """`cl:tail_upper`: P(score with any copies >= y) <= psi. **False**, and with it Theorem 4.

    Honest means (1, 0) with M = 2m have psi = 0 above y = 1/2; with a copy of the first arm the score is 2/3. It bounds
    only the honest agent's score.
    """
    return psi(means, arm_rounds, agent_rounds, threshold)
