"""Can my MABWiser bandit be gamed? Ana uploads each of her two clips five times, under three of its policies.

`cp.gain` plays both worlds, honest and copied, on the same randomness run by run, and stops when the sign is decided.
Needs MABWiser: pip install 'cloneproof[mabwiser]'.
"""

from __future__ import annotations

import sys

import cloneproof as cp

try:
    from mabwiser.mab import LearningPolicy
except ImportError:
    sys.exit("expected the package mabwiser, which is not installed; run: pip install 'cloneproof[mabwiser]'")

MARKET = cp.examples.market().with_horizon(150)
COPIES = (5, 5)
RUNS = 200  # pairs, at most


def bandits() -> list[cp.BlackBox]:
    """The policies in question. Yours goes here."""
    return [
        cp.adapters.mabwiser(LearningPolicy.UCB1(alpha=1)),
        cp.adapters.mabwiser(LearningPolicy.EpsilonGreedy(epsilon=0.1)),
        cp.adapters.mabwiser(LearningPolicy.ThompsonSampling()),
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
