"""Regret bounds of the paper's algorithms with two levels, given the realised means: uniform x ETC and H-ETC-R.

Everybody registers honestly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cloneproof.bounds._domain import checked
from cloneproof.bounds.tails import mistake, overtaken


@checked
def uniform_etc_regret_at_least(means: Sequence[Sequence[float]], horizon: int) -> float:
    """Section 5, why a uniform choice of agents is linear: T times the average distance of agents' best means.

    Parameters
    ----------
    means : sequence of sequence of float
        The means of each agent's originals, in [0, 1].
    horizon : int
        The number T of rounds.

    Returns
    -------
    float
        The least regret.

    References
    ----------
    The paper, section 5.
    """
    bests = [max(own) for own in means]
    return horizon * (max(bests) - math.fsum(bests) / len(bests))


@checked
def uniform_etc_regret(means: Sequence[Sequence[float]], arm_rounds: int, horizon: int, spread: float = 0.5) -> float:
    """Uniform x ETC: the linear part, and sum of delta_a (m + T/n exp(-m delta_a^2)) inside agents. Ours; proven.

    The paper says "linear". An agent has Bin(T, 1/n) rounds, so T/n in expectation, whatever was seen.

    Parameters
    ----------
    means : sequence of sequence of float
        The means of each agent's originals, in [0, 1].
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
    The paper, section 5.
    """
    expected = horizon / len(means)
    inside = math.fsum(
        (max(own) - mean) * (arm_rounds + expected * overtaken(max(own) - mean, arm_rounds, spread))
        for own in means
        for mean in own
    )
    return uniform_etc_regret_at_least(means, horizon) + inside


@checked
def h_etc_r_regret(
    agents: int,
    originals: int,
    arm_rounds: int,
    agent_rounds: int,
    horizon: int,
    gap: float,
    agent_gap: float,
    spread: float = 0.5,
) -> float:
    """H-ETC-R with M >= mL: nM + (L-1)m + 2 eps T + (n-1) T exp(-M (agent_gap - (L-1)m/M)^2). Ours; constants proven.

    A sound form of Theorem 5's argument. The trial costs at most nM. Inside the award a fresh ETC costs (L-1)m + eps
    T. A wrong agent j wins if its sum of M rewards reaches the best agent's. Given the pulls so far, a reward of j
    has mean at most its best one, and the best agent's pulls lose at most (L-1)m to its best arm in all, unless it
    commits wrongly (eps). So the difference of the sums is a martingale of 2M sub-Gaussian steps plus a drift of at
    least M agent_gap - (L-1)m, and Azuma-Hoeffding bounds the chance that it is not positive. At most T, and no
    better than T where M agent_gap <= (L-1)m.

    Parameters
    ----------
    agents : int
        The number n of agents.
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    arm_rounds : int
        The rounds m for each arm.
    agent_rounds : int
        The trial M of an agent.
    horizon : int
        The number T of rounds.
    gap : float
        The smallest distance of two different means of an agent; infinite where all are equal.
    agent_gap : float
        The smallest distance of different best means of two agents.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    The paper, Theorem 5, in a sound form.
    """
    eps = mistake(originals, gap, arm_rounds, spread)
    drift = agent_gap - (originals - 1) * arm_rounds / agent_rounds
    wrong = (agents - 1) * overtaken(drift, agent_rounds, spread) if drift > 0 else float(agents > 1)
    inside = (originals - 1) * arm_rounds
    return min(horizon, agents * agent_rounds + inside + (2 * eps + min(1.0, wrong)) * horizon)


@checked
def h_etc_r_regret_paper(agents: int, originals: int, agent_rounds: int, horizon: int, gap: float) -> float:
    """Theorem 5's proof, last line with constants: nM + 2L^3 ln(2M)/gap^2 + L + T/M (4nL^3 ln(2M)/gap^3 + nL).

    As printed, with `gap` also at most the distance of agents' best means. The proof has slips (it takes noise for
    regret, and 2M for 2T in a logarithm), so that it does not establish this; the tests find no exception.

    Parameters
    ----------
    agents : int
        The number n of agents.
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    agent_rounds : int
        The trial M of an agent.
    horizon : int
        The number T of rounds.
    gap : float
        The smallest distance of two different means of an agent; infinite where all are equal.

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    The paper, proof of Theorem 5.
    """
    logarithm = math.log(2 * agent_rounds)
    inside = 2 * originals**3 * logarithm / gap**2 + originals
    wrong = 4 * agents * originals**3 * logarithm / gap**3 + agents * originals
    return agents * agent_rounds + inside + horizon / agent_rounds * wrong


@checked
def h_etc_r_shape(agents: int, originals: int, horizon: int, gap: float) -> float:
    """Theorem 5 as stated: n L^3 sqrt(T ln T) / gap^3. Shape only, the constant is not given.

    Parameters
    ----------
    agents : int
        The number n of agents.
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    horizon : int
        The number T of rounds.
    gap : float
        The smallest distance of two different means of an agent; infinite where all are equal.

    Returns
    -------
    float
        The shape, without its constant.

    References
    ----------
    The paper, Theorem 5.
    """
    return agents * originals**3 * math.sqrt(horizon * math.log(horizon)) / gap**3
