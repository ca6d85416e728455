"""The reservoir beside others in four markets: python studies/reservoir_comparison.py [RUNS] [SEED], some minutes.

1. Regret if everybody is honest: exact for the reservoir with numbers from `market=`, and
   sampled for KL-UCB over all arms, which is the usual benchmark and can be gamed.
2. What the theorem does not cover: what an informed agent gains, and one with two or three accounts, against honest
   others. README has the first two columns of the second and the last market.

KL-UCB has an index for each arm in each round, so 10^7 rounds of thirty arms are 3 x 10^8 inversions of a divergence.
Here most of them are left out: an index rises with the round unless its arm is pulled, so the one at the end of a block
of rounds bounds it from above, and only arms whose bound is not below the best index so far are looked at.
"""

from __future__ import annotations

import math
import statistics
import sys
import time

import numba
import numpy as np
import numpy.typing as npt

import cloneproof as cp
from cloneproof._lib.sections import Section, Table
from cloneproof.audits.deviations import BOTH, Split
from cloneproof.audits.gain import exact_payoffs
from cloneproof.cli.output import print_sections

RUNS, SEED = 24, 0
BLOCK = 32  # rounds for which a bound of an index is kept
NORMAL_99 = 2.5758  # of the standard normal law, for an interval of the mean of the runs
MARKETS = (
    ("5 agents x 3, values .2 .4 .6 .8", 5, (0.2, 0.4, 0.6, 0.8), 10**6),
    ("5 agents x 3, values .01 .02 .03", 5, (0.01, 0.02, 0.03), 10**6),
    ("10 agents x 3, values .01 .02 .03", 10, (0.01, 0.02, 0.03), 10**7),
    ("20 agents x 3, values .002 .004 .006", 20, (0.002, 0.004, 0.006), 10**8),
)
MOST_ROUNDS = 10**7  # of a run of KL-UCB: beyond it a run takes a minute


def market(agents: int, values: tuple[float, ...], horizon: int) -> cp.Market:
    """Agents of three originals each, means uniform on the values."""
    prior = cp.Discrete(values, [1 / len(values)] * len(values))
    return cp.Market([cp.Agent(f"agent {k}", 3, prior) for k in range(agents)], horizon)


@numba.njit
def divergence(mean: float, q: float) -> float:
    """kl(mean, q) of coins for q above the mean, 0 for others."""
    if q <= mean:
        return 0.0
    if mean <= 0.0:
        return -math.log(1.0 - q)
    return mean * math.log(mean / q) + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - q))


@numba.njit
def kl_index(mean: float, pulls: int, level: float, guess: float) -> float:
    """The largest q with pulls kl(mean, q) <= level, by Newton's method: convex, so it comes down from the right."""
    bound = level / pulls
    if mean <= 0.0:
        return 1.0 - math.exp(-bound)
    if mean >= 1.0:
        return 1.0
    q = min(max(guess, mean + 1e-12), 1.0 - 1e-12)
    for _ in range(60):
        excess = divergence(mean, q) - bound
        step = excess * q * (1.0 - q) / (q - mean)
        after = min(q - step, 0.5 * (1.0 + q))
        if after <= mean:
            after = 0.5 * (mean + q)
        if abs(after - q) <= 1e-10 * q and abs(excess) <= 1e-8 * bound:  # steps from near 1 are short, too
            return after
        q = after
    return q


