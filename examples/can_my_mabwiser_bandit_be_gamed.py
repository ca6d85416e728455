"""Can my MABWiser bandit be gamed? Ana uploads each of her two clips five times, under three of its policies.

`cp.BlackBox` takes any class with `select` and `update`; `cp.gain` plays both worlds, honest and copied, on the same
randomness run by run, and stops when the sign is decided. Needs MABWiser: pip install mabwiser.
"""

from __future__ import annotations

import sys
from functools import partial

import cloneproof as cp

try:
    from mabwiser.mab import MAB, LearningPolicy
except ImportError:
    sys.exit("expected the package mabwiser, which is not installed; run: pip install mabwiser")

MARKET = cp.examples.market().with_horizon(150)
COPIES = (5, 5)
RUNS = 200  # pairs, at most


class MABWiser:
    """A new `MAB` in each run. It predicts only after a first `fit`, so each arm is pulled once before that."""

    def __init__(self, learning_policy, view):
        self.mab = MAB(list(view.arms), learning_policy, seed=view.seed)
        self.waiting, self.seen = list(view.arms)[::-1], []

    def select(self):
        """Return the arm to serve."""
        return self.waiting[-1] if self.waiting else self.mab.predict()

    def update(self, arm, reward):
        """Hear its reward."""
        if not self.waiting:
            self.mab.partial_fit([arm], [reward])
            return
        self.waiting.pop()
        self.seen.append((arm, reward))
        if not self.waiting:
            self.mab.fit(*map(list, zip(*self.seen, strict=True)))


def bandits() -> list[cp.BlackBox]:
    """The policies in question. Yours goes here."""
    policies = {
        "UCB1": LearningPolicy.UCB1(alpha=1),
        "epsilon-greedy": LearningPolicy.EpsilonGreedy(epsilon=0.1),
        "Thompson sampling": LearningPolicy.ThompsonSampling(),
    }
    return [cp.BlackBox(partial(MABWiser, policy), name=f"MABWiser's {name}") for name, policy in policies.items()]


def main() -> None:
    """Print a line for each policy."""
    print(f"Ana registers {COPIES} instead of (1, 1): {MARKET.horizon} views, up to {RUNS} pairs of runs")
    for box in bandits():
        gain = cp.gain(MARKET, box, "ana", COPIES, search=cp.Search(runs=RUNS), confidence=0.95)
        print(
            f"{box.name:28} {gain.decided:13} honest {gain.honest.value:5.1f}, "
            f"gain {gain.estimate.value:+6.1f} ± {gain.estimate.error:4.1f} ({gain.runs} pairs)"
        )
    print("± is a confidence interval at 95 %. That copying pays is a statement about this market and this horizon;")
    print("that it does not pay says nothing about other copies, other markets or longer horizons.")


if __name__ == "__main__":
    main()
