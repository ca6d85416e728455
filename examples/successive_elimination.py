"""A rule of one's own that looks at its siblings: successive elimination (Even-Dar, Mannor and Mansour 2006).

An arm whose upper confidence bound is below another arm's lower one is out; those that are left are pulled in turn.
Here that is judged anew in every round, from the statistics of all arms.

    cloneproof audit creators.toml --policy successive_elimination:successive_elimination --set radius=0.5
"""

from __future__ import annotations

import math

import cloneproof as cp
from cloneproof.mechanisms import Rule


def priority(inputs, all_pulls, all_means, radius):
    """The least pulled arm that is not out."""
    if inputs.pulls == 0:
        return math.inf
    upper = inputs.mean + math.sqrt(radius * inputs.log_clock / inputs.pulls)
    for others, other_mean in zip(all_pulls, all_means, strict=True):
        if others > 0 and other_mean - math.sqrt(radius * inputs.log_clock / others) > upper:
            return -math.inf
    return -float(inputs.pulls)


def successive_elimination(radius: float = 0.5) -> Rule:
    """Confidence bounds of half-width sqrt(radius ln t / n)."""
    return Rule("successive-elimination", priority, (radius,), explore=1, siblings=True)


if __name__ == "__main__":
    market = cp.Market(
        [cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.45))],
        horizon=50,  # rules that look at their siblings are not compiled
    )
    print(cp.audit(market, cp.bandit(successive_elimination()), tolerance=0.01, seconds=10))
