"""What a provider gains that has seen its clicks and registers again: the second of two seasons under the reservoir.

    python studies/second_season.py [RUNS] [SEED]

Five agents with three originals each of .01, .02 or .03, with equal odds; 10^6 rounds a season. In the first season
everybody is honest. In the second one agent registers, of its own items, the one with the best posterior mean alone or
eight times beside the others, or its items and eight imitations of the item that won the first season. The others
register as before, and means stay. The lines below share no code with the package but take its tuned numbers; the
second season is an expectation given means and order. Intervals are 2.58 standard errors.
"""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
from scipy.stats import binom

import cloneproof as cp

RUNS, SEED = 20_000, 36
RATES, SHOPS, ITEMS, HORIZON = (0.01, 0.02, 0.03), 5, 3, 10**6
FirstPass = tuple[int, int, int]  # pulls, draws, threshold
ROWS = ("its best item alone", "eight copies of its best item", "eight imitations of the winner")


def first_season(dice: np.random.Generator, means: np.ndarray, rule: FirstPass) -> tuple[np.ndarray, np.ndarray, float]:
    """Pulls and clicks of each item of the first agent in a season of the flat first pass, and the winner's mean."""
    pulls, draws, threshold = rule
    seen, clicks, order = np.zeros(ITEMS, int), np.zeros(ITEMS, int), dice.permutation(SHOPS)
    left, best = HORIZON, (-1, 0, 0)
    for agent in [*order] * draws:
        item = int(dice.integers(ITEMS))
        count, left = int(dice.binomial(pulls, means[agent, item])), left - pulls
        if agent == 0:
            seen[item], clicks[item] = seen[item] + pulls, clicks[item] + count
        if count > best[0]:
            best = count, agent, item
        if count >= threshold:
            break
    _, agent, item = best
    if agent == 0:
        seen[item], clicks[item] = seen[item] + left, clicks[item] + dice.binomial(left, means[agent, item])
    return seen, clicks, float(means[agent, item])


def posterior_best(dice: np.random.Generator, seen: np.ndarray, clicks: np.ndarray) -> int:
    """The item with the best posterior mean; ties at random."""
    rates = np.array(RATES)
    logs = clicks[:, None] * np.log(rates) + (seen - clicks)[:, None] * np.log1p(-rates)
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return int(np.argmax(chances @ rates / chances.sum(axis=1) + 1e-9 * dice.random(ITEMS)))


@cache
def pass_chances(rule: FirstPass) -> np.ndarray:
    """The chance that a test passes at each rate."""
    return np.asarray(binom.sf(rule[2] - 1, rule[0], RATES))


def pay(rule: FirstPass, weights: np.ndarray, means: np.ndarray, order: np.ndarray, dice: np.random.Generator) -> float:
    """What the first agent earns in a season, given the order of the agents and each one's weights (rows) on its means.

    If nobody passes, the counts below the threshold are drawn.
    """
    pulls, draws, threshold = rule
    passes = pass_chances(rule)[np.searchsorted(RATES, means)]
    passing, own = (weights * passes).sum(axis=1), weights[0] @ means[0]
    won, reached, earned = weights[0] @ (passes[0] * means[0]), 1.0, 0.0
    for test, agent in enumerate([*order] * draws, 1):
        if agent == 0:
            earned += reached * (pulls * own + (HORIZON - test * pulls) * won)
        reached *= 1 - passing[agent]
        if reached < 1e-12:
            return float(earned)
    slots = [(agent, dice.choice(len(row), p=row)) for agent, row in ((i, weights[i]) for i in [*order] * draws)]
    drawn = np.array([means[slot] for slot in slots])
    agent, item = slots[
        int(np.argmax(binom.ppf(dice.random(len(slots)) * binom.cdf(threshold - 1, pulls, drawn), pulls, drawn)))
    ]
    return float(earned + reached * (agent == 0) * means[agent, item] * (HORIZON - len(slots) * pulls))


def gains(runs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What the agent earns in the second season of each run: honestly, and by each row."""
    prior, dice = cp.Discrete(RATES, [1 / 3] * 3), np.random.default_rng(seed)
    market = cp.Market([cp.Agent(f"shop {k}", ITEMS, prior) for k in range(SHOPS)], HORIZON)
    tuned = cp.mechanism("reservoir", market=market).parameters
    rule = tuned["rounds"], tuned["draws"], tuned["threshold"]
    honest, found = np.zeros(runs), np.zeros((runs, len(ROWS)))
    for run in range(runs):
        means = dice.choice(RATES, (SHOPS, ITEMS))
        seen, clicks, winner = first_season(dice, means, rule)
        best, order = posterior_best(dice, seen, clicks), dice.permutation(SHOPS)
        listed = np.column_stack([means, np.full(SHOPS, winner)])  # the last item is registered by an imitator alone
        copies = np.repeat([[1.0, 1, 1, 0]], SHOPS, axis=0)
        earned = []
        for own in ([1, 1, 1, 0], np.eye(4)[best], 1 + 7 * np.eye(4)[best] - np.eye(4)[3], [1, 1, 1, 8]):
            copies[0] = own
            earned.append(pay(rule, copies / copies.sum(axis=1, keepdims=True), listed, order, dice))
        honest[run], found[run] = earned[0], earned[1:]
    return honest, found


def relative(honest: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    """The gain as a share of what honesty earns, with its half-width."""
    share = found.mean() / honest.mean()
    return share - 1, 2.58 * float((found - share * honest).std(ddof=1)) / honest.mean() / len(honest) ** 0.5


def main(runs: int = RUNS, seed: int = SEED) -> None:
    """Print the gains."""
    honest, found = gains(runs, seed)
    print(f"honest in both seasons: {honest.mean():,.0f} clicks in the second ({runs} runs)")
    for row, own in zip(ROWS, found.T, strict=True):
        share, half = relative(honest, own)
        print(f"{row}: {share:+.1%} ± {half:.1%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
