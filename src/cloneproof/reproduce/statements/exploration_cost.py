"""When copies cannot pay whatever they are: their own exploration costs more than an honest agent loses in all.

Let a flat mechanism give every registered arm m rounds first, in an order that does not look at means, and do anything
afterwards. Fix l realised means, D their average distance to the best, and average over who got the copies.

1. While it explores, a round costs D on average, whatever is registered. So k arms cost H D for H <= k m, and at least
   k m D from then on.
2. If the honest agent loses at most H D in every H <= T rounds, and at most (l + 1) m D in all of them, then no copies
   do better at any H <= T: for H <= k m by the first bound, later by the second, as k >= l + 1.

For a committing ETC the honest regret is H D up to l m rounds and a straight line afterwards, so both bounds need only
be looked at for H = T. That covers every vector of copies, with no search (and is the argument behind our condition,
with the exact regret in place of a bound on it).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

from cloneproof.analysis.properties.rp_regret import rp_regret
from cloneproof.engines.estimate import Estimate
from cloneproof.market.family import RewardFamily
from cloneproof.market.instance import Instance
from cloneproof.mechanisms.mechanism import Mechanism


def unequal_means(support: Sequence[float], originals: int) -> list[tuple[float, ...]]:
    """The multisets of realised means in which originals differ; elsewhere there is no regret to lower.

    >>> unequal_means((0.25, 0.75), 3)
    [(0.25, 0.25, 0.75), (0.25, 0.75, 0.75)]
    """
    return [means for means in combinations_with_replacement(sorted(support), originals) if len(set(means)) > 1]


def average_gap(means: Sequence[float]) -> float:
    """D: how far the means are from the best one, on average."""
    return max(means) - sum(means) / len(means)


def exploration_slack(
    mechanism: Mechanism, means: Sequence[float], horizon: int, rewards: str | RewardFamily = "bernoulli"
) -> Estimate:
    """How much regret is left to the honest agent until copies could pay: min(T D, (l + 1) m D) - its regret.

    If it is not negative, a committing ETC is truthful under random permutation on these means, at every horizon up to
    T and for all copies.

    >>> from cloneproof.mechanisms import mechanism
    >>> slack = [exploration_slack(mechanism("etc", arm_rounds=m), (0.25, 0.75), 10**6).value for m in (30, 31)]
    >>> [round(one, 2) for one in slack]
    [-1.27, 1.27]
    """
    originals, gap = len(means), average_gap(means)
    honest = rp_regret(mechanism, Instance(tuple(means), (1,) * originals), horizon, rewards)
    room = min(horizon, (originals + 1) * mechanism.arm.explore) * gap
    rounding = 4 * (originals + 2) * room * 2.0**-53
    return Estimate(room, rounding, "proven", "arithmetic") - honest


def least_slack(mechanism: Mechanism, support: Sequence[float], originals: int, horizon: int) -> Estimate:
    """The smallest slack over all multisets of means from a support."""
    slacks = [exploration_slack(mechanism, means, horizon) for means in unequal_means(support, originals)]
    return min(slacks, key=lambda slack: slack.low)
