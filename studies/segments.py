"""What segments save and copies gain: four segments, an index on slots in each, and KL-UCB in each beside it.

    python studies/segments.py [RUNS]
    python studies/segments.py recommend

Five agents of three items, 2 10^5 rounds, four equally likely segments; the log-odds of an item's rate are those of 3 %
plus N(0, .5) for the item plus N(0, .35) for each segment. Regrets are sums over segments against the best item of
each, gains are of one agent, in the same runs with and without copies. An interval is 2.58 standard errors. "One market
for all" ignores segments: it also loses what the best item on average is worse by than the best item of each segment.
With `recommend`, what `cp.recommend` finds at a fixed end.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt

import cloneproof as cp
from cloneproof.advice.regret import expected_best
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import Ends, full_copies

RUNS, SEED, HORIZON = 200, 41, 2 * 10**5
RATES = cp.LogOdds(0.03, spread=0.5, by_segment=0.35)
COPIES = {"five of each item": (5, 5, 5), "five of one item": (5, 1, 1)}
NORMAL_99 = 2.576
Runs = npt.NDArray[np.float64]


def market(ends: Ends) -> cp.Market:
    """Five agents of three items in four equally likely segments."""
    agents = [cp.Agent(name, 3, RATES) for name in "abcde"]
    return cp.Market(agents, HORIZON, ends=ends, segments=dict.fromkeys(("north", "east", "south", "west"), 0.25))


def played(here: cp.Market, made: cp.Mechanism, copies: dict[str, tuple[int, ...]], runs: int) -> tuple[Runs, Runs]:
    """The regret of each run, and what the first agent is served, over all segments."""
    job = runs_of(here, made, full_copies(here.agents, copies), SEED)
    parts = [part(0, runs) for part in job.parts]
    return np.sum([part.regret for part in parts], axis=0), np.sum([part.served[:, 0] for part in parts], axis=0)


def interval(values: Runs) -> str:
    """A mean with its interval."""
    return f"{values.mean():8,.0f} ± {NORMAL_99 * values.std(ddof=1) / np.sqrt(len(values)):.0f}"


def relative(copied: Runs, honest: Runs) -> str:
    """The relative gain with its interval, by the delta method."""
    ratio = copied.mean() / honest.mean()
    error = NORMAL_99 * (copied - ratio * honest).std(ddof=1) / honest.mean() / np.sqrt(len(honest))
    return f"{100 * (ratio - 1):+.1f} ± {100 * error:.1f} %"


def ignored(here: cp.Market) -> tuple[cp.Market, float]:
    """One market for all segments, and what it loses because the best item differs between them."""
    one = here.pooled()
    best = sum(own.horizon * expected_best(own) for own in here.by_segment.values())
    return one, best - one.horizon * expected_best(one)


def main(most: int) -> None:
    """Print a line for each mechanism."""
    at_random, fixed = market("at-random"), market("at-horizon")
    width = cp.rule("steady-kl-ucb", horizon=HORIZON, constant=3 / math.log(HORIZON))  # n kl(mean, index) = 3
    steady = cp.bandit(width, name="KL-UCB")
    rows = {
        "index on slots (12, 1.5), random ends": (at_random, cp.mechanism("reservoir-index", draws=12, constant=1.5)),
        "index on slots, tuned, random ends": (at_random, cp.mechanism("reservoir-index", market=at_random)),
        "KL-UCB (c = 3), fixed end": (fixed, steady),
    }
    for name, (here, made) in rows.items():
        runs = most if made.arm.draws else most // 2  # of all arms, it is slow
        regret, honest = played(here, made, {}, runs)
        gains = [
            f"{words} {relative(played(here, made, {'a': own}, runs)[1], honest)}" for words, own in COPIES.items()
        ]
        print(f"{name:40} regret {interval(regret)}; {'; '.join(gains)}", flush=True)
    one, lost = ignored(at_random)
    made = cp.mechanism("reservoir-index", draws=12, constant=2.0)
    regret, words = played(one, made, {}, 4 * most)[0], "index on slots (12, 2), one market for all"
    print(f"{words:40} regret {interval(regret + lost)}, of it {lost:,.0f} by segments")


if __name__ == "__main__":
    if sys.argv[1:] == ["recommend"]:
        print(cp.recommend(market("at-horizon")))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else RUNS)
