"""The exact engines against their bars. Each row is a fresh process, so nothing is warm but the imports.

Run with `make bench`. The bars are for two cores and 24 GiB.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import cloneproof as cp
from tables import new_table, print_table

BERN = cp.Discrete([0, 1], [0.5, 0.5])
WIDE = cp.Discrete([0.25, 0.75], [0.5, 0.5])


def h_etc_r(horizon: int = 10**6, copies: tuple[int, int] = (2, 1)) -> cp.results.Evaluation:
    market = cp.Market([cp.Agent("ana", 2, WIDE), cp.Agent("bo", 2, WIDE)], horizon=horizon)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=3717, arm_rounds=59)
    return cp.evaluate(market, mechanism, {"ana": copies}, engine="law")


def tree_h_ucb() -> object:
    market = cp.Market(
        [cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=2000, rewards="deterministic"
    )
    return cp.paper.evaluate_horizons(market, cp.mechanism("h-ucb"), range(1, 2001), {"ana": (1, 1)}, engine="tree")


def tree_ucb1() -> object:
    market = cp.Market([cp.Agent("ana", 3, WIDE)], horizon=30)
    return cp.paper.evaluate_horizons(market, cp.mechanism("ucb1"), range(1, 31), engine="tree")


def tree_ucb1_copied() -> object:
    market = cp.Market([cp.Agent("ana", 2, WIDE)], horizon=30)
    return cp.paper.evaluate_horizons(market, cp.mechanism("ucb1"), range(1, 31), {"ana": (2, 1)}, engine="tree")


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds and GiB of the whole process."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    unit = 2**30 if sys.platform == "darwin" else 2**20  # bytes there, KiB on Linux
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def at_a_trillion() -> object:
    return h_etc_r(10**12)


def sixty_copies() -> object:
    """The most copies whose exploration ends within the trial: the hardest joint law."""
    return h_etc_r(copies=(60, 1))


def thousand_copies() -> object:
    return h_etc_r(copies=(1000, 1))


ROWS: list[tuple[str, Callable[[], object], str]] = [
    ("h-etc-r, n = 2, l = 2, m = 59, M = 3717, T = 10^6, copies (2,1)", h_etc_r, "0.2 s"),
    ("the same at T = 10^12", at_a_trillion, "no more"),
    ("h-etc-r with 60 copies, explored to the end", sixty_copies, ""),
    ("h-etc-r with 1,000 copies of one arm", thousand_copies, "2 s"),
    ("tree: H-UCB, n = 2, deterministic, every T up to 2,000", tree_h_ucb, "10 s"),
    ("tree: UCB1, Bernoulli, 3 originals, every T up to 30", tree_ucb1, "1 s"),
    ("tree: UCB1, Bernoulli, copies (2,1), every T up to 30", tree_ucb1_copied, "1 s"),
]


def main() -> None:
    """Print the table. UCB1's bar includes 4 GiB of memory."""
    table = new_table("Exact engines", "work", "seconds", "peak GiB", "bar")
    for label, work, bar in ROWS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            seconds, peak = fresh.submit(measured, work).result()
        table.add_row(label, f"{seconds:.3f}", f"{peak:.2f}", bar)
    print_table(table)


if __name__ == "__main__":
    main()
