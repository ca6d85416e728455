"""What mechanisms cost where no two items have the same rate: regret if everybody is honest, with 99 % intervals.

    python studies/costs.py [RUNS] [MARKET ..]
    python studies/costs.py accounts [RUNS]

The table of docs/which_mechanism.md, whose first column README has. Five agents with three originals each, 10^5 rounds,
or a random end with that mean. The reservoir and bars are computed; the others are sampled with the numbers of
`market=`. KL-UCB over all arms is beside them with its usual constant and with the best of `CONSTANTS`, which is chosen
in worlds of its own, the same for each. Where runs are fast or vary much there are more. An interval is 2.58 standard
errors.

With `accounts`, what a second account with the same items gains in the first market (docs/textbook/second-accounts.md,
(E)), in the same worlds with and without it, as a share of what an honest agent earns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import cloneproof as cp
from cloneproof.advice.regret import computed_regret, expected_best
from cloneproof.audits.deviations import BOTH, Split
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import Ends, full_copies
from reservoir_comparison import NORMAL_99, kl_ucb_pulls
from second_season import relative

RUNS, SEED, HORIZON = 2000, 36, 10**5
PRIORS = {"Beta(2, 60)": cp.Beta(2, 60), "uniform on .1 to .9": cp.Uniform(0.1, 0.9)}
CONSTANTS = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7)
Runs = npt.NDArray[np.float64]


def market(prior: cp.Prior, ends: Ends = "at-horizon") -> cp.Market:
    """Five agents of three originals."""
    return cp.Market([cp.Agent(name, 3, prior) for name in "abcde"], HORIZON, ends=ends)


def sampled(here: cp.Market, name: str, runs: int) -> Runs:
    """The regret of each run of a mechanism with the numbers of `market=`."""
    job = runs_of(here, cp.mechanism(name, market=here), full_copies(here.agents, None), SEED)
    return job(0, runs).regret


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


def rows(prior: cp.Prior, runs: int) -> Iterator[tuple[str, str]]:
    """The rows of a market, one after the other."""
    fixed, random = market(prior), market(prior, "at-random")
    yield "all that can be earned", f"{expected_best(fixed) * HORIZON:,.0f}"
    yield "reservoir", f"{cp.evaluate(fixed, cp.mechanism('reservoir', market=fixed)).regret.value:,.0f}"
    bars = computed_regret(random, cp.mechanism("reservoir-bars", market=random))
    assert bars is not None
    yield "reservoir-bars, random end", f"{bars.value:,.0f}"
    yield "reservoir-index, random end", show(sampled(random, "reservoir-index", 5 * runs))
    tried = {constant: kl_ucb(prior, "at-horizon", constant, runs // 8, 1).mean() for constant in CONSTANTS}
    tuned = min(tried, key=tried.__getitem__)
    for constant, kind, times in ((1.0, "usual constant", runs // 8), (tuned, f"tuned constant {tuned}", runs // 2)):
        yield f"KL-UCB, fixed end, {kind}", show(kl_ucb(prior, "at-horizon", constant, times, 2))
        yield f"KL-UCB, random end, {kind}", show(kl_ucb(prior, "at-random", constant, times, 2))
    yield "reservoir-contest", show(sampled(fixed, "reservoir-contest", runs))


def with_account(made: cp.Mechanism, runs: int) -> tuple[Runs, Runs]:
    """What an agent earns honestly, and if it registers all items in a second account too."""
    here = market(cp.Beta(2, 60))
    twice = Split("a", (BOTH,) * 3)
    split, second = twice.market(here), twice.accounts[1]
    drawn = np.random.default_rng(SEED).beta(2, 60, (runs, 5, 3)).tolist()
    worlds = [dict(zip("abcde", map(tuple, means), strict=True)) for means in drawn]
    honest = runs_of(here, made, full_copies(here.agents, None), SEED, tuple(worlds))(0, runs).served[:, 0]
    doubled = tuple({**world, second: world["a"]} for world in worlds)
    both = runs_of(split, made, full_copies(split.agents, None), SEED, doubled)(0, runs).served[:, :2].sum(1)
    return honest, both


def kl_ucb_with_account(runs: int) -> tuple[Runs, Runs]:
    """The same under KL-UCB over all arms."""
    found, nothing = np.zeros((2, runs)), np.zeros(0, np.int64)
    for run, means in enumerate(np.random.default_rng(SEED).beta(2, 60, (runs, 15))):
        found[0, run] = means[:3] @ kl_ucb_pulls(means, HORIZON, run, nothing, 1.0)[:3]
        pulls = kl_ucb_pulls(np.append(means, means[:3]), HORIZON, run, nothing, 1.0)
        found[1, run] = means[:3] @ (pulls[:3] + pulls[15:])
    return found[0], found[1]


def accounts(runs: int = RUNS) -> None:
    """Print what a second account gains; the reservoir's runs are fast, so it has two hundred times as many."""
    here = market(cp.Beta(2, 60))
    for name, found in (
        ("reservoir", lambda: with_account(cp.mechanism("reservoir", market=here), 200 * runs)),
        ("KL-UCB over all arms", lambda: kl_ucb_with_account(runs // 2)),
        ("reservoir-contest", lambda: with_account(cp.mechanism("reservoir-contest", market=here), runs)),
    ):
        share, half = relative(*found())
        print(f"{name}: {share:+.1%} ± {half:.1%}", flush=True)


def main(runs: int = RUNS, *names: str) -> None:
    """Print the rows of each market."""
    for name in names or PRIORS:
        start = time.process_time()
        print(f"Regret, rates {name}, {runs} runs")
        for words, regret in rows(PRIORS[name], runs):
            print(f"  {words}: {regret} ({time.process_time() - start:.0f} CPU seconds so far)", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["accounts"]:
        accounts(*map(int, sys.argv[2:]))
    else:
        main(*map(int, sys.argv[1:2]), *sys.argv[2:])
