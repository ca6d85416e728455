"""Can my river bandit be gamed? Ana uploads each of her two clips five times, under three policies of river.

`cp.BlackBox` takes any class with `select` and `update`; `cp.gain` plays both worlds, honest and copied, on the same
randomness run by run, and stops when the sign is decided. Needs river: pip install river.
"""

from __future__ import annotations

import inspect
import sys
from functools import partial

import cloneproof as cp

try:
    from river import bandit, proba
except ImportError:
    sys.exit("expected the package river, which is not installed; run: pip install river")

MARKET = cp.examples.market().with_horizon(400)
COPIES = (5, 5)
RUNS = 200  # pairs, at most


class River:
    """A fresh clone of a policy in each run, with the run's seed, else every run would throw the same dice."""

    def __init__(self, policy, view):
        seeded = "seed" in inspect.signature(type(policy)).parameters
        self.policy, self.arms = policy.clone({"seed": view.seed} if seeded else None), list(view.arms)

    def select(self):
        """Return the arm to serve."""
        return self.policy.pull(self.arms)

    def update(self, arm, reward):
        """Hear its reward."""
        self.policy.update(arm, reward)


def bandits() -> list[cp.BlackBox]:
    """The policies in question. Yours goes here."""
    policies = {
        "UCB": bandit.UCB(delta=1),
        "epsilon-greedy": bandit.EpsilonGreedy(epsilon=0.1),
        "Thompson sampling": bandit.ThompsonSampling(reward_obj=proba.Beta()),
    }
    return [cp.BlackBox(partial(River, policy), name=f"river's {name}") for name, policy in policies.items()]


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
