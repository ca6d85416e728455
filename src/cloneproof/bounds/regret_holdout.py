"""Regret of the hold-out mechanism when everybody registers honestly.

Rewards in [0, 1], or sub-Gaussian of standard deviation `spread` with means in [0, 1]. The proof is in the textbook's
chapter on the hold-out mechanism; in short, with eps the chance of a wrong commitment, M = Km + W and N = T - nM:

    trials of the others                     (n-1) M
    the best agent's own trial               (L-1) m + eps M       (it explores, then plays its best arm)
    the award, inside whoever wins it        (L-1) m + eps N
    the award, to a worse agent              N (eps + w)           (the best agent committed wrongly, or was overtaken)
"""

from __future__ import annotations

import math

from cloneproof.bounds._domain import checked
from cloneproof.bounds.epochs import doubling_ends, doubling_length
from cloneproof.bounds.rounds_holdout import holdout_rounds, holdout_trial
from cloneproof.bounds.tails import mistake, overtaken


@checked
def wrong_agent(agents: int, score_rounds: int, agent_gap: float | None = None, spread: float = 0.5) -> float:
    """w: how much worse, in expectation, the winner's best mean is, given that the best agent committed rightly.

    An agent that is worse by delta wins with probability at most exp(-W delta^2 / c), c = 4 sd^2 (1 in [0, 1]). So w is
    at most each of::

        (n-1) exp(-W agent_gap^2 / c)       as every delta > 0 is at least agent_gap, and at most 1
        (n-1) sqrt(c / (2 e W))             the largest delta exp(-W delta^2 / c), for each of n-1 agents
        2 sqrt(c ln n / W)                  agents within t = sqrt(c ln n / W) cost at most t, the n-1 others at most
                                            t exp(-W t^2 / c) = t / n each, as delta exp(-W delta^2 / c) falls from
                                            sqrt(c / (2W)) <= t on

    Parameters
    ----------
    agents : int
        The number n of agents.
    score_rounds : int
        The fresh rewards W that a score counts.
    agent_gap : float or None, optional
        The smallest distance of different best means of two agents; None where it is not known.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    float
        w.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
    >>> wrong_agent(3, 60, 0.5) < 1e-6, round(wrong_agent(3, 11536), 4)
    (True, 0.008)
    """
    if agents == 1:
        return 0.0
    scale = 4 * spread**2
    found = [
        1.0,
        (agents - 1) * math.sqrt(scale / (2 * math.e * score_rounds)),
        2 * math.sqrt(scale * math.log(agents) / score_rounds),
    ]
    if agent_gap is not None:
        found.append((agents - 1) * overtaken(agent_gap, score_rounds, spread))
    return min(found)


@checked
def holdout_regret(
    agents: int,
    originals: int,
    arm_rounds: int,
    score_rounds: int,
    horizon: int,
    gap: float,
    agent_gap: float | None = None,
    max_arms: int | None = None,
    spread: float = 0.5,
) -> float:
    """(n-1)(Km + W) + 2(L-1)m + 2 eps T + N w: ours, constants proven, for any m and W; T where there is no award.

    `agent_gap=None` makes no assumption on the agents' distances. With W = (T/n)^(2/3) (ln T)^(1/3) and n <= T this
    is at most 3 n^(1/3) T^(2/3) (ln T)^(1/3) + n + (n-1)Km + 2(L-1)m + 2 eps T.

    Parameters
    ----------
    agents : int
        The number n of agents.
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    arm_rounds : int
        The rounds m for each arm.
    score_rounds : int
        The fresh rewards W that a score counts.
    horizon : int
        The number T of rounds.
    gap : float
        The smallest distance of two different means of an agent; infinite where all are equal.
    agent_gap : float or None, optional
        The smallest distance of different best means of two agents; None where it is not known.
    max_arms : int or None, optional
        The arms K up to which an agent has a score; as many as originals if left out.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
    >>> round(holdout_regret(3, 2, 46, 60, 10**6, 0.5, 0.5))
    417
    """
    trial = holdout_trial(arm_rounds, score_rounds, originals if max_arms is None else max_arms)
    award = horizon - agents * trial
    if award < 0:
        return float(horizon)
    eps = mistake(originals, gap, arm_rounds, spread)
    bound = (agents - 1) * trial + 2 * (originals - 1) * arm_rounds + 2 * eps * horizon
    return min(float(horizon), bound + award * wrong_agent(agents, score_rounds, agent_gap, spread))


@checked
def holdout_regret_simple(
    agents: int, originals: int, arm_rounds: int, score_rounds: int, max_arms: int | None = None
) -> float:
    """n(Km + W) + Lm + 2, at m and W of the theorem: (L-1) exp(-m gap^2) <= m gap / (L T), W >= ln(nT) / agent_gap^2.

    At most `holdout_regret`'s bound there: 2 eps T <= 2m gap / L <= m for L >= 2 (and 0 for L = 1), N w <= 1, and
    (n-1)M + 2(L-1)m + m + 1 <= nM + Lm, as M > Lm.

    Parameters
    ----------
    agents : int
        The number n of agents.
    originals : int
        The largest number L of originals of an agent; where one ETC is meant, the number l of arms that it
        compares.
    arm_rounds : int
        The rounds m for each arm.
    score_rounds : int
        The fresh rewards W that a score counts.
    max_arms : int or None, optional
        The arms K up to which an agent has a score; as many as originals if left out.

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    The hold-out theorem, docs/textbook/hold-out.md.

    Examples
    --------
    >>> holdout_regret_simple(3, 2, 46, 60)
    550.0
    """
    trial = holdout_trial(arm_rounds, score_rounds, originals if max_arms is None else max_arms)
    return float(agents * trial + originals * arm_rounds + 2)


@checked
def holdout_epochs_regret(
    agents: int,
    originals: int,
    horizon: int,
    gap: float,
    agent_gap: float | None = None,
    max_arms: int | None = None,
    spread: float = 0.5,
    gap_known: bool = True,
) -> float:
    """The hold-out mechanism in doubling epochs: `holdout_regret` of each epoch at its own m and W, added up. Proven.

    Statistics are cleared, so each epoch is a hold-out mechanism of its own; the last one is cut, which the bound
    allows. With both gaps known it is O(ln(T)^2): about log2 T times the bound of a known horizon. `gap_known=False`
    where the platform does not know the gap and explores for (ln T')^3 rounds.

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
    agent_gap : float or None, optional
        The smallest distance of different best means of two agents; None where it is not known.
    max_arms : int or None, optional
        The arms K up to which an agent has a score; as many as originals if left out.
    spread : float, default 0.5
        The sub-Gaussian standard deviation of rewards: 1/2 for anything in [0, 1].
    gap_known : bool, default True
        Whether the platform knows the gap; else it explores for (ln T')^3 rounds.

    Returns
    -------
    float
        The bound, in the unit of rewards.

    References
    ----------
    docs/textbook/hold-out.md, unknown horizons.
    """
    ends, total = [0, *doubling_ends(horizon)], 0.0
    for number in range(1, len(ends)):
        length = doubling_length(number)
        m, w = holdout_rounds(agents, originals, gap if gap_known else None, agent_gap, length, spread)
        cut = ends[number] - ends[number - 1]
        if agents * holdout_trial(m, w, originals if max_arms is None else max_arms) > length:
            total += cut  # no award was planned: a uniform choice all along
        else:
            total += holdout_regret(agents, originals, m, w, cut, gap, agent_gap, max_arms, spread)
    return total
