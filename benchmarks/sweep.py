"""Sweeps against a plain loop, throughput by workers, and the store at 100,000 chunks, all in this run.

Run with `make bench`. Other work on the machine makes wall-clock times unfair, so processor time stands beside them:
`busy` is the part of the workers' time in which they computed; the driver and Dask are to blame for the rest.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

import cloneproof as cp
from cloneproof._sources import code_version
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import outcomes
from cloneproof.market import full_copies
from cloneproof.sweeps.cluster import cluster
from cloneproof.sweeps.grid import points_of
from cloneproof.sweeps.store import open_store, read_index, store_status
from cloneproof.sweeps.sweep import Sizes, parts_by_key
from tables import new_table, print_table

MARKET = cp.Market([cp.Agent(f"{mean}", 1, cp.Point(mean)) for mean in (0.9, 0.8, 0.7, 0.6, 0.5)], horizon=100_000)
CHUNK_SECONDS, CHUNKS = 5.0, 3
POINTS = 200
WORKERS = [(f"this machine, {count} threads", count, "") for count in (1, 2, 4)]
WORKERS += [(f"Dask, {count} workers", count, f"local:{count}") for count in (1, 2, 4)]


def per_run(job: Job) -> float:
    """Processor seconds of a run, after a first one that compiles."""
    outcomes(job, 0, 1)
    begun = time.process_time()
    outcomes(job, 0, 50)
    return (time.process_time() - begun) / 50


def overhead(folder: Path) -> tuple[float, float]:
    """A sweep in chunks of 5 s over a plain loop over the same runs: by the clock and by the processor."""
    mechanism = cp.mechanism("ucb1")
    job = Job(MARKET, mechanism, full_copies(MARKET.agents, None))
    size = int(CHUNK_SECONDS / per_run(job))
    runs = CHUNKS * size
    clocks = []
    for work in (
        lambda: [outcomes(job, number * size, size) for number in range(CHUNKS)],
        lambda: cp.sweep(
            {"market": MARKET, "mechanism": mechanism, "engine": "monte-carlo", "runs": runs},
            folder,
            workers=1,
            sizes=Sizes(CHUNK_SECONDS),
        ),
    ):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        clocks.append((time.perf_counter() - wall, time.process_time() - processor))
    return clocks[1][0] / clocks[0][0], clocks[1][1] / clocks[0][1]


def throughput(folder: Path, count: int, address: str) -> tuple[float, float]:
    """200 points on so many threads, or workers of a cluster: runs a second, and the part of the time that was busy."""
    grid = {"market": MARKET, "mechanism": "h-ucb", "engine": "monte-carlo", "runs": 120}
    first = grid | {"seed": range(POINTS, POINTS + 2 * count)}  # for each worker something to load or to compile
    with cluster(address) if address else nullcontext() as executor:
        how = {"executor": executor, "workers": count}
        cp.sweep(first, folder / f"first {address or count}", **how)
        done = cp.sweep(grid | {"seed": range(POINTS)}, folder / (address or str(count)), **how).summary
    return done.runs / done.seconds, done.busy_seconds / done.seconds / count


def many_chunks(folder: Path, count: int = 100_000) -> tuple[float, float, float]:
    """Planned, stored and listed with every checksum: seconds, processor seconds, and MB of memory in all."""
    wall, processor = time.perf_counter(), time.process_time()
    grid = {
        "market": MARKET,
        "mechanism": ["ucb1", "h-ucb", "rh-ucb", "s-ucb"],
        "copies": [{"0.5": (number,)} for number in range(1, 26)],
        "horizon": [10_000 * number for number in range(1, 11)],
        "seed": range(count // 1000),
        "runs": 100,
        "engine": "monte-carlo",
    }
    parts, needs = parts_by_key(points_of(grid), code_version())
    contents = np.random.default_rng(0).random((100, 11)).tobytes()
    with open_store(folder, code_version()) as store:
        index, _ = read_index(store, {key: part.columns for key, part in parts.items()})
        for chunk in index.missing(needs):
            store.write(chunk, contents)
    assert store_status(folder).chunks == count
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return time.perf_counter() - wall, time.process_time() - processor, memory


def main() -> None:
    """Print the table."""
    table = new_table("Sweeps", "what", "by the clock", "by the processor", "bar")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wall, processor, memory = many_chunks(folder / "many")
        table.add_row("100,000 chunks planned, stored, listed", f"{wall:.0f} s", f"{processor:.0f} s", "60 s")
        table.add_row("memory for that", f"{memory:.0f} MB", "", "1000 MB")
        wall, processor = overhead(folder / "overhead")
        table.add_row("sweep / plain loop, chunks of 5 s", f"{wall:.3f}", f"{processor:.3f}", "1.03")
        print_table(table)
        table = new_table("200 points of 120 runs, by workers", "where", "runs/s", "times one thread", "busy")
        rates = []
        for where, count, address in WORKERS:
            rate, busy = throughput(folder, count, address)
            rates.append(rate)
            table.add_row(where, f"{rate:.0f}", f"{rate / rates[0]:.2f}", f"{busy:.0%}")
        table.caption = f"load of the machine meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        print_table(table)


if __name__ == "__main__":
    main()
