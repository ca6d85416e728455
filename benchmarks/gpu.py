"""The kernels on a GPU: rounds per second, beside the CPU's of the same machine and beside JAX, bit for bit checked.

make bench-gpu                          # a short table, and benchmarks/results/gpu.json
python benchmarks/gpu.py --only ucb1    # one row of it, for a profiler

It exits with 1 if a row differs in any bit, or was not compared: a row that nobody looked at says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.runs.gpu.launch import card, gpu_outcomes
from cloneproof.runs.gpu.records import choice_of
from cloneproof.runs.kernel import Runs

MEANS = np.linspace(0.1, 0.9, 10)
HORIZON = 10_000
CORES = 2
CHECKED = 256  # runs of each row that are compared with the CPU's
SLOW_CHECKED = {"kl-ucb": 64}  # a core plays five of these a second
NOT_COMPARED = "not compared"


def ten_arms(name: str, **options) -> Runs:
    """Ten arms of as many agents."""
    market = cp.Market([cp.Agent(f"{mean:.2f}", 1, cp.Point(mean)) for mean in MEANS], horizon=HORIZON)
    return runs_of(market, cp.mechanism(name, **options), full_copies(market.agents, None))


def five_agents(name: str, **options) -> Runs:
    """Five agents of four arms."""
    grid = np.linspace(0.05, 0.95, 20).reshape(5, 4)
    agents = [cp.Agent(f"agent {i}", 4, [cp.Point(mean) for mean in row]) for i, row in enumerate(grid)]
    market = cp.Market(agents, horizon=HORIZON)
    return runs_of(market, cp.mechanism(name, **options), full_copies(market.agents, None))


def many_copies() -> Runs:
    """H-UCB over thousands of copies, in global memory; a short horizon, since a round takes a millisecond there."""
    market = cp.Market([cp.Agent(f"{mean}", 1, cp.Point(mean)) for mean in (0.9, 0.8, 0.7)], horizon=HORIZON // 5)
    return runs_of(market, cp.mechanism("h-ucb"), full_copies(market.agents, {"0.9": (1000,), "0.7": (1000,)}))


ROWS = {
    "ucb1": (lambda: ten_arms("ucb1"), 1 << 21),
    "h-ucb": (lambda: five_agents("h-ucb"), 1 << 19),
    "thompson": (lambda: ten_arms("thompson"), 1 << 18),
    "kl-ucb": (lambda: ten_arms("kl-ucb"), 1 << 17),
    "h-ucb, 2001 arms": (many_copies, 1 << 12),
}


class TimedCard:
    """The card, with the seconds of the kernel itself."""

    def __init__(self):
        self.card, self.seconds = card(), 0.0
        self.play = self.card.play
        self.card.play = self.timed

    def timed(self, choice, records, runs):
        begun = time.perf_counter()
        self.play(choice, records, runs)
        self.seconds = time.perf_counter() - begun


def on_card(timed: TimedCard, job: Runs, runs: int, repeats: int = 3) -> tuple[float, float]:
    """Rounds per second of the kernel, and from the job to payoffs and regrets in NumPy; the best of some repeats."""
    gpu_outcomes(job, 0, min(runs, 1 << 14))
    kernel = whole = float("inf")
    for repeat in range(repeats):
        begun = time.perf_counter()
        gpu_outcomes(job, repeat * runs, runs)
        whole = min(whole, time.perf_counter() - begun)
        kernel = min(kernel, timed.seconds)
    rounds = runs * job.job.market.horizon
    return rounds / kernel, rounds / whole


def on_cores(job: Runs, seconds: float = 1.0) -> float:
    """Rounds per second of the Numba kernel on two cores."""
    job(0, 2)
    begun = time.perf_counter()
    job(0, 8)
    runs = max(8, int(8 * seconds / max(time.perf_counter() - begun, 1e-9)))
    with ThreadPoolExecutor(CORES) as pool:
        begun = time.perf_counter()
        list(pool.map(lambda part: job(part * runs, runs), range(CORES)))
        return CORES * runs * job.job.market.horizon / (time.perf_counter() - begun)


def differences(job: Runs, runs: int, checked: int) -> int:
    """Runs whose payoffs or regret differ from the CPU's in any bit; they lie in the middle of a large launch."""
    begin = runs // 2
    mine, theirs = gpu_outcomes(job, 0, runs).rows, job(begin, checked).rows
    return int((mine[begin : begin + checked] != theirs).any(axis=1).sum())


def versions() -> dict[str, object]:
    """The card and the software."""
    import cupy

    found = {
        "date": time.strftime("%Y-%m-%d"), "card": card().name, "cuda": cupy.cuda.runtime.runtimeGetVersion(),
        "cupy": cupy.__version__, "numpy": np.__version__, "python": platform.python_version(),
        "cpu cores": os.cpu_count(), "cloneproof": cp.__version__,
    }  # fmt: skip
    for name in ("numba", "jax"):
        try:
            found[name] = __import__(name).__version__
        except ImportError:
            found[name] = "not installed"
    return found


