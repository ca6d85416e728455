"""Sampling side by side with others on 10 Bernoulli arms over 10,000 rounds, one core, all in this run.

Run with `make bench` or `python benchmarks/monte_carlo.py`. Ratios are pulls per second of processor time, ours over
theirs, timed in turns; the other loops run fewer pulls, being slow.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.runs.kernel import Runs
from tables import new_table, print_table
from textbook import numpy_ucb1, textbook_epsilon_greedy, textbook_thompson, textbook_ucb1

MEANS = np.linspace(0.1, 0.9, 10)
HORIZON = 10_000


def rate(work, pulls: int, repeats: int = 3) -> float:
    """Pulls per second, the best of some repeats after a first one that compiles."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return pulls / best


def job(name: str, copies: dict[str, tuple[int, ...]] | None = None, **options) -> Runs:
    market = cp.Market([cp.Agent(f"{mean:.2f}", 1, cp.Point(mean)) for mean in MEANS], horizon=HORIZON)
    return runs_of(market, cp.mechanism(name, **options), full_copies(market.agents, copies))


def in_turns(ours, theirs, repeats: int = 5) -> tuple[float, float]:
    """The least seconds of processor time of each, one after the other again and again."""
    best = [float("inf"), float("inf")]
    for turn in range(repeats + 1):  # the first one compiles
        for k, work in enumerate((ours, theirs)):
            start = time.process_time()
            work()
            best[k] = min(best[k], time.process_time() - start) if turn else best[k]
    return best[0], best[1]


def beside_textbook() -> None:
    """Every stepping kernel beside the textbook's: millions of rounds a second, and the ratio."""
    table = new_table("kernels, 10 arms, T = 10,000", "kernel", "ours, million/s", "textbook", "ratio", "bar")
    for name, textbook, runs, few, bar in (
        ("ucb1", textbook_ucb1, 400, 80, "3"),
        ("thompson", textbook_thompson, 4, 2, "2"),
        ("epsilon-greedy", textbook_epsilon_greedy, 100, 40, "1.3"),
        ("h-ucb", textbook_ucb1, 50, 20, ""),
        ("kl-ucb", textbook_ucb1, 2, 20, ""),
    ):
        work = job(name)
        ours, theirs = in_turns(
            lambda work=work, runs=runs: work(0, runs),
            lambda textbook=textbook, few=few: [textbook(MEANS, HORIZON, seed) for seed in range(few)],
        )
        speeds = runs * HORIZON / ours / 1e6, few * HORIZON / theirs / 1e6
        table.add_row(name, f"{speeds[0]:.2f}", f"{speeds[1]:.2f}", f"{speeds[0] / speeds[1]:.1f}", bar)
    print_table(table)


def river_loop(rounds: int) -> None:
    from river import bandit

    policy, rng = bandit.UCB(delta=1.0, seed=1), np.random.default_rng(0)
    arms = list(range(len(MEANS)))
    for _ in range(rounds):
        arm = policy.pull(arms)
        policy.update(arm, float(rng.random() < MEANS[arm]))


def mabwiser_loop(rounds: int) -> None:
    from mabwiser.mab import MAB, LearningPolicy

    rng, arms = np.random.default_rng(0), list(range(len(MEANS)))
    policy = MAB(arms, LearningPolicy.UCB1(alpha=1.0))
    policy.fit(arms, [float(rng.random() < mean) for mean in MEANS])
    for _ in range(rounds):
        arm = policy.predict()
        policy.partial_fit([arm], [float(rng.random() < MEANS[arm])])


def many_arms() -> float:
    """H-UCB, five agents, three of them with 3,000 arms, the best included: pulls per second."""
    market = cp.Market([cp.Agent(f"{mean}", 1, cp.Point(mean)) for mean in (0.9, 0.8, 0.7, 0.6, 0.5)], horizon=100_000)
    copies = full_copies(market.agents, {"0.9": (3000,), "0.7": (3000,), "0.5": (3000,)})
    work = runs_of(market, cp.mechanism("h-ucb"), copies)
    return rate(lambda: work(0, 2), 2 * market.horizon, repeats=1)


def horizons() -> float:
    """The time of h-etc-r at T = 10^9 over that at T = 10^5, same m and M."""
    seconds = []
    for horizon in (10**5, 10**9):
        market = cp.Market([cp.Agent(name, 2, cp.Uniform()) for name in "abcde"], horizon=horizon)
        work = runs_of(
            market, cp.mechanism("h-etc-r", agent_rounds=800, arm_rounds=100), full_copies(market.agents, None)
        )
        seconds.append(1 / rate(lambda work=work: work(0, 20_000), 1))
    return seconds[1] / seconds[0]


def main() -> None:
    """Print the tables."""
    beside_textbook()
    ours = job("ucb1")
    runs = 200
    speed = rate(lambda: ours(0, runs), runs * HORIZON)
    textbook = rate(lambda: [textbook_ucb1(MEANS, HORIZON, seed) for seed in range(20)], 20 * HORIZON)
    table = new_table(
        f"UCB1, 10 arms, T = 10,000: ours ({ours.kernel.name} kernel) {speed / 1e6:.1f} million pulls/s",
        "side by side", "theirs, pulls/s", "ratio", "bar",
    )  # fmt: skip
    rows = [
        ("a textbook Numba kernel", textbook, "3"),
        ("NumPy over 1,000 runs", rate(lambda: numpy_ucb1(MEANS, 1000, 1000, 0), 10**6, 1), "8"),
        ("river's bandit.UCB", rate(lambda: river_loop(3000), 3000, 1), "700"),
        ("MABWiser's UCB1", rate(lambda: mabwiser_loop(300), 300, 1), "8,000"),
    ]
    for label, theirs, bar in rows:
        table.add_row(label, f"{theirs:,.0f}", f"{speed / theirs:,.1f}", bar)

    starts = range(0, 16 * runs, runs)  # long enough for two threads to show what they can do

    def in_turn() -> None:
        for first in starts:
            ours(first, runs)

    def side_by_side() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda first: ours(first, runs), starts))

    table.add_row("one thread, ours (two against it)", "", f"{rate(side_by_side, 1) / rate(in_turn, 1):.2f}", "1.8")
    table.add_row("textbook on 10 arms, ours H-UCB on 9,002 arms", "", f"{many_arms() / textbook:.2f}", "0.07")
    table.add_row("h-etc-r at T = 10^5, at 10^9 (time)", "", f"{horizons():.2f}", "1.1")
    print_table(table)


if __name__ == "__main__":
    main()
