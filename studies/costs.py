"""What mechanisms cost where no two items have the same rate: regret if everybody is honest, with 99 % intervals.

    python studies/costs.py [RUNS] [MARKET ..]

The table of docs/which_mechanism.md, whose first column README has. Five agents with three originals each, 10^5 rounds,
or a random end with that mean. The reservoir is computed; the others are sampled with the numbers of `market=`. KL-UCB
over all arms is beside them with its usual constant and with the best of `CONSTANTS`, which is chosen in worlds of its
own, the same for each. It has half of the runs. An interval is 2.58 standard errors of the mean.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import numpy.typing as npt

import cloneproof as cp
from cloneproof.cli.output import new_table, print_table
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import outcomes
from cloneproof.market.market import Ends, full_copies
from reservoir_comparison import NORMAL_99, kl_ucb_pulls

RUNS, SEED, HORIZON = 4000, 36, 10**5
PRIORS = {"Beta(2, 60)": cp.Beta(2, 60), "uniform on .1 to .9": cp.Uniform(0.1, 0.9)}
CONSTANTS = (0.1, 0.15, 0.2, 0.3, 0.5)
Runs = npt.NDArray[np.float64]


def market(prior: cp.Prior, ends: Ends = "at-horizon") -> cp.Market:
    """Five agents of three originals."""
    return cp.Market([cp.Agent(name, 3, prior) for name in "abcde"], HORIZON, ends=ends)


def sampled(here: cp.Market, name: str, runs: int) -> Runs:
    """The regret of each run of a mechanism with the numbers of `market=`."""
    job = Job(here, cp.mechanism(name, market=here), full_copies(here.agents, None), SEED)
    return outcomes(job, 0, runs).regret


def kl_ucb(prior: cp.Prior, ends: Ends, constant: float, runs: int, seed: int) -> Runs:
    """The regret of each run of KL-UCB over all 15 arms."""
    dice, found = np.random.default_rng([SEED, seed]), np.zeros(runs)
    for run in range(runs):
        means = np.array([prior.quantile(u) for u in dice.random(15)])
        rounds = int(dice.geometric(1 / HORIZON))
        rounds = rounds if ends == "at-random" else HORIZON
        pulls = kl_ucb_pulls(means, rounds, seed * 10**6 + run, np.zeros(0, np.int64), constant)
        found[run] = (means.max() - means) @ pulls
    return found


def show(regret: Runs) -> str:
    """The mean with its interval."""
    return f"{regret.mean():,.0f} ± {NORMAL_99 * regret.std(ddof=1) / len(regret) ** 0.5:,.0f}"


def rows(prior: cp.Prior, runs: int) -> list[tuple[str, str]]:
    """The rows of a market."""
    fixed, random = market(prior), market(prior, "at-random")
    best = np.mean([prior.quantile(((k + 0.5) / 5000) ** (1 / 15)) for k in range(5000)])  # the largest of 15
    reservoir = cp.evaluate(fixed, cp.mechanism("reservoir", market=fixed)).regret.value
    found = [
        ("all that can be earned", f"{best * HORIZON:,.0f}"),
        ("reservoir", f"{reservoir:,.0f}"),
        ("reservoir-contest", show(sampled(fixed, "reservoir-contest", runs))),
        ("reservoir-index, random end", show(sampled(random, "reservoir-index", runs))),
    ]
    for ends, words in (("at-horizon", "fixed end"), ("at-random", "random end")):
        tried = {constant: kl_ucb(prior, ends, constant, runs // 8, 1).mean() for constant in CONSTANTS}
        tuned = min(tried, key=tried.__getitem__)
        for constant, kind in ((1.0, "usual constant"), (tuned, f"tuned constant {tuned}")):
            found.append((f"KL-UCB, {words}, {kind}", show(kl_ucb(prior, ends, constant, runs // 2, 2))))
    return found


def main(runs: int = RUNS, *names: str) -> None:
    """Print a table for each market."""
    for name in names or PRIORS:
        start, table = time.process_time(), new_table(f"Regret, rates {name}", "mechanism", "regret", right=1)
        for row in rows(PRIORS[name], runs):
            table.add_row(*row)
        print_table(table)
        print(f"{runs} runs, {time.process_time() - start:.0f} CPU seconds", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
