"""What a run costs on one core of this machine, and its growth with arms, agents and horizon.

Run with `make bench`. Milliseconds of processor time a run, so that other work on the machine matters little.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.runs.kernel import Runs
from tables import new_table, print_table

SECONDS = 0.25
MECHANISMS = {"ucb1": {}, "h-ucb": {}, "thompson": {}, "h-etc-r": {"agent_rounds": 800, "arm_rounds": 100}}
TOO_DEAR = 2_500_000  # arms x rounds of a run of Thompson sampling that nobody waits for


def milliseconds(job: Runs) -> float:
    """Of a run, over enough of them to be measured, after a first one that compiles."""
    job(0, 1)
    runs, took = 1, 0.0
    while True:
        begun = time.process_time()
        job(1, runs)
        took = time.process_time() - begun
        if took >= SECONDS:
            return 1000 * took / runs
        runs = max(runs + 1, int(runs * min(8.0, 1.3 * SECONDS / max(took, 1e-6))))


def market(agents: int, horizon: int) -> cp.Market:
    means = [0.9 - 0.4 * number / max(1, agents - 1) for number in range(agents)]
    return cp.Market([cp.Agent(f"a{number}", 1, cp.Point(mean)) for number, mean in enumerate(means)], horizon=horizon)


def growth(what: str, numbers: Sequence[int]) -> None:
    table = new_table(f"milliseconds a run by {what}", "mechanism", *map(str, numbers))
    for name, options in MECHANISMS.items():
        cells = []
        for number in numbers:
            sized = market(number if what == "agents" else 5, number if what == "horizon" else 20_000)
            copies = full_copies(sized.agents, {"a4": (number,)} if what == "copies of one agent" else None)
            arms = sum(sum(each) for each in copies.values())
            if name == "thompson" and arms * sized.horizon > TOO_DEAR:
                cells.append("-")
            else:
                cells.append(f"{milliseconds(runs_of(sized, cp.mechanism(name, **options), copies)):.3g}")
        table.add_row(name, *cells)
    print_table(table)


if __name__ == "__main__":
    growth("copies of one agent", (1, 10, 100, 1000))
    growth("agents", (2, 5, 10, 20, 50))
    growth("horizon", (10_000, 100_000, 1_000_000))