@numba.njit
def kl_ucb_pulls(
    means: npt.NDArray[np.float64], horizon: int, seed: int, decisions: npt.NDArray[np.int64], constant: float
) -> npt.NDArray[np.int64]:
    """How often KL-UCB pulls each of these Bernoulli arms: each once, then the largest index at level constant ln t.

    `decisions` takes the arm of each of the first rounds, as many as it has room for.
    """
    np.random.seed(seed)
    arms = len(means)
    pulls, ones = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    bounds = np.ones(arms)
    block_end, end_level = 0, 0.0
    for t in range(1, horizon + 1):
        chosen = t - 1
        if t > arms:
            if t > block_end:
                block_end = t + BLOCK - 1
                end_level = constant * math.log(block_end)
                for k in range(arms):
                    bounds[k] = kl_index(ones[k] / pulls[k], pulls[k], end_level, bounds[k])
            level, chosen = constant * math.log(t), int(np.argmax(bounds))
            best = kl_index(ones[chosen] / pulls[chosen], pulls[chosen], level, bounds[chosen])
            for k in range(arms):
                if bounds[k] > best and k != chosen and pulls[k] * divergence(ones[k] / pulls[k], best) < level:
                    best, chosen = kl_index(ones[k] / pulls[k], pulls[k], level, bounds[k]), k
        pulls[chosen] += 1
        ones[chosen] += np.random.random() < means[chosen]
        if t >= arms:
            bounds[chosen] = kl_index(ones[chosen] / pulls[chosen], pulls[chosen], max(end_level, 1.0), bounds[chosen])
        if t <= len(decisions):
            decisions[t - 1] = chosen
    return pulls


def kl_ucb_regret(values: tuple[float, ...], arms: int, horizon: int, runs: int, seed: int) -> tuple[float, float]:
    """The mean over runs of the regret, with means drawn from the prior; and the half-width of a 99 % interval."""
    dice = np.random.default_rng(seed)
    regrets = []
    for run in range(runs):
        means = dice.choice(np.array(values), size=arms)
        pulls = kl_ucb_pulls(means, horizon, seed * 10**6 + run, np.zeros(0, np.int64), 1.0)
        regrets.append(float(((means.max() - means) * pulls).sum()))
    return statistics.fmean(regrets), NORMAL_99 * statistics.stdev(regrets) / math.sqrt(runs)


def regrets(runs: int, seed: int) -> None:
    """The first table."""
    shown = []
    for words, agents, values, horizon in MARKETS:
        here = market(agents, values, horizon)
        exact = cp.evaluate(here, cp.mechanism("reservoir", market=here)).regret.value
        usual = "a run takes a minute"
        if horizon <= MOST_ROUNDS:
            start = time.process_time()
            mean, half = kl_ucb_regret(values, 3 * agents, horizon, runs, seed)
            usual = f"{mean:,.0f} ± {half:,.0f} ({runs} runs, {time.process_time() - start:.0f} s)"
        shown.append((words, f"{horizon:,}", f"{exact:,.0f}", usual))
    columns = ("market", "T", "reservoir", "KL-UCB over all arms")
    print_sections([Section("Regret, everybody honest", [Table.of(columns, shown)])])
    print("± is 2.58 standard errors of the mean over runs; the other numbers are exact.")


def gains(here: cp.Market) -> tuple[float, float, float, float]:
    """What one agent gains under the reservoir against honest others, as shares of its honest payoff.

    If it knows its best original and registers that alone; registers all originals in each of two accounts; divides
    them between two at best; or among three.
    """
    mechanism, name = cp.mechanism("reservoir", market=here), here.agents[0].name
    found = cp.audit(here, mechanism, agent=name, also=("informed",)).informed
    assert found is not None

    def split(owners: tuple[int, ...], accounts: int = 2) -> float:
        paid = exact_payoffs([(here, mechanism)], Split(name, owners, accounts), "law")
        return paid[here.horizon].total.value

    earned = split((BOTH,) * 3), split((1, 2, 2)), split((1, 2, 4), 3)
    both, two, three = (each / found.honest.value - 1 for each in earned)
    return found.relative_gain, both, two, three


def deviations() -> None:
    """The second table."""
    names = ("market", "informed", "two accounts, each with all originals", "divided between two", "among three")
    rows = [(words, *(f"{gain:+.1%}" for gain in gains(market(*numbers)))) for words, *numbers in MARKETS]
    print_sections([Section("Gains of one agent under the reservoir, others honest", [Table.of(names, rows)])])


def main(*given: str) -> None:
    """Both tables."""
    runs, seed = (*map(int, given), *(RUNS, SEED)[len(given) :])
    regrets(runs, seed)
    deviations()


if __name__ == "__main__":
    main(*sys.argv[1:])
