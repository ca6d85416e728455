"""Whether budgets are kept: audits, gains and evaluations of all kinds, each in a process of its own.

    python benchmarks/budgets.py                 # 30 jobs with 5 s each
    python benchmarks/budgets.py --budget 20     # the same with 20 s
    python benchmarks/budgets.py --only mabwiser

Where a job needs compiled code, one run goes before it in its process: that is the time of compiling (or of loading
what was compiled before, or another package), which is told apart. A budget is kept if a job ends within 2 s after it.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing as mp
import sys
import time
from collections.abc import Callable
from typing import Any

import cloneproof as cp

LATE = 2.0  # seconds after a budget
COIN = cp.Discrete([0.2, 0.5, 0.8], [0.3, 0.4, 0.3])


class Slow:
    """A policy that takes its time."""

    def __init__(self, view) -> None:
        self.arms, self.round = view.arms, 0

    def select(self) -> int:
        """In turn, after a nap."""
        time.sleep(0.002)
        self.round += 1
        return self.arms[self.round % len(self.arms)]

    def update(self, arm: int, reward: float) -> None:
        """Nothing is learned."""


def crowd(horizon: int, agents: int = 20) -> cp.Market:
    """Many agents with two originals each."""
    return cp.Market([cp.Agent(f"a{i}", 2, COIN) for i in range(agents)], horizon=horizon)


def few(horizon: int, prior: Any = COIN, originals: int = 2) -> cp.Market:
    """Three agents."""
    return cp.Market([cp.Agent(name, originals, prior) for name in ("ana", "bo", "cy")], horizon=horizon)


def sampled(horizon: int) -> cp.Market:
    """Two agents with one original each, Beta priors."""
    return cp.Market([cp.Agent("ana", 1, cp.Beta(2, 3)), cp.Agent("bo", 1, cp.Beta(3, 2))], horizon=horizon)


def mabwiser() -> cp.BlackBox:
    """UCB1 of MABWiser."""
    from mabwiser.mab import LearningPolicy

    return cp.adapters.mabwiser(LearningPolicy.UCB1(alpha=1))


def river() -> cp.BlackBox:
    """Thompson sampling of river."""
    from river import bandit, proba

    return cp.adapters.river(bandit.ThompsonSampling(proba.Beta(), seed=1))


def audit(market: cp.Market, name: str, **options: Any) -> Callable[[float], Any]:
    """An audit by name, the parameters from the theorem."""
    return lambda seconds: cp.audit(
        market, cp.mechanism(name, market=market), search=cp.Search(seconds=seconds), **options
    )


def by_hand(market: cp.Market, name: str, numbers: dict[str, Any], **options: Any) -> Callable[[float], Any]:
    """An audit with parameters of our own."""
    return lambda seconds: cp.audit(market, cp.mechanism(name, **numbers), search=cp.Search(seconds=seconds), **options)


def evaluation(market: cp.Market, name: str, **options: Any) -> Callable[[float], Any]:
    """An evaluation."""
    return lambda seconds: cp.evaluate(
        market, cp.mechanism(name, market=market), search=cp.Search(seconds=seconds), **options
    )


ETC = {"agent_rounds": 400, "arm_rounds": 60}
HOLD = {"arm_rounds": 60, "score_rounds": 200, "max_arms": 6}
JOBS: dict[str, Callable[[float], Any]] = {
    "audit, 20 agents, etc, T = 2e5": audit(crowd(200_000), "etc"),
    "audit, 20 agents, h-etc-r, T = 2e5": by_hand(crowd(200_000), "h-etc-r", ETC),
    "audit, 20 agents, holdout-h-etc, T = 2e5": by_hand(crowd(200_000), "holdout-h-etc", HOLD),
    "audit, 20 agents, ucb1, T = 2e5": audit(crowd(200_000), "ucb1"),
    "audit, 20 agents, h-ucb, T = 2e5": audit(crowd(200_000), "h-ucb"),
    "audit, 20 agents, thompson, T = 2e5": audit(crowd(200_000), "thompson"),
    "audit, 20 agents, prior-independent-etc": audit(crowd(200_000), "prior-independent-etc"),
    "audit, Beta priors, h-ucb, T = 200": audit(few(200, cp.Beta(2, 3)), "h-ucb"),
    "audit, Beta priors, h-etc-r, T = 4000": by_hand(few(4000, cp.Beta(2, 3)), "h-etc-r", ETC),
    "audit, Beta priors, etc, T = 1e5": by_hand(few(100_000, cp.Beta(2, 3)), "etc", {"arm_rounds": 300}),
    "audit, rh-ucb, T = 92, 10 arms": by_hand(few(92, COIN, 3), "rh-ucb", {"sample_factor": 0.5}),
    "audit, T = 1e6, ucb1": audit(few(10**6), "ucb1"),
    "audit, T = 1e6, kl-ucb": audit(few(10**6), "kl-ucb"),
    "audit, T = 1e6, epsilon-greedy": audit(few(10**6), "epsilon-greedy"),
    "audit, T = 1e6, holdout-kl-ucb": by_hand(
        few(10**6), "holdout-kl-ucb", {"arm_rounds": 60, "max_arms": 6, "horizon": 10**6}
    ),
    "audit, any opponents, h-etc-r": by_hand(few(20_000), "h-etc-r", ETC, opponents="any"),
    "audit, any opponents, 20 agents, holdout": by_hand(crowd(200_000), "holdout-h-etc", HOLD, opponents="any"),
    "audit, any opponents, contest": by_hand(
        few(10**5), "holdout-kl-ucb", {"arm_rounds": 60, "max_arms": 6, "horizon": 10**5}, opponents="any"
    ),
    "audit, withhold, split, informed, etc": by_hand(
        few(3000), "h-etc-r", ETC, also=("withholding", "splitting", "informed", "copy-cost")
    ),
    "audit, withhold, split, ucb1, T = 2e4": audit(few(20_000), "ucb1", also=("withholding", "splitting")),
    "audit, horizons 1:400, h-ucb": audit(few(400, cp.Discrete([0, 1], [0.5, 0.5])), "h-ucb", horizons="1:400"),
    "audit, mabwiser, T = 2000": lambda seconds: cp.audit(few(2000), mabwiser(), search=cp.Search(seconds=seconds)),
    "audit, river, T = 2000": lambda seconds: cp.audit(sampled(2000), river(), search=cp.Search(seconds=seconds)),
    "audit, slow black box": lambda seconds: cp.audit(few(500), cp.BlackBox(Slow), search=cp.Search(seconds=seconds)),
    "gain, mabwiser, T = 2000": lambda seconds: cp.gain(
        few(2000), mabwiser(), "ana", (4, 4), search=cp.Search(seconds=seconds), stop_when_decided=False
    ),
    "gain, slow black box": lambda seconds: cp.gain(
        few(500), cp.BlackBox(Slow), "ana", (2, 1), search=cp.Search(seconds=seconds)
    ),
    "gain, thompson, T = 1e6": lambda seconds: cp.gain(
        few(10**6), cp.mechanism("thompson"), "ana", (8, 8), search=cp.Search(seconds=seconds), stop_when_decided=False
    ),
    "evaluate, auto, h-ucb, T = 150": evaluation(few(150), "h-ucb"),
    "evaluate, auto, balls, 20 agents": lambda seconds: cp.evaluate(
        crowd(200_000), cp.mechanism("h-etc-r", **ETC), arithmetic="ball", search=cp.Search(seconds=seconds)
    ),
    "evaluate, thompson, 20 agents, T = 1e6": evaluation(crowd(10**6), "thompson"),
}
WARM: dict[str, cp.Mechanism] = {
    "ucb1": cp.mechanism("ucb1"), "h-ucb": cp.mechanism("h-ucb"), "thompson": cp.mechanism("thompson"),
    "epsilon-greedy": cp.mechanism("epsilon-greedy"), "kl-ucb": cp.mechanism("kl-ucb"),
    "etc": cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2), "prior": cp.mechanism("prior-independent-etc"),
}  # fmt: skip


def run(name: str, budget: float, line: Any) -> None:
    """One job, in its process."""
    begun = time.perf_counter()
    for word in ("mabwiser", "river"):
        if word in name:
            importlib.import_module("mabwiser.mab" if word == "mabwiser" else "river.bandit")
    for word, made in WARM.items():
        if word in name:
            cp.evaluate(few(50), made, engine="monte-carlo", search=cp.Search(runs=1))
    compiled = time.perf_counter() - begun
    begun = time.perf_counter()
    try:
        result = JOBS[name](budget)
        found = getattr(result, "verdict", None) or getattr(result, "decided", None) or result.engine
    except cp.errors.CloneproofError as refusal:
        found = f"refused: {refusal}"
    line.send((time.perf_counter() - begun, compiled, found))


def main() -> None:
    """Print a line for each job, and how many ended late."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=5.0)
    parser.add_argument("--only", default="", help="jobs whose name has this word")
    asked = parser.parse_args()
    context, late = mp.get_context("spawn"), 0
    print(f"{'job':44} {'budget':>6} {'took':>6} {'compiling':>9}  outcome")
    for name in (name for name in JOBS if asked.only in name):
        ours, theirs = context.Pipe()
        process = context.Process(target=run, args=(name, asked.budget, theirs))
        process.start()
        waiting = 6 * asked.budget + 60
        seconds, compiled, found = ours.recv() if ours.poll(waiting) else (waiting, 0.0, "killed")
        process.kill()
        process.join()
        kept = seconds <= asked.budget + LATE
        late += not kept
        mark = "" if kept else "  LATE"
        print(f"{name:44} {asked.budget:6g} {seconds:6.1f} {compiled:9.1f}  {found[:80]}{mark}", flush=True)
    print(f"{late} jobs ended more than {LATE:g} s after their budget.")
    sys.exit(1 if late else 0)


if __name__ == "__main__":
    main()