def one_row(timed: TimedCard, name: str, results: dict, part: int = 1, check: bool = True) -> None:
    """Measure a row and enter it, what is known of it at once."""
    job, runs = ROWS[name][0](), ROWS[name][1] // part
    row = results.setdefault(name, {"runs": runs, "horizon": job.job.market.horizon, "choice": list(choice_of(job))})
    row["kernel"], row["whole"] = on_card(timed, job, runs)
    print(f"{name}: kernel {row['kernel']:.3g}, to NumPy {row['whole']:.3g} rounds a second", flush=True)
    if check:
        row["cpu"], checked = on_cores(job), SLOW_CHECKED.get(name, CHECKED)
        row["differences"], row["checked"] = differences(job, min(runs, 1 << 16), checked), checked
        print(f"{name}: two cores {row['cpu']:.3g}, {row['differences']} of {checked} runs differ", flush=True)


def audit_seconds(results: dict) -> None:
    """An audit of thompson on the market of the tutorial."""
    market = cp.load_market(Path(__file__).parent.parent / "examples" / "creators.toml")
    for device in ("gpu", "cpu"):
        begun = time.perf_counter()
        found = cp.audit(market, cp.mechanism("thompson"), search=cp.Search(seconds=20, device=device))
        seconds = time.perf_counter() - begun
        results[f"audit on {device}"] = {"seconds": seconds, "verdict": found.verdict}
        print(f"audit of thompson on {device}: {found.verdict} in {seconds:.2f} s", flush=True)


def jax_rate(results: dict) -> None:
    """UCB1 by JAX on the same card."""
    sys.path.insert(0, str(Path(__file__).parent))
    from jax_ucb1 import best_rate

    rate, which = best_rate(MEANS, HORIZON // 5)  # a round takes as long as any other
    results["jax ucb1"] = {"rate": rate, "which": which}


def attempt(what) -> None:
    """Go on with the rest if one part fails."""
    try:
        what()
    except Exception:
        traceback.print_exc()


def compared(row: dict) -> str:
    """How many of the runs that were looked at differ; or that nobody looked."""
    return f"{row['differences']} of {row['checked']}" if row.get("checked") else NOT_COMPARED


def table(results: dict) -> str:
    """What is to be shown, row by row; what has no number failed, and its traceback is above."""
    lines = [f"{'':24} {'kernel':>10} {'to NumPy':>10} {'two cores':>10} {'ratio':>7} {'differ':>13}"]
    for name in ROWS:
        row = results.get(name, {})
        kernel, whole, cpu = (row.get(key, float("nan")) for key in ("kernel", "whole", "cpu"))
        lines.append(f"{name:24} {kernel:10.3g} {whole:10.3g} {cpu:10.3g} {kernel / cpu:7.0f} {compared(row):>13}")
    jax, ours = (results.get(name, {}).get(key) for name, key in (("jax ucb1", "rate"), ("ucb1", "kernel")))
    told = f"{jax:10.3g}; ucb1 is {ours / jax:.1f} times that" if jax and ours else "not measured"
    lines.append(f"{'jax ucb1':24} {told}")
    for device in ("gpu", "cpu"):
        row = results.get(f"audit on {device}")
        told = f"{row['verdict']} in {row['seconds']:.2f} s" if row else "not measured"
        lines.append(f"audit of thompson on {device}: {told}")
    return "\n".join(lines)


def failed(results: dict, names: Iterable[str]) -> bool:
    """Whether one of these rows differs from the CPU's, or was not compared with it."""
    return any(compared(row := results.get(name, {})) == NOT_COMPARED or row["differences"] for name in names)


def write(results: dict, folder: Path) -> str:
    """Write what is measured so far, and return it as text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu.json").write_text(json.dumps(results, indent=1) + "\n")
    shown = f"{results['versions']}\n{table(results)}\n"
    (folder / "gpu.txt").write_text(shown)
    return shown


def main() -> int:
    """Measure, print, write; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=list(ROWS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--profiled", action="store_true", help="an eighth of the runs, for a profiler")
    options = parser.parse_args()
    timed, results, check = TimedCard(), {}, not options.no_check
    if options.only:
        one_row(timed, options.only, results, 8 if options.profiled else 1, check)
        return failed(results, [options.only])
    results["versions"] = versions()
    rows = [partial(one_row, timed, name, results, check=check) for name in ROWS]
    for part in (*rows, partial(audit_seconds, results), partial(jax_rate, results)):
        attempt(part)
        shown = write(results, options.out)
    print(shown)
    return failed(results, ROWS)


if __name__ == "__main__":
    sys.exit(main())
