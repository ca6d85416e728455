"""Whether budgets are kept: fifteen jobs of all kinds with 5 s and with 20 s, each in a process of its own.

    python benchmarks/budgets.py                      # about eight minutes
    python benchmarks/budgets.py --seconds 5 --only log

Asked is the budget of the whole job. Compiling, reading files and loading other packages are the time of starting, told
apart: each job is played once with a tiny budget before its clock starts. Taken is wall time, beside it the CPU time of
the process and its children, in all and after the budget was over. On a machine that others use wall time says
little: a job is late if it ended more than 3 s after its budget and also worked for more than 3 s after it (CPU time
over the cores that it can use). What a job left out is in its own result; here is the outcome in a word. A job that was
refused kept nothing: it did not run, and the exit code is 1, as for one that is late.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cloneproof as cp
from cloneproof.cli import main as command
from cloneproof.runs.sampler import available_threads

LATE = 3.0  # seconds after a budget
NOT_RUN = ("refused: ", "exit 2", "exit 70")  # outcomes of jobs that did nothing
WARMING = 0.5  # seconds
COIN = cp.Discrete([0.2, 0.5, 0.8], [0.3, 0.4, 0.3])
WORDS = "walnut red garden old blue wool chess silver tin oak lamp mug green steel glass paper hat shirt cup"
ETC = {"agent_rounds": 400, "arm_rounds": 60}


class Slow:
    """A policy that takes its time."""

    def __init__(self, view: Any) -> None:
        self.arms, self.round = view.arms, 0

    def select(self) -> int:
        """In turn, after a nap."""
        time.sleep(0.002)
        self.round += 1
        return int(self.arms[self.round % len(self.arms)])

    def update(self, arm: int, reward: float) -> None:
        """Nothing is learned."""


def crowd(horizon: int, agents: int = 20) -> cp.Market:
    """Many agents with two originals each."""
    return cp.Market([cp.Agent(f"a{i}", 2, COIN) for i in range(agents)], horizon=horizon)


def few(horizon: int, prior: Any = COIN) -> cp.Market:
    """Three agents."""
    return cp.Market([cp.Agent(name, 2, prior) for name in ("ana", "bo", "cy")], horizon=horizon)


def log_file(agents: int = 57, items: int = 7) -> str:
    """Honest arms with titles, some of which are nearly the same."""
    path, dice = Path(tempfile.mkdtemp()) / "log.csv", np.random.default_rng(5)
    rows = ["agent,arm,title,impressions,clicks"]
    for k in range(agents * items):
        rounds = int(dice.integers(500, 20_000))
        clicks = dice.binomial(rounds, dice.beta(2, 60))
        rows.append(f"a{k % agents},{k},{' '.join(dice.choice(WORDS.split(), 4))},{rounds},{clicks}")
    path.write_text("\n".join(rows))
    return str(path)


def audit(market: cp.Market, made: Any, seconds: float) -> str:
    """An audit of a mechanism, or of what its name means in the market."""
    mechanism = cp.mechanism(made, market=market) if isinstance(made, str) else made
    return cp.audit(market, mechanism, search=cp.Search(seconds=seconds)).verdict


def log(path: str, options: list[str], seconds: float) -> str:
    """The command; its tables go nowhere."""
    with open(os.devnull, "w") as nowhere:
        before, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), nowhere, nowhere
        try:
            sys.argv = ["cloneproof", "log", path, "--same", "title", "--seconds", f"{seconds:g}", *options]
            command()
        except SystemExit as end:
            return f"exit {end.code}"
        finally:
            sys.stdout, sys.stderr = before
    return "exit 0"


def recommended(seconds: float, **question: Any) -> str:
    """What is recommended."""
    market = question.pop("market", None) or cp.Market.alike(**question)
    return cp.recommend(market, search=cp.Search(seconds=seconds)).choice.name


RATES = {"originals": 3, "horizon": 10**8, "rates": (0.002, 0.006)}
JOBS: dict[str, Callable[[float], str]] = {
    "audit, 20 agents, ucb1, T = 2e5": partial(audit, crowd(200_000), "ucb1"),
    "audit, 20 agents, h-etc-r, T = 2e5": partial(audit, crowd(200_000), cp.mechanism("h-etc-r", **ETC)),
    "audit, Beta priors, h-ucb, T = 200": partial(audit, few(200, cp.Beta(2, 3)), "h-ucb"),
    "audit, slow black box": partial(audit, few(500), cp.BlackBox(Slow)),
    "gain, thompson, T = 1e6": lambda seconds: (
        cp.gain(
            few(10**6),
            cp.mechanism("thompson"),
            "ana",
            (8, 8),
            search=cp.Search(seconds=seconds),
            stop_when_decided=False,
        ).decided
    ),
    "evaluate, thompson, 20 agents, T = 1e6": lambda seconds: (
        cp.evaluate(crowd(10**6), cp.mechanism("thompson"), search=cp.Search(seconds=seconds)).engine
    ),
    "recommend, 400 agents": partial(recommended, agents=400, **RATES),
    "recommend, 1,000 agents": partial(recommended, agents=1000, **RATES),
    "recommend, 60 agents that differ": partial(
        recommended,
        market=cp.Market(
            [cp.Agent(f"a{k}", 3, cp.Discrete([0.01 + k * 1e-4, 0.03], [0.5, 0.5])) for k in range(60)], horizon=10**7
        ),
    ),
    "equilibrium, 3 agents, ucb1": lambda seconds: (
        cp.equilibrium(few(2000), cp.mechanism("ucb1"), runs=500, seconds=seconds).status
    ),
    "log, 57 owners, no policy": lambda seconds: log(LOG, [], seconds),
    "log, 57 owners, thompson, page": lambda seconds: log(
        LOG, ["--policy", "thompson", "--html", f"{LOG}.html"], seconds
    ),
}
LOG = ""


class Times(NamedTuple):
    """How long a job took: wall and CPU seconds, those after its budget, those of starting; and what came out."""

    wall: float
    cpu: float
    after: float
    start: float
    outcome: str


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    return sum(os.times()[:4])


def run(name: str, seconds: float, path: str, line: Any) -> None:
    """One job, in its process."""
    globals()["LOG"] = path
    begun = time.perf_counter()
    JOBS[name](WARMING)
    start, at_budget = time.perf_counter() - begun, []
    cpu, wall = cpu_seconds(), time.perf_counter()
    watch = threading.Timer(seconds, lambda: at_budget.append(cpu_seconds()))
    watch.daemon = True
    watch.start()
    try:
        outcome = str(JOBS[name](seconds))
    except cp.errors.CloneproofError as refusal:
        outcome = f"refused: {refusal}"
    taken, done = time.perf_counter() - wall, cpu_seconds()
    line.send(Times(taken, done - cpu, done - at_budget[0] if at_budget else 0.0, start, outcome))


def main() -> None:
    """Print a line for each job and budget, and how many ended late."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, nargs="+", default=[5.0, 20.0])
    parser.add_argument("--only", default="", help="jobs whose name has this word")
    asked = parser.parse_args()
    context, path, cores = mp.get_context("spawn"), log_file(), available_threads()
    verdicts: list[str] = []
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'job':40} {'asked':>5} {'taken':>6} {'CPU':>6} {'after':>6} {'start':>6}       outcome")
    for name in (name for name in JOBS if asked.only in name):
        for seconds in asked.seconds:
            ours, theirs = context.Pipe()
            process = context.Process(target=run, args=(name, seconds, path, theirs))
            process.start()
            theirs.close()  # so that a process that died is told apart from a slow one
            patience = 20 * seconds + 200
            times = ours.recv() if ours.poll(patience) else Times(patience, 0.0, patience * cores, 0.0, "killed")
            process.kill()
            process.join()
            is_late = times.wall > seconds + LATE and times.after / cores > LATE
            verdicts.append("NOT RUN" if times.outcome.startswith(NOT_RUN) else "LATE" if is_late else "kept")
            numbers = f"{seconds:5g} {times.wall:6.1f} {times.cpu:6.1f} {times.after:6.1f} {times.start:6.1f}"
            print(f"{name:40} {numbers}  {verdicts[-1]} {times.outcome[:60]}", flush=True)
    late, idle = verdicts.count("LATE"), verdicts.count("NOT RUN")
    print(f"Of {len(verdicts)} jobs {late} ended late, {idle} did not run; load {os.getloadavg()[0]:.1f}.")
    sys.exit(1 if late or idle or not verdicts else 0)


if __name__ == "__main__":
    main()
