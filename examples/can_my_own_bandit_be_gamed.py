"""Can my own bandit be gamed? A policy of a few lines, played as it is, and what copies earn its agents.

A policy is made from the public view (who registered how many arms, and the horizon), selects an arm, and is told the
reward. Replace `Softmax` with yours; nothing else has to be changed.
"""

from __future__ import annotations

import math
import random

import cloneproof as cp

MARKET = cp.Market(
    [cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=300
)
RUNS = 400  # pairs, at most


class Softmax:
    """An arm with probability proportional to exp(average reward / temperature)."""

    TEMPERATURE = 0.2

    def __init__(self, view) -> None:
        self.random = random.Random(view.seed)
        self.pulls = [0 for _ in view.arms]
        self.average = [0.5 for _ in view.arms]

    def select(self) -> int:
        """The arm of this round."""
        weights = [math.exp(average / self.TEMPERATURE) for average in self.average]
        return self.random.choices(range(len(weights)), weights)[0]

    def update(self, arm: int, reward: float) -> None:
        """The reward of that arm."""
        self.pulls[arm] += 1
        self.average[arm] += (reward - self.average[arm]) / self.pulls[arm]


def main() -> None:
    """Print what copies earn ana, and what a mechanism from the catalogue makes of the same attack."""
    copies = (4, 4)
    print(f"Ana registers {copies} instead of (1, 1) in {MARKET.horizon} rounds")
    reservoir = cp.mechanism("reservoir", market=MARKET)
    for name, platform in (("softmax", cp.BlackBox(Softmax)), ("reservoir", reservoir)):
        gain = cp.gain(MARKET, platform, "ana", copies, search=cp.Search(runs=RUNS))
        print(
            f"{name:14} {gain.decided:13} honest {gain.honest.value:6.1f}, "
            f"gain {gain.estimate.value:+6.1f} ± {gain.estimate.error:4.1f} ({gain.runs} pairs of runs)"
        )


if __name__ == "__main__":
    main()
