"""The five experiments of Shin, Lee and Ok (2022), fully informed agents, as a table.

T = 100,000, 100 repetitions (`python studies/shin_2022.py 10000 20` changes both), S-UCB's stratified by which arms it
draws. `cloneproof reproduce --out DIR
--only shin-2022` checks them against what was published, draws them, and adds agents who do not know their means.
"""

from __future__ import annotations

import sys
import time

import cloneproof as cp
from cloneproof.cli.display.output import new_table, print_table, progress_bar
from cloneproof.reproduce.evidence.shin_2022_experiments import NAMES, experiments


def main(horizon: int = 100_000, runs: int = 100) -> None:
    """Print the table, in thousands, with standard errors."""
    start = time.perf_counter()
    rows = experiments(horizon)
    table = new_table(f"Shin, Lee and Ok 2022: thousands, {runs} runs of {horizon} rounds", "figure", *NAMES)
    with progress_bar() as bar:
        task = bar.add_task("sampling", total=len(rows) * len(NAMES))
        for experiment in rows:
            cells = []
            for name in NAMES:
                bar.update(task, description=f"figure {experiment.figure}, {name}")
                shown = experiment.mean(name, runs, 0, cp.mechanism)
                cells.append(f"{shown.mean / 1000:.2f} ± {shown.standard_error / 1000:.2f}")
                bar.advance(task)
            table.add_row(f"{experiment.figure}: {experiment.label}", *cells)
    print_table(table)
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
