"""Second accounts: what every anonymous platform pays a provider that enters more than once.

A platform is anonymous if it treats accounts that register alike in the same way; it serves somebody in every round.
Each agent has one original, means are independent draws from one prior, and the other n - 1 agents have one account
each. Proofs: docs/textbook/second-accounts.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cloneproof.bounds._domain import checked
from cloneproof.errors import MechanismError

__all__ = ["account_fee", "accounts_gain", "flood_others", "second_account_ceiling", "second_account_floor"]


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
