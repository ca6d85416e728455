"""Can a creator gain by uploading the same clip many times? Every mechanism, audited.

Mechanisms that explore and then commit are audited exactly. The others are sampled in pairs of runs for a few seconds
each, and a gain of half a percent counts as none; where that is too little to tell, the verdict is `undecided`, and the
lines below the table say how far it got. Run with `make demo`, or with the seconds for a sampled mechanism.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import cloneproof as cp
from cloneproof.cli.output import new_table, print_table, progress_bar
from cloneproof.mechanisms import CATALOGUE

MARKET = Path(__file__).with_name("creators.toml")
TOLERANCE = 0.005
REGRET_RUNS = 20
COMPILERS = ("ucb1", "thompson")  # one of each kernel first, so that two processes do not compile the same one
ORDER = sorted(CATALOGUE, key=lambda name: (name not in COMPILERS, name in ("h-ucb", "rh-ucb", "s-ucb")))


class Row(NamedTuple):
    """A line of the table, and what there is to say below it."""

    cells: tuple[str, ...]
    remark: str


def audited(name: str, budget: float) -> Row:
    """One mechanism with its theorem's parameters: the audit of all agents, and the regret if all are honest."""
    start = time.perf_counter()
    market = cp.load_market(MARKET)
    mechanism = cp.mechanism(name, market=market)
    exact, regret = honest_regret(market, mechanism)
    if not exact:
        cp.gain(market, mechanism, "ana", (2, 1), runs=1)  # compiles, on the first day, before the clock is started
    try:
        found = cp.audit(market, mechanism, tolerance=TOLERANCE, budget_seconds=None if exact else budget)
    except cp.errors.EngineError as refusal:
        seconds = f"{time.perf_counter() - start:.1f} s"
        return Row((name, "not audited", "", "", regret, seconds), f"{name}: {refusal}")
    worst = found.worst
    cells = (
        name,
        found.verdict,
        f"{100 * worst.relative_gain:+.1f}",
        f"{worst.agent} {','.join(map(str, worst.copies))}",
        regret,
        f"{time.perf_counter() - start:.1f} s",
    )
    gain = f"{worst.gain.value:+.1f} ± {worst.gain.error:.2g}"
    return Row(cells, "" if exact else f"{name}: {len(found.tried)} deviations sampled, this one's gain is {gain}")


def honest_regret(market: cp.Market, mechanism: cp.Mechanism) -> tuple[bool, str]:
    """Whether the closed form applies, and the regret by it or by a few runs."""
    try:
        return True, f"{cp.evaluate(market, mechanism, engine='closed-form').regret.value:.0f}"
    except cp.errors.EngineError:
        runs = list(cp.simulate_runs(market, mechanism, None, REGRET_RUNS, seed=0))
        regret = cp.summarise(runs).regret
        return False, f"{regret.mean:.0f} ± {2 * regret.standard_error:.0f}"


def main(budget: float = 9.0) -> None:
    """Print the table."""
    start = time.perf_counter()
    rows: dict[str, Row] = {}
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool, progress_bar() as bar:
        jobs = {pool.submit(audited, name, budget): name for name in ORDER}
        task = bar.add_task("auditing", total=len(jobs))
        for job in as_completed(jobs):
            rows[jobs[job]] = job.result()
            bar.advance(task)
    columns = ("mechanism", "verdict", "gain, %", "with copies", "regret", "time")
    table = new_table(f"{MARKET.name}: the best attack by copies on each mechanism", *columns, right=2)
    for name in CATALOGUE:
        table.add_row(*rows[name].cells)
    print_table(table)
    print(f"Gains of up to {TOLERANCE:.1%} count as none. Sampled mechanisms had {budget:g} s each:")
    for name in CATALOGUE:
        if rows[name].remark:
            print("  " + rows[name].remark[:96])
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*(float(argument) for argument in sys.argv[1:]))
