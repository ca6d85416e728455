"""How far the tuned numbers of `reservoir-contest` are from the best of a grid around them.

    python studies/contest_tuning.py [MARKET ..]

Pulls and draws are multiplied by 0.5 to 2 in all pairs (the threshold keeps its level), and so are the threshold and
the constant of the contest. All candidates play the same worlds with the same rewards. A first look finds the two that
seem best; these and the tuned numbers then play fresh worlds until 2.58 standard errors of the paired differences are
below 5 % of the regret.
"""

import itertools
import sys
import time
from pathlib import Path

import numpy as np

import cloneproof as cp
from cloneproof.market.market import full_copies
from cloneproof.runs.job import Job
from cloneproof.runs.outcomes import outcomes

ENOUGH = 0.05  # of the regret: the error of the ratio
FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)
LOOKS, PART, RUNS, KEPT = 100, 400, 8000, 2
MARKETS = {
    "beta": cp.Market([cp.Agent(name, 3, cp.Beta(2, 60)) for name in "abcde"], horizon=10**5),
    "uniform": cp.Market([cp.Agent(name, 3, cp.Uniform(0.1, 0.9)) for name in "abcde"], horizon=10**5),
    "creators": cp.load_market(Path(__file__).parents[1] / "examples" / "creators.toml"),
    "8 of 1": cp.Market([cp.Agent(name, 1, cp.Uniform(0, 0.2)) for name in "abcdefgh"], horizon=3 * 10**4),
    "20 of 1": cp.Market([cp.Agent(f"a{k}", 1, cp.Beta(2, 60)) for k in range(20)], horizon=10**5),
}
Numbers = tuple[int, int, int, float]  # pulls, draws, threshold, constant


def regrets(market: cp.Market, numbers: Numbers, first: int, runs: int, seed: int) -> np.ndarray:
    """The regret of each run."""
    given = dict(zip(("rounds", "draws", "threshold", "constant"), numbers, strict=True))
    made = cp.mechanism("reservoir-contest", horizon=market.horizon, **given)
    return outcomes(Job(market, made, full_copies(market.agents, None), seed), first, runs).regret


def grid(tuned: Numbers) -> list[Numbers]:
    """The tuned numbers and those around them."""
    pulls, draws, threshold, constant = tuned

    def scaled(number: float, most: float = np.inf) -> int:
        return int(max(1, min(round(number), most)))

    pairs = [
        (scaled(pulls * a), scaled(draws * b), scaled(threshold * a, scaled(pulls * a)), constant)
        for a, b in itertools.product(FACTORS, FACTORS)
    ]
    levels = [(pulls, draws, scaled(threshold * factor, pulls), constant) for factor in FACTORS]
    constants = [(pulls, draws, threshold, round(constant * factor, 3)) for factor in FACTORS]
    return list(dict.fromkeys([tuned, *pairs, *levels, *constants]))


def row(name: str) -> str:
    """The row of a market."""
    market, start = MARKETS[name], time.process_time()
    given = cp.mechanism("reservoir-contest", market=market).parameters
    tuned = given["rounds"], given["draws"], given["threshold"], given["constant"]
    looks = {numbers: regrets(market, numbers, 0, LOOKS, 1).mean() for numbers in grid(tuned)}
    others = [numbers for numbers in looks if looks[numbers] != looks[tuned]]  # as where no test passes either way
    kept = [tuned, *sorted(others, key=lambda numbers: looks[numbers])[:KEPT]]
    found = {numbers: np.zeros(0) for numbers in kept}
    error = np.inf
    while error > ENOUGH and len(found[tuned]) < RUNS:
        for numbers, known in found.items():
            found[numbers] = np.append(known, regrets(market, numbers, len(known), PART, 2))
        own, scale = found[tuned], 2.58 / len(found[tuned]) ** 0.5
        error = max(scale * (own - other).std() / other.mean() for other in found.values())
    best, least = min(found.items(), key=lambda each: each[1].mean())
    said = f"| {name} | {tuned} | {own.mean():,.0f} ± {scale * own.std():,.0f} | {best} | {least.mean():,.0f} "
    return said + f"| {own.mean() / least.mean():.3f} ± {error:.3f} | {time.process_time() - start:,.0f} |"


if __name__ == "__main__":
    print("| market | tuned | regret | best of the grid | regret | ratio | seconds |")
    print("|---|---|---:|---|---:|---:|---:|")
    for name in sys.argv[1:] or MARKETS:
        print(row(name), flush=True)
