"""Regret bounds of the paper's algorithms, given the realised means: ETC, its epochs, uniform x ETC, H-ETC-R, UCB1.

`gaps` are the distances of all arms (the best too, at 0) to the best of them. Everybody registers honestly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cloneproof.bounds._domain import checked
from cloneproof.bounds.epochs import doubling_arm_rounds, doubling_ends
from cloneproof.bounds.tails import mistake, overtaken


@checked
def etc_regret(gaps: Sequence[float], arm_rounds: int, horizon: int, spread: float = 0.5) -> float:
    """ETC at any m: sum of delta_a (m + (T - lm) exp(-m delta_a^2)). Ours; constants proven.

    An arm is pulled m times, and committed to only if its average reaches the best one's (Hoeffding on 2m rewards).

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
    """
    return math.fsum(2 * own * len(gaps) * math.log(2 * horizon) / gap**2 + 1 for own in gaps)


@checked
def prior_independent_etc_regret(gaps: Sequence[float], horizon: int, power: float = 4.0) -> float:
    """Proposition 2 (Algorithm 4) for one agent: `etc_regret` of every epoch at its own m, added up.

    The paper says "polylogarithmic" and gives no constant. This sum is ours and proven: statistics are cleared, so
    that each epoch is an ETC of its own. It is at most about ln(T)^5 / ln 2 times the sum of gaps, once epochs are
    long enough to explore; before that it is linear, which for small gaps lasts long.
    """
    ends = [0, *doubling_ends(horizon)]
    plan = [(ends[i] - ends[i - 1], doubling_arm_rounds(i, power)) for i in range(1, len(ends))]
    return math.fsum(etc_regret(gaps, m, rounds) for rounds, m in plan)


@checked
def uniform_etc_regret_at_least(means: Sequence[Sequence[float]], horizon: int) -> float:
    """Section 5, why a uniform choice of agents is linear: T times the average distance of agents' best means."""
    bests = [max(own) for own in means]
    return horizon * (max(bests) - math.fsum(bests) / len(bests))


@checked
def uniform_etc_regret(means: Sequence[Sequence[float]], arm_rounds: int, horizon: int, spread: float = 0.5) -> float:
    """Uniform x ETC: the linear part, and sum of delta_a (m + T/n exp(-m delta_a^2)) inside agents. Ours; proven.

    The paper says "linear". An agent has Bin(T, 1/n) rounds, so T/n in expectation, whatever was seen.
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
    """
    logarithm = math.log(2 * agent_rounds)
    inside = 2 * originals**3 * logarithm / gap**2 + originals
    wrong = 4 * agents * originals**3 * logarithm / gap**3 + agents * originals
    return agents * agent_rounds + inside + horizon / agent_rounds * wrong


@checked
def h_etc_r_shape(agents: int, originals: int, horizon: int, gap: float) -> float:
    """Theorem 5 as stated: n L^3 sqrt(T ln T) / gap^3. Shape only, the constant is not given."""
    return agents * originals**3 * math.sqrt(horizon * math.log(horizon)) / gap**3


@checked
def ucb1_regret(gaps: Sequence[float], horizon: int) -> float:
    """UCB1 with bonus 2 ln t: sum over worse arms of 8 ln T / delta_a + (1 + pi^2/3) delta_a. Constants proven.

    Auer et al. 2002, Theorem 1. Rewards in [0, 1]. Their t counts completed rounds; the proof goes through for the
    current round too. The paper only refers to it. For H-UCB, RH-UCB and S-UCB it states no constant, and neither do
    we.
    """
    worse = [gap for gap in gaps if gap > 0]
    return math.fsum(8 * math.log(horizon) / gap + (1 + math.pi**2 / 3) * gap for gap in worse)
