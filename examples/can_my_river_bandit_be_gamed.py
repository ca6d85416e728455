"""Can my river bandit be gamed? Ana uploads each of her two clips five times, under three policies of river.

`cp.gain` plays both worlds, honest and copied, on the same randomness run by run, and stops when the sign is decided.
Needs river: pip install 'cloneproof[river]'.
"""

from __future__ import annotations

import sys

import cloneproof as cp

try:
    from river import bandit, proba
except ImportError:
    sys.exit("expected the package river, which is not installed; run: pip install 'cloneproof[river]'")

MARKET = cp.examples.market().with_horizon(400)
COPIES = (5, 5)
RUNS = 200  # pairs, at most


def bandits() -> list[cp.BlackBox]:
    """The policies in question. Yours goes here."""
    return [
        cp.adapters.river(bandit.UCB(delta=1)),
        cp.adapters.river(bandit.EpsilonGreedy(epsilon=0.1)),
        cp.adapters.river(bandit.ThompsonSampling(reward_obj=proba.Beta())),
    ]


def main() -> None:
    """Print a line for each policy."""
    print(f"Ana registers {COPIES} instead of (1, 1): {MARKET.horizon} views, up to {RUNS} pairs of runs")
    for box in bandits():
        gain = cp.gain(MARKET, box, "ana", COPIES, search=cp.Search(runs=RUNS), confidence=0.95)
        print(
            f"{box.name:26} {gain.decided:13} honest {gain.honest.value:5.1f}, "
            f"gain {gain.estimate.value:+6.1f} ± {gain.estimate.error:4.1f} ({gain.runs} pairs)"
        )
    print("± is a confidence interval at 95 %. That copying pays is a statement about this market and this horizon;")
    print("that it does not pay says nothing about other copies, other markets or longer horizons.")


if __name__ == "__main__":
    main()
