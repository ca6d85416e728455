"""How far the tuned numbers of `reservoir-contest` are from the best of a grid around them.

    python studies/contest_tuning.py [MARKET ..]

Pulls and draws are multiplied by 0.5, 0.7, 1, 1.4 and 2, in all pairs (the threshold keeps its level), and the threshold
by itself. All candidates play the same worlds with the same rewards. A first look finds the four that seem best; these
and the tuned numbers then play fresh worlds, so that the best one is not best by chance in those that chose it. The
ratio is that of the mean regrets, with 2.58 standard errors of the paired difference.
"""

import itertools
import sys
import time
from pathlib import Path

import numpy as np

import cloneproof as cp
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import outcomes
from cloneproof.market.market import full_copies

FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)
LOOKS, RUNS, KEPT = 300, 3000, 4
MARKETS = {
    "beta": cp.Market([cp.Agent(name, 3, cp.Beta(2, 60)) for name in "abcde"], horizon=10**5),
    "uniform": cp.Market([cp.Agent(name, 3, cp.Uniform(0.1, 0.9)) for name in "abcde"], horizon=10**5),
    "creators": cp.load_market(Path(__file__).parents[1] / "examples" / "creators.toml"),
}
Numbers = tuple[int, int, int]  # pulls, draws, threshold


def regrets(market: cp.Market, numbers: Numbers, first: int, runs: int, seed: int) -> np.ndarray:
    """The regret of each run."""
    pulls, draws, threshold = numbers
    made = cp.mechanism("reservoir-contest", rounds=pulls, draws=draws, threshold=threshold, horizon=market.horizon)
    return outcomes(Job(market, made, full_copies(market.agents, None), seed), first, runs).regret


def grid(tuned: Numbers) -> list[Numbers]:
    """The tuned numbers and those around them."""
    pulls, draws, threshold = tuned

    def scaled(number: float, most: float = np.inf) -> int:
        return int(max(1, min(round(number), most)))

    pairs = [
        (scaled(pulls * a), scaled(draws * b), scaled(threshold * a, scaled(pulls * a)))
        for a, b in itertools.product(FACTORS, FACTORS)
    ]
    levels = [(pulls, draws, scaled(threshold * factor, pulls)) for factor in FACTORS]
    return list(dict.fromkeys([tuned, *pairs, *levels]))


def row(name: str) -> str:
    """The row of a market."""
    market, start = MARKETS[name], time.process_time()
    given = cp.mechanism("reservoir-contest", market=market).parameters
    tuned = given["rounds"], given["draws"], given["threshold"]
    looks = {numbers: regrets(market, numbers, 0, LOOKS, 1).mean() for numbers in grid(tuned)}
    kept = [tuned, *sorted(looks, key=lambda numbers: looks[numbers])[:KEPT]]
    found = {numbers: regrets(market, numbers, 0, RUNS, 2) for numbers in dict.fromkeys(kept)}
    best = min(found, key=lambda numbers: found[numbers].mean())
    own, least = found[tuned], found[best]
    error = 2.58 * (own - least).std() / RUNS**0.5 / least.mean()
    said = f"| {name} | {tuned} | {own.mean():,.0f} ± {2.58 * own.std() / RUNS**0.5:,.0f} | {best} | {least.mean():,.0f} "
    return said + f"| {own.mean() / least.mean():.3f} ± {error:.3f} | {time.process_time() - start:,.0f} |"


if __name__ == "__main__":
    print("| market | tuned | regret | best of the grid | regret | ratio | seconds |\n|---|---|---:|---|---:|---:|---:|")
    for name in sys.argv[1:] or MARKETS:
        print(row(name), flush=True)
