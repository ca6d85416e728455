"""What copies earn on pages of ten, what mechanisms lose there, and how traffic is shared (docs/textbook/slates.md).

    python studies/slates.py table [PAGES] [RUNS]     # 16 sellers of 3 listings, Beta(3, 97), a page of ten
    python studies/slates.py figure FILE.png          # traffic by seller over the run, for one place and for ten
    python studies/slates.py speed                    # a decision for 100 providers of 3 items and ten places

In the table one seller registers each of its listings five times. Both worlds have the same means and tapes; the gain
is what the seller is served on average, relative to honesty. Regret is against the best slate of different sellers, as
a part of what that earns, if everybody is honest. Intervals are 2.58 standard errors.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.laws.best import best_round
from cloneproof.runs.kernel import Outcomes

SELLERS, LISTINGS, PRIOR, COPIES = 16, 3, cp.Beta(3, 97), 5
ATTENTION = (1.0, 0.63, 0.5, 0.43, 0.39, 0.36, 0.33, 0.32, 0.3, 0.29)  # about 1 / log2(1 + place)
PAGES, RUNS, SEED, NORMAL_99 = 200_000, 64, 42, 2.58
POINTS = 60  # of the figure's curves
SPEED_PAGES, SPEED_PROVIDERS = 300, 100


def market(pages: int, attention: tuple[float, ...] = ATTENTION) -> cp.Market:
    """Sellers with as many listings each."""
    agents = [cp.Agent(f"seller {k + 1}", LISTINGS, PRIOR) for k in range(SELLERS)]
    return cp.Market(agents, pages, positions=attention)


def played(here: cp.Market, made: cp.Mechanism, copies: int, runs: int) -> Outcomes:
    """Runs in which the first seller registers each listing so often, on all cores."""
    registered = {agent.name: (1,) * LISTINGS for agent in here.agents} | {"seller 1": (copies,) * LISTINGS}
    one = runs_of(here, made, registered, SEED)
    with ThreadPoolExecutor(cpu_count()) as pool:
        found = list(pool.map(lambda run: one(run, 1), range(runs)))
    return Outcomes(
        *(np.concatenate([getattr(each, name) for each in found]) for name in ("payoff", "regret", "served"))
    )


def table(pages: int, runs: int) -> None:
    """Print what five copies of everything gain, and the regret."""
    here = market(pages)
    best = pages * best_round([agent.priors for agent in here.agents], here.places)
    made = {
        f"{name}{', one place each' if each else ''}": cp.mechanism(name, one_place_each=each)
        for each in (False, True)
        for name in ("ucb1", "thompson", "kl-ucb")
    }
    ours = ("reservoir", "reservoir-streams")
    made |= {name: cp.mechanism(name, market=here) for name in ours}
    print(f"best slate: {best:,.0f} clicks in {pages:,} pages; {[(name, made[name].arm.options) for name in ours]}")
    for name, mechanism in made.items():
        several = runs if name not in ours else 30 * runs
        honest, copied = (played(here, mechanism, copies, several) for copies in (1, COPIES))
        paid, gain = honest.served[:, 0].mean(), copied.served[:, 0] - honest.served[:, 0]
        error = NORMAL_99 * gain.std(ddof=1) / np.sqrt(several) / paid
        lost, spread = honest.regret.mean() / best, NORMAL_99 * honest.regret.std(ddof=1) / np.sqrt(several) / best
        gained = f"gain {gain.mean() / paid:+7.1%} ± {error:5.1%}"
        print(f"{name:26} {gained}   lost {lost:6.1%} ± {spread:4.1%}   {several} runs", flush=True)


def figure(path: str) -> None:
    """Draw the share of traffic of each seller, by rank at the end, for one place and for ten."""
    import matplotlib.pyplot as plt

    plots, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, places in zip(axes, (ATTENTION[:1], ATTENTION), strict=True):
        here = market(10 * PAGES, places)
        made = cp.mechanism("reservoir", market=here)
        moments = np.unique(np.geomspace(1000, here.horizon, POINTS).astype(int))
        registered = {agent.name: (1,) * LISTINGS for agent in here.agents}
        pages = np.array([
            runs_of(here.with_horizon(int(t)), made, registered, SEED)(0, 1).rounds[0] for t in moments
        ])  # fmt: skip
        shares = np.diff(pages, axis=0, prepend=0.0) / np.diff(moments, prepend=0)[:, None]
        order = np.argsort(-pages[-1])
        colours = plt.get_cmap("tab20").colors
        axis.stackplot(moments, 100 * shares[:, order].T / shares.sum(axis=1), linewidth=0, colors=colours)
        axis.set(xscale="log", xlim=(moments[0], moments[-1]), ylim=(0, 100), xlabel="page views")
        axis.set_title("one place" if len(places) == 1 else "ten places, one a seller", fontsize=11)
    axes[0].set_ylabel("share of what is shown, %")
    plots.suptitle(f"Traffic of {SELLERS} sellers under the reservoir, one run (a colour is a seller)", fontsize=11)
    plots.tight_layout()
    plots.savefig(path, dpi=130)


def speed() -> None:
    """Print what a page of ten places costs a session, rewards included, in microseconds of one core."""
    numbers_of = {"reservoir": {"rounds": 200, "draws": 4}, "reservoir-streams": {"rotations": 8, "blocks": 50}}
    for name in ("reservoir", "reservoir-streams", "ucb1", "thompson", "kl-ucb"):
        numbers = numbers_of.get(name, {})
        arms = {f"p{k}": LISTINGS for k in range(SPEED_PROVIDERS)}
        live = cp.session(cp.mechanism(name, **numbers), arms, 10**6, positions=ATTENTION, history=False)
        start = time.process_time()
        for _ in range(SPEED_PAGES):
            for each in live.decide_slate():
                live.reward(each.id, 0.0)
        print(f"{name:10} {(time.process_time() - start) / SPEED_PAGES * 1e6:8,.0f} microseconds a page")


if __name__ == "__main__":
    asked, *rest = sys.argv[1:] or ["table"]
    if asked == "table":
        table(*(int(float(each)) for each in rest), *(PAGES, RUNS)[len(rest) :])
    elif asked == "figure":
        figure(*rest)
    else:
        speed()
