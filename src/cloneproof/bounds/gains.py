"""What deviations that no mechanism rules out gain: second accounts, and variants, which are nearly copies.

Second accounts: what every anonymous platform pays a provider that enters more than once.

A platform is anonymous if it treats accounts that register alike in the same way; it serves somebody in every round.
Each agent has one original, means are independent draws from one prior, and the other n - 1 agents have one account
each. Proofs: docs/textbook/second-accounts.md.

Variants, which are nearly copies: what they gain under a reservoir, and add to a score that draws publish.

A variant is a new item with some chance, or its mean differs from its original's by little. For scores, an agent lists
variants of one original of mean v. Their means are v + e, with independent e of mean 0 and standard deviation t, all
between `low` and `high`. A slot is a draw from its list, and proofs do not ask how many variants there are, nor by
which weights they are drawn. Proofs: docs/textbook/variants.md for gains, docs/textbook/boards.md for scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from cloneproof.bounds.rounds import checked
from cloneproof.errors import MechanismError

__all__ = [
    "account_fee", "accounts_gain", "count_steepness", "flood_others", "novelty_gain_ceiling",
    "second_account_ceiling", "second_account_floor", "variant_gain_ceiling", "variant_inflation_ceiling",
]  # fmt: skip


@checked
def flood_others(agents: int, accounts: int, horizon: int) -> float:
    """Bound the probability that anybody else is ever served, against m accounts: T (n - 1) / (n + m - 1 - T) (A).

    Unserved accounts are alike, so a round that serves one of them serves another agent's with at most probability (n -
    1) / (n + m - 1 - T).

    >>> flood_others(5, 10**6, 100)
    0.0004000384036867539
    """
    left = agents + accounts - 1 - horizon
    return 1.0 if left <= 0 else min(1.0, horizon * (agents - 1) / left)


@checked
def second_account_floor(
    agents: int, values: Sequence[float], weights: Sequence[float] | None = None, accounts: int = 2, originals: int = 1
) -> float:
    """Return the gain per round of m accounts with one item as T -> infinity, for any sublinear regret (B).

    It is the sum over k of P(the agent is best, with k others) E[v | that] k (m - 1) / ((k + 1) (k + m)), since tied
    accounts are served alike. Also covers several originals per agent, if the mechanism compares best originals only.

    >>> round(second_account_floor(5, (0.2, 0.8)), 4)
    0.0608
    """
    chances = [1.0] * len(values) if weights is None else list(weights)
    if len(chances) != len(values) or sum(chances) <= 0:
        raise MechanismError(
            f"expected a weight for each of {len(values)} values, not all 0, got {len(chances)}; or leave them out"
        )
    total, below, floor = sum(chances), 0.0, 0.0
    for value, chance in sorted(zip(values, chances, strict=True)):
        up_to = min(1.0, below + chance / total)
        low, best = below**originals, up_to**originals - below**originals  # of an agent's best original
        for others in range(1, agents):
            tied = math.comb(agents - 1, others) * best ** (others + 1) * low ** (agents - 1 - others)
            floor += tied * value * others * (accounts - 1) / ((others + 1) * (others + accounts))
        below = up_to
    return floor


@checked
def second_account_ceiling(agents: int, horizon: int, regret: float, density: float) -> float:
    """Bound what extra accounts gain if a prior's density is at most f: 2 sqrt(2 C T R), C = n (n - 1) f (C).

    `regret` R bounds the expected regret with and without the further accounts. Two best means are within e of each
    other with probability at most C e; otherwise at most R / e rounds go to agents other than the best.
    """
    near = agents * (agents - 1) * density
    return min(float(horizon), 2 * math.sqrt(2 * near * horizon * regret))


@checked
def accounts_gain(agents: int, pot: float, accounts: int) -> float:
    """Return what m accounts gain from a pot V that all share equally: (m - 1)(n - 1) V / (n (n + m - 1)) (D).

    >>> accounts_gain(5, 1.0, 2)
    0.13333333333333333
    """
    return (accounts - 1) * (agents - 1) * pot / (agents * (agents + accounts - 1))


@checked
def account_fee(agents: int, pot: float) -> float:
    """Return the smallest fee per account at which extra accounts do not pay: V (n - 1) / (n (n + 1)) (D).

    The second account gains the most. The fee takes (n - 1) / (n + 1) of everything there is to earn.
    """
    return accounts_gain(agents, pot, 2)


@checked
def count_steepness(arm_rounds: int, low: float, high: float) -> float:
    """Return how fast the chance of a high count can rise with a mean from low to high: n max P(Bin(n - 1, v) = y).

    The derivative of P(Bin(n, v) >= y + 1) is n P(Bin(n - 1, v) = y). For each y it is largest at v = y / (n - 1), or
    at the end of the interval that is nearest to it; and these largest values fall towards the middle of 0, .., n - 1.
    So only counts next to the ends matter.

    >>> round(count_steepness(169, 0.4, 0.6), 2)
    10.6
    """
    _check_order(low, high)
    most = arm_rounds - 1
    counts = np.array([edge(most * mean) for edge in (math.floor, math.ceil) for mean in (low, high)])
    means = np.clip(counts / max(1, most), low, high)
    special = scipy.special
    choices = special.gammaln(arm_rounds) - special.gammaln(counts + 1) - special.gammaln(arm_rounds - counts)
    chances = special.xlogy(counts, means) + special.xlog1py(most - counts, -means)
    return float(arm_rounds * np.exp(choices + chances).max())


@checked
def variant_inflation_ceiling(draws: int, arm_rounds: int, spread: float, low: float, high: float) -> float:
    """Bound what variants add to the expected score of a best of s draws: s k t^2, k the steepness of n-round counts.

    Each draw has n rewards; the score weighs the champion's average there with that of fresh rewards, in any way, and
    the bound is on its excess over the score of the original alone. 0 for copies, second order in the spread t. Proven.

    >>> round(variant_inflation_ceiling(15, 169, 0.0072, 0.48, 0.52), 4)    # 5 Elo points are .0072: 5.6 Elo points
    0.0081
    """
    _check_order(low, high)
    if spread > (high - low) / 2:
        raise MechanismError(
            f"expected means from low to high to have a spread of at most {(high - low) / 2:g}, got {spread:g}; "
            "widen the interval"
        )
    return draws * count_steepness(arm_rounds, low, high) * spread**2


@checked
def novelty_gain_ceiling(payoffs: Sequence[float], new: float) -> float:
    """Return the most that variants gain which are each a new item with this chance, and else an exact copy.

    `payoffs` are H_l, H_(l+1), .., H_(l+k), so there are k variants: E[H_(l+N)] - H_l with N binomial, and for one
    variant the chance times (H_(l+1) - H_l). Proven for every mechanism under which neither copies nor withholding pay
    with any number of originals, where all means come from one prior.

    >>> novelty_gain_ceiling([10.0, 12.0], new=0.25)
    0.5
    """
    variants = len(payoffs) - 1
    chances = [math.comb(variants, k) * new**k * (1 - new) ** (variants - k) for k in range(variants + 1)]
    return math.fsum([*(chance * payoff for chance, payoff in zip(chances, payoffs, strict=True)), -payoffs[0]])


@checked
def variant_gain_ceiling(
    distance: float, horizon: int, arm_rounds: int, low: float, high: float, tests: float, varied: float = 1.0
) -> float:
    """Return eps T (1 + omega M kappa_n v), the most that variants gain whose means differ by at most eps.

    Each test has n = `arm_rounds` rounds; `low` and `high` are the least and the largest mean of the agent's items,
    variants included. Proven for the flat reservoir, first to pass or best of all, at every horizon and against any
    opponents, if the agent's means are exchangeable and variants are made before they are known.

    >>> round(variant_gain_ceiling(0.001, 10**5, arm_rounds=25, low=0.2, high=0.4, tests=3), 1)
    691.1
    """
    return distance * horizon * (1 + varied * tests * count_steepness(arm_rounds, low, high) * high)


def _check_order(low: float, high: float) -> None:
    if low > high:
        raise MechanismError(f"expected low to be at most high, got {low:g} and {high:g}; exchange them")
