"""Ten markets with continuous rates that were drawn at random: how near to the cheapest is what `recommend` names.

    python studies/continuous_markets.py [RUNS] [SEED]

Each market is drawn at random: a Beta, Uniform or Empirical prior, 2 to 20 agents, 10^4 to 10^5 rounds, a fixed end or
a random one. The clone-proof mechanisms of the catalogue are played by the short programs below, which share no code
with the package, in the same worlds. A row: the choice, its regret, the best of all, their ratio, and the seconds that
`recommend` took with its default time. Errors are 2.58 standard errors of the difference to the best.
"""

import math
import sys
import time

import numba as nb
import numpy as np

import cloneproof as cp

RUNS, SEED = 200, 28
CANDIDATES = {
    "at-horizon": ("reservoir", "reservoir-contest"),
    "at-random": ("reservoir", "reservoir-contest", "reservoir-index"),
}


def drawn_market(dice: np.random.Generator) -> cp.Market:
    """A market at random."""
    kind, agents = dice.integers(3), int(dice.integers(2, 21))
    if kind == 0:
        prior = cp.Beta(round(dice.uniform(1, 4), 1), round(dice.uniform(5, 100), 1))
    elif kind == 1:
        low = round(dice.uniform(0, 0.4), 2)
        prior = cp.Uniform(low, round(low + dice.uniform(0.05, 0.5), 2))
    else:
        prior = cp.Empirical(np.round(dice.beta(2, 30, 40), 4).tolist())
    originals, horizon = int(dice.integers(1, 5)), round(10 ** dice.uniform(4, 5), -2)
    ends = ("at-horizon", "at-random")[int(dice.integers(2))]
    return cp.Market([cp.Agent(f"a{k}", originals, prior) for k in range(agents)], int(horizon), ends=ends)


@nb.njit
def divergence(mean, q):
    """kl(mean, q) of coins, 0 for q up to the mean."""
    if q <= mean:
        return 0.0
    if q >= 1.0:
        return math.inf
    return (1 - mean) * math.log((1 - mean) / (1 - q)) + (mean * math.log(mean / q) if mean > 0 else 0.0)


@nb.njit
def upper(mean, pulls, width):
    """The KL-UCB index, by bisection."""
    low, high = mean, 1.0
    for _ in range(40):
        q = (low + high) / 2
        low, high = (q, high) if pulls * divergence(mean, q) <= width else (low, q)
    return low


@nb.njit
def tested(means, pulls, draws, threshold, left):
    """One agent's slots in turn (or all agents' by turns: rows of means): regret is counted by what is pulled."""
    agents, count = means.shape
    best, champion, earned = -1, 0.0, 0.0
    for _ in range(draws):
        for i in np.random.permutation(agents) if agents > 1 else np.arange(1):
            if left <= 0:
                return earned, champion, left
            mean, now = means[i, np.random.randint(count)], min(pulls, left)
            score = np.random.binomial(now, mean)
            earned, left = earned + now * mean, left - now
            if score > best:
                best, champion = score, mean
            if score >= threshold and now == pulls:
                return earned, mean, left
    return earned, champion, left


@nb.njit
def contest(means, pulls, draws, threshold, rounds, width):
    """Champions of the agents by their tests, then KL-UCB of the champions on fresh rewards; what is earned."""
    agents = len(means)
    each = min(pulls * draws, rounds // agents)
    earned, left = 0.0, rounds - each * agents
    champions, n, k, index = np.zeros(agents), np.zeros(agents), np.zeros(agents), np.ones(agents)
    for i in range(agents):
        gained, champions[i], rest = tested(means[i : i + 1], pulls, draws, threshold, each)
        earned += gained + rest * champions[i]
    i, second = 0, 1.0
    for _ in range(left):
        n[i], k[i], earned = n[i] + 1, k[i] + (np.random.random() < champions[i]), earned + champions[i]
        if n[i] * divergence(k[i] / n[i], second) > width:  # its index is below the second one
            index[i] = upper(k[i] / n[i], n[i], width)
            i = np.argmax(index)
            second = max(np.max(index[:i]) if i > 0 else 0.0, np.max(index[i + 1 :]) if i + 1 < agents else 0.0)
    return earned


@nb.njit
def on_slots(means, draws, rounds, width):
    """The index on slots; what is earned."""
    agents, count = means.shape
    slots = np.array([means[i, np.random.randint(count)] for i in range(agents) for _ in range(draws)])
    n, k, index, earned = np.zeros(len(slots)), np.zeros(len(slots)), 2 + np.random.random(len(slots)), 0.0
    while rounds > 0:
        i = np.argmax(index)
        now = min(max(1, int(n[i]) // 16), rounds)
        n[i], k[i], rounds = n[i] + now, k[i] + np.random.binomial(now, slots[i]), rounds - now
        index[i], earned = min(index[i], upper(k[i] / n[i], n[i], width)), earned + now * slots[i]
    return earned


def played(made: cp.Mechanism, means: np.ndarray, rounds: int) -> float:
    """The regret of one run."""
    given = made.parameters
    if made.name == "reservoir-index":
        return rounds * means.max() - on_slots(means, given["draws"], rounds, given["constant"])
    tests = given["rounds"], given["draws"], given["threshold"] or 1 << 60, rounds
    if made.name == "reservoir-contest":
        return rounds * means.max() - contest(means, *tests, given["constant"] * math.log(given["horizon"]))
    earned, champion, left = tested(means, *tests)
    return rounds * means.max() - earned - left * champion


def row(number: int, runs: int, seed: int) -> str:
    """The row of a market."""
    dice = np.random.default_rng([seed, number])
    market, start = drawn_market(dice), time.perf_counter()
    found, names = cp.recommend(market), CANDIDATES[market.ends]
    if not found.ranked:
        return f"| market {number} | nothing in its time |"
    choice = found.choice
    seconds = time.perf_counter() - start
    made = {name: choice.mechanism if name == choice.name else cp.mechanism(name, market=market) for name in names}
    prior, shape, regrets = market.agents[0].priors[0], (len(market.agents), market.most_originals), []
    for _ in range(runs):
        means = np.array([[prior.quantile(u) for u in own] for own in dice.random(shape)])
        rounds = market.horizon if market.ends == "at-horizon" else int(dice.geometric(1 / market.horizon))
        regrets.append([played(made[name], means, rounds) for name in names])
    costs = np.array(regrets)
    own, best = names.index(choice.name), int(costs.mean(0).argmin())
    error, ratio = (
        2.58 * (costs[:, own] - costs[:, best]).std() / runs**0.5,
        costs[:, own].mean() / costs[:, best].mean(),
    )
    where = f"{shape[0]} x {shape[1]}, {market.horizon:,} {market.ends}, {type(prior).__name__}"
    said = f"{costs[:, own].mean():,.0f} (said {choice.regret.value:,.0f})"
    least = f"{names[best]} | {costs[:, best].mean():,.0f} ± {error:,.0f}"
    return f"| {where} | {choice.name} | {said} | {least} | {ratio:.2f} | {seconds:.0f} |"


if __name__ == "__main__":
    print("| market | choice | regret | best | regret | ratio | seconds |\n|---|---|---:|---|---:|---:|---:|")
    runs, seed = (*map(int, sys.argv[1:]), *(RUNS, SEED)[len(sys.argv) - 1 :])
    for number in range(10):
        print(row(number, runs, seed), flush=True)
