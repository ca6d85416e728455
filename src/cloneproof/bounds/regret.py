"""Regret bounds with honest agents, given the means: ETC, UCB1, H-ETC-R.

`gaps` are the distances of all arms to the best (itself included, at 0).

Seasons: how long a mechanism should learn before it restarts if rates drift or new items arrive.

The model: each item's rate is drawn again from its prior with probability 1 / D in every round, D the lifetime. A
mechanism restarts every H rounds, with regret R(H) for constant rates. After its rate was drawn again, the chosen item
is worth as much as an average one, so each such round loses at most the gap between the best item and an average one.

An item that arrives waits for the next season, H / 2 rounds on average. If `waiting` is the number of items that arrive
in a round, on average, times what a new one is better than the best by, E(new - best)^+, then waiting loses at most
`waiting` times H / 2 in each round (docs/textbook/seasons.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cloneproof._lib.schedules import doubling_ends
from cloneproof.bounds.rounds import checked, doubling_arm_rounds, mistake, overtaken

__all__ = [
    "etc_regret", "etc_regret_paper", "h_etc_r_regret", "h_etc_r_regret_paper", "h_etc_r_shape",
    "prior_independent_etc_regret", "season_cost", "season_length", "ucb1_regret", "uniform_etc_regret_at_least",
]  # fmt: skip


@checked
def etc_regret(gaps: Sequence[float], arm_rounds: int, horizon: int, spread: float = 0.5) -> float:
    """Bound the regret of ETC at any m: sum of delta_a (m + (T - lm) exp(-m delta_a^2)). Ours; proven.

    >>> round(etc_regret([0, 0.5], arm_rounds=46, horizon=10**6), 2)
    28.06
    """
    rest = max(0, horizon - len(gaps) * arm_rounds)
    total = math.fsum(gap * (arm_rounds + rest * overtaken(gap, arm_rounds, spread)) for gap in gaps)
    return min(total, horizon * max(gaps))


@checked
def etc_regret_paper(gaps: Sequence[float], gap: float, horizon: int) -> float:
    """Return Theorem 3's bound: the sum of 2 delta_a l ln(2T) / gap^2 + 1 over l arms. Rewards in [0, 1]; proven."""
    return math.fsum(2 * own * len(gaps) * math.log(2 * horizon) / gap**2 + 1 for own in gaps)


@checked
def prior_independent_etc_regret(gaps: Sequence[float], horizon: int, power: float = 4.0) -> float:
    """Bound the regret of Algorithm 4 (Proposition 2) for one agent: `etc_regret` over its epochs. Ours; proven.

    The paper says "polylogarithmic". It is at most about ln(T)^5 / ln 2 times the sum of gaps once epochs are long
    enough to explore; before that it is linear.
    """
    ends = [0, *doubling_ends(horizon)]
    plan = [(ends[i] - ends[i - 1], doubling_arm_rounds(i, power)) for i in range(1, len(ends))]
    return math.fsum(etc_regret(gaps, m, rounds) for rounds, m in plan)


@checked
def ucb1_regret(gaps: Sequence[float], horizon: int) -> float:
    """Bound UCB1's regret, bonus 2 ln t: the sum of 8 ln T / delta_a + (1 + pi^2/3) delta_a over worse arms. Proven.

    Auer, Cesa-Bianchi and Fischer (2002), Theorem 1; rewards in [0, 1].
    """
    worse = [gap for gap in gaps if gap > 0]
    return math.fsum(8 * math.log(horizon) / gap + (1 + math.pi**2 / 3) * gap for gap in worse)


@checked
def uniform_etc_regret_at_least(means: Sequence[Sequence[float]], horizon: int) -> float:
    """Bound a uniform choice of agents from below (section 5): T times the average distance of best means."""
    bests = [max(own) for own in means]
    return horizon * (max(bests) - math.fsum(bests) / len(bests))


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
    """Bound H-ETC-R's: nM + (L-1)m + 2 eps T + (n-1) T exp(-M (agent_gap - (L-1)m/M)^2), M >= mL. Ours; proven.

    Repairs Theorem 5's argument: the best agent loses at most (L-1)m to its best arm unless it commits wrongly (eps),
    so the difference of two sums is a martingale with a drift of at least M agent_gap - (L-1)m (Azuma-Hoeffding).
    """
    eps = mistake(originals, gap, arm_rounds, spread)
    drift = agent_gap - (originals - 1) * arm_rounds / agent_rounds
    wrong = (agents - 1) * overtaken(drift, agent_rounds, spread) if drift > 0 else float(agents > 1)
    inside = (originals - 1) * arm_rounds
    return min(horizon, agents * agent_rounds + inside + (2 * eps + min(1.0, wrong)) * horizon)


@checked
def h_etc_r_regret_paper(agents: int, originals: int, agent_rounds: int, horizon: int, gap: float) -> float:
    """Return Theorem 5's proof's bound: nM + 2L^3 ln(2M)/gap^2 + L + T/M (4nL^3 ln(2M)/gap^3 + nL).

    The proof has slips and does not establish this; our tests find no exception.
    """
    logarithm = math.log(2 * agent_rounds)
    inside = 2 * originals**3 * logarithm / gap**2 + originals
    wrong = 4 * agents * originals**3 * logarithm / gap**3 + agents * originals
    return agents * agent_rounds + inside + horizon / agent_rounds * wrong


@checked
def h_etc_r_shape(agents: int, originals: int, horizon: int, gap: float) -> float:
    """Return Theorem 5's shape, as stated: n L^3 sqrt(T ln T) / gap^3. The constant is not given."""
    return agents * originals**3 * math.sqrt(horizon * math.log(horizon)) / gap**3


RATIO = 1.25  # of a season that is tried to the next shorter one


@checked
def season_cost(
    length: int, regret: float, gap: float, lifetime: float | None = None, waiting: float | None = None
) -> float:
    """Return the regret per round with seasons of H rounds: R / H + g (1 - (D / H) (1 - exp(-H / D))) + w H / 2.

    `regret` is that of a season with constant rates, `gap` the expected best mean minus an average one. Without a
    lifetime rates stay, without `waiting` no items arrive. A model.

    >>> season_cost(1000, 20.0, 0.05, lifetime=1e9) < 0.0201
    True
    """
    cost = regret / length + (waiting or 0.0) * length / 2
    if lifetime is None:
        return cost
    ratio = length / lifetime
    return cost + gap * (1 + math.expm1(-ratio) / ratio)


@checked
def season_length(
    regret: Callable[[int], float],
    horizon: int,
    gap: float,
    lifetime: float | None = None,
    waiting: float | None = None,
) -> tuple[int, float]:
    """Return the season with the lowest cost per round, of lengths in equal ratios up to the horizon, and its cost.

    >>> season_length(lambda rounds: rounds**0.5, 10**6, 0.1, lifetime=1e5)
    (11529, 0.014862523466324676)
    """
    lengths = {max(1, round(horizon / RATIO**k)) for k in range(int(math.log(horizon) / math.log(RATIO)) + 1)}
    costs = {length: season_cost(length, regret(length), gap, lifetime, waiting) for length in lengths}
    best = min(costs, key=costs.__getitem__)
    return best, costs[best]
