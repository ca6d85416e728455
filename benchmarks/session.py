"""The online session: decisions per second, and that a decision's cost does not grow with agents or arms.

Run with `make bench`. Ratios are measured against ourselves in the same run; absolute times are for orientation.
"""

from __future__ import annotations

import time

import cloneproof as cp
from cloneproof.cli.output import new_table, print_table


def seconds_per_pair(agents: int, arms: int, pairs: int, warm_up: int, m: int, trial: int) -> float:
    """Mean seconds of a decide and its reward, after a warm-up that is not timed."""
    live = cp.session(
        cp.mechanism("h-etc-r", agent_rounds=trial, arm_rounds=m),
        {f"agent {number}": arms for number in range(agents)},
        horizon=pairs + warm_up,
    )
    for _ in range(warm_up):
        live.reward(live.decide().id, 1.0)
    start = time.perf_counter()
    for _ in range(pairs):
        live.reward(live.decide().id, 1.0)
    return (time.perf_counter() - start) / pairs


def main() -> None:
    """Print both tables."""
    table = new_table("A million decide + reward pairs of h-etc-r, exploration included", "agents", "arms", "s", "bar")
    for agents, arms in ((100, 10),):
        cost = seconds_per_pair(agents, arms, 10**6, 0, m=40, trial=800)
        table.add_row(str(agents), str(arms), f"{cost * 1e6:.2f}", "12")
    print_table(table)

    table = new_table("One pair once exploration is over", "agents", "arms", "microseconds", "ratio to the first")
    base = 0.0
    for agents, arms in ((2, 2), (10, 10), (100, 10), (1000, 10), (100, 1000)):
        warm_up = agents * arms + arms + 10  # m = 1, M = arms: trial, then the award's own exploration
        cost = min(seconds_per_pair(agents, arms, 50_000, warm_up, m=1, trial=arms) for _ in range(3))
        base = base or cost
        table.add_row(str(agents), str(arms), f"{cost * 1e6:.2f}", f"{cost / base:.2f}")
    print_table(table)


if __name__ == "__main__":
    main()
