"""Sweeps against a plain loop, and throughput by workers, all in this run.

Run with `make bench`. Other work on the machine makes wall-clock times unfair, so processor time stands beside them.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import cloneproof as cp
from cloneproof.sweeps.sweep import cluster
from tables import new_table, print_table

MARKET = cp.Market([cp.Agent(f"{mean}", 1, cp.Point(mean)) for mean in (0.9, 0.8, 0.7, 0.6, 0.5)], horizon=100_000)
POINTS, RUNS = 200, 120
WORKERS = [(f"this machine, {count} processes", count, "") for count in (1, 2, 4)]
WORKERS += [(f"Dask, {count} workers", count, f"local:{count}") for count in (1, 2, 4)]
GRID = {"market": MARKET, "mechanism": "h-ucb", "engine": "runs", "runs": RUNS}


def overhead(folder: Path) -> tuple[float, float]:
    """A sweep over a plain loop over the same points: by the clock and by the processor."""
    mechanism, clocks = cp.mechanism("h-ucb"), []
    for work in (
        lambda: [
            cp.evaluate(MARKET, mechanism, engine="runs", threads=1, search=cp.Search(runs=RUNS, seed=seed))
            for seed in range(POINTS)
        ],
        lambda: cp.sweep(GRID | {"seed": range(POINTS)}, folder / "overhead", workers=1),
    ):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        clocks.append((time.perf_counter() - wall, time.process_time() - processor))
    return clocks[1][0] / clocks[0][0], clocks[1][1] / clocks[0][1]


def throughput(folder: Path, count: int, address: str) -> float:
    """Points a second on so many processes, or workers of a cluster."""
    first = GRID | {"seed": range(POINTS, POINTS + 2 * count)}  # for each worker something to load
    with cluster(address) if address else nullcontext() as executor:
        how = {"executor": executor, "workers": count}
        if executor is not None:
            cp.sweep(first, folder / f"first {count}", **how)
        done = cp.sweep(GRID | {"seed": range(POINTS)}, folder / f"{address or count}", **how).summary
    return done.points / done.seconds


def main() -> None:
    """Print the tables."""
    table = new_table("Sweeps", "what", "by the clock", "by the processor", "bar")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cp.sweep(GRID, folder / "compiled", workers=1)
        wall, processor = overhead(folder)
        table.add_row("sweep / plain loop", f"{wall:.3f}", f"{processor:.3f}", "1.1")
        print_table(table)
        table = new_table(f"{POINTS} points of {RUNS} runs, by workers", "where", "points/s", "times one process")
        rates = []
        for where, count, address in WORKERS:
            rates.append(throughput(folder, count, address))
            table.add_row(where, f"{rates[-1]:.0f}", f"{rates[-1] / rates[0]:.2f}")
        table.caption = f"load of the machine meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        print_table(table)


if __name__ == "__main__":
    main()
