"""What bars on slots cost until a random end, beside KL-UCB with many constants: regret if everybody is honest.

    python studies/bar_costs.py [RUNS]

The table of docs/textbook/bars-on-slots.md. Agents have three originals each. Bars, the index and the first pass have
the numbers of `market=`; the regret of bars is exact and, with the same numbers, sampled. KL-UCB over all arms plays
the arm of largest index q, n kl(mean, q) = c, with constants c of its own and with c = ln T. An interval is 2.58
standard errors, over RUNS runs (KL-UCB at 10^6 rounds: a quarter of them); the seed is SEED.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator

import numba
import numpy as np
import numpy.typing as npt

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import full_copies
from reservoir_comparison import NORMAL_99, divergence, kl_index

RUNS, SEED = 2000, 40
INDEX = ((8, 0.6), (10, 1.2))  # the best of those tried for repeating rates, and for others
LEVELS = (1.0, 1.5, 2.5, 4.0)
RATES, VALUES = cp.Discrete([0.01, 0.02, 0.03], [1 / 3] * 3), cp.Discrete([0.2, 0.4, 0.6, 0.8], [0.25] * 4)
MARKETS = {
    "rates .01 .02 .03, 5 agents, T = 10^5": (RATES, 5, 10**5),
    "rates .01 .02 .03, 10 agents, T = 10^6": (RATES, 10, 10**6),
    "values .2 .4 .6 .8, 5 agents, T = 10^6": (VALUES, 5, 10**6),
    "Beta(2, 60), 5 agents, T = 10^5": (cp.Beta(2, 60), 5, 10**5),
}
Runs = npt.NDArray[np.float64]


@numba.njit
def is_behind(ones: int, pulls: int, second: float, level: float) -> bool:
    """Whether the index of an arm is below another one."""
    mean = ones / pulls
    return mean < second and (second >= 1.0 or pulls * divergence(mean, second) > level)


@numba.njit
def fixed_level_pulls(means: Runs, rounds: int, seed: int, level: float) -> npt.NDArray[np.int64]:
    """How often KL-UCB with a fixed level pulls each of these Bernoulli arms.

    Only the index of the arm that is played changes, so it is compared with that of the second one. It falls with each
    reward of 0, so the pulls up to the next 1 are drawn at once, and those up to the fall behind found by bisection.
    """
    np.random.seed(seed)
    arms = len(means)
    pulls, ones, bounds = np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.full(arms, 2.0)
    left = rounds
    while left > 0:
        best = int(np.argmax(bounds))
        bounds[best] = -1.0
        second = bounds.max()
        while left > 0:
            zeros = min(left, np.random.geometric(means[best]) - 1) if means[best] > 0 else left
            if zeros and is_behind(ones[best], pulls[best] + zeros, second, level):
                low, high = 0, zeros  # not behind (or not tried), behind
                while high - low > 1:
                    middle = (low + high) // 2
                    if is_behind(ones[best], pulls[best] + middle, second, level):
                        high = middle
                    else:
                        low = middle
                pulls[best] += high
                left -= high
                break
            pulls[best] += zeros
            left -= zeros
            if left > 0:
                pulls[best] += 1
                ones[best] += 1
                left -= 1
                if is_behind(ones[best], pulls[best], second, level):
                    break
        bounds[best] = kl_index(ones[best] / pulls[best], pulls[best], level, 1.0)
    return pulls


def fixed_level_regret(prior: cp.Prior, agents: int, horizon: int, level: float, runs: int) -> Runs:
    """The regret of each run, in worlds that do not depend on the level."""
    dice, found = np.random.default_rng(SEED), np.zeros(runs)
    for run in range(runs):
        means = np.array([prior.quantile(u) for u in dice.random(3 * agents)])
        pulls = fixed_level_pulls(means, int(dice.geometric(1 / horizon)), run, level)
        found[run] = (means.max() - means) @ pulls
    return found


def show(regret: Runs) -> str:
    """The mean with its interval."""
    return f"{regret.mean():,.1f} ± {NORMAL_99 * regret.std(ddof=1) / len(regret) ** 0.5:,.1f} ({len(regret)} runs)"


def rows(prior: cp.Prior, agents: int, horizon: int, runs: int) -> Iterator[tuple[str, str]]:
    """The rows of a market, one after the other."""
    here = cp.Market([cp.Agent(f"agent {k}", 3, prior) for k in range(agents)], horizon, ends="at-random")
    bars = cp.mechanism("reservoir-bars", market=here)
    yield "bars", f"{bars.parameters}"
    exact = cp.evaluate(here, bars).regret
    yield "bars, exact", f"{exact.value:,.2f} ± {exact.error:.1g}"
    tuned = {name: cp.mechanism(name, market=here) for name in ("reservoir-index", "reservoir")}
    best = {f"index, draws {s}, constant {c}": cp.mechanism("reservoir-index", draws=s, constant=c) for s, c in INDEX}
    for name, made in {"bars, sampled": bars, **tuned, **best}.items():
        yield name, show(runs_of(here, made, full_copies(here.agents, None), SEED)(0, runs).regret)
    for level in (*LEVELS, math.log(horizon)):
        words = "ln T" if level not in LEVELS else f"{level:g}"
        yield (
            f"KL-UCB, c = {words}",
            show(fixed_level_regret(prior, agents, horizon, level, runs if horizon < 10**6 else runs // 4)),
        )


def main(runs: int = RUNS) -> None:
    """Print the rows of each market."""
    for name, market in MARKETS.items():
        start = time.process_time()
        print(f"Regret, {name}")
        for words, regret in rows(*market, runs):
            print(f"  {words}: {regret} ({time.process_time() - start:.0f} CPU seconds so far)", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
