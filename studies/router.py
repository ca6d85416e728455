"""What LiteLLM's adaptive router costs where nobody knows the models beforehand, beside a reservoir.

    python studies/router.py [SEASONS]

Four models, each of which pleases a share of users drawn from Beta(40, 10) in each of two types of request; a
season has 8,000 requests, half of each type. The router is written out, so that it can be played fast: a
Beta(5, 5) prior of each model in each type, a Thompson sample of each for every request, and no update beyond
a mass of 200 (LiteLLM 1.109.1 with its defaults and equal costs). Types are alike and do not share anything,
so all of them are played at once, 4,000 requests each. What the reservoir costs is exact. Intervals hold at
99 %.
"""

from __future__ import annotations

import sys

import numpy as np

import cloneproof as cp
from reservoir_comparison import NORMAL_99

MODELS, TYPES, REQUESTS, SEED = 4, 2, 4000, 14
SUCCESSES, FAILURES = 40.0, 10.0  # of the prior that rates are drawn from
PRIOR, MOST = 5.0, 200.0  # successes and failures that the router starts from, and the most that both may add up to


def missed(seasons: int) -> np.ndarray:
    """Return how many users could have been pleased and were not, in each season."""
    dice = np.random.default_rng(SEED)
    rates = dice.beta(SUCCESSES, FAILURES, (seasons * TYPES, MODELS))
    pleased = np.full(rates.shape, PRIOR)
    others = np.full(rates.shape, PRIOR)
    every, lost = np.arange(len(rates)), np.zeros(len(rates))
    for _ in range(REQUESTS):
        chosen = dice.beta(pleased, others).argmax(axis=1)
        rate = rates[every, chosen]
        lost += rates.max(axis=1) - rate
        good = dice.random(len(rates)) < rate
        learns = pleased[every, chosen] + others[every, chosen] + 1 <= MOST
        pleased[every, chosen] += good & learns
        others[every, chosen] += ~good & learns
    return lost.reshape(seasons, TYPES).sum(axis=1)


def main(seasons: int = 3000) -> None:
    """Print both costs."""
    lost = missed(seasons)
    print(f"LiteLLM's router, {seasons} seasons: {lost.mean():.0f} ± {NORMAL_99 * lost.std() / seasons**0.5:.1f}")
    agents = [cp.Agent(name, 1, cp.Beta(SUCCESSES, FAILURES)) for name in ("ana", "bo", "cy", "di")]
    market = cp.Market(agents, TYPES * REQUESTS, segments={"code": 0.5, "writing": 0.5})
    print(f"reservoir: {cp.evaluate(market, cp.mechanism('reservoir', market=market)).regret.value:.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
