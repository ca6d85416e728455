"""What does Ana earn if she uploads her first clip three times? Every mechanism, honest and copied.

The two worlds share their randomness (the same drawn means, the same reward tapes), so their difference is known better
than either payoff. Run with `make demo`; the numbers are means of runs with standard errors.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import cloneproof as cp
from cloneproof.cli.output import new_table, print_table, progress_bar
from cloneproof.engines import Run, SampleMean
from cloneproof.mechanisms import CATALOGUE

MARKET = Path(__file__).with_name("creators.toml")
COPIED = {"ana": (3, 1)}


def both_worlds(name: str, runs: int, seed: int = 0) -> tuple[list[Run], list[Run]]:
    """The runs of one mechanism, Ana honest and Ana copying, on the same randomness."""
    market = cp.load_market(MARKET)
    mechanism = cp.mechanism(name, market=market)
    honest = list(cp.simulate_runs(market, mechanism, None, runs, seed))
    return honest, list(cp.simulate_runs(market, mechanism, COPIED, runs, seed))


def main(runs: int = 20) -> None:
    """Print the table."""
    start = time.perf_counter()
    results: dict[str, tuple[list[Run], list[Run]]] = {}
    with ProcessPoolExecutor() as pool, progress_bar() as bar:
        jobs = {pool.submit(both_worlds, name, runs): name for name in CATALOGUE}
        task = bar.add_task("simulating", total=len(jobs))
        for job in as_completed(jobs):
            results[jobs[job]] = job.result()
            bar.advance(task)
    table = new_table(
        f"{MARKET.name}: Ana honest (1,1) against three copies of her first clip (3,1); {runs} paired runs",
        "mechanism", "honest", "copied", "gain", "%", "regret", "if copied",
    )  # fmt: skip
    for name in CATALOGUE:
        honest, copied = results[name]
        gain = SampleMean.of([b.payoff["ana"] - a.payoff["ana"] for a, b in zip(honest, copied, strict=True)])
        before, after = cp.summarise(honest), cp.summarise(copied)
        table.add_row(
            name,
            f"{before.payoff['ana'].mean:.1f}",
            f"{after.payoff['ana'].mean:.1f}",
            f"{gain.mean:+.1f} ± {gain.standard_error:.1f}",
            f"{100 * gain.mean / before.payoff['ana'].mean:+.1f}",
            f"{before.regret.mean:.0f} ± {before.regret.standard_error:.0f}",
            f"{after.regret.mean:.0f} ± {after.regret.standard_error:.0f}",
        )
    print_table(table)
    print("Means of runs, ± one standard error. A gain within two or three of them says nothing.")
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
