"""Can a creator gain by uploading the same clip many times? Every mechanism, audited.

Mechanisms that explore and then commit are audited exactly. The others are sampled in pairs of runs for a few seconds
each, and a gain of half a percent counts as none; where that is too little to tell, the verdict is `undecided`, and the
lines below the table say how far it got. On the first day half of the time goes into compiling, on two cores.
Run with `make demo`, or with the seconds for a sampled mechanism.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import cloneproof as cp

MARKET = Path(__file__).with_name("creators.toml")
TOLERANCE = 0.005
REGRET_SECONDS = 1.0
MECHANISMS = (
    "ucb1", "etc", "prior-independent-etc", "h-ucb", "rh-ucb", "s-ucb", "uniform-etc", "h-etc-r", "holdout-h-etc",
    "reservoir", "epsilon-greedy", "thompson",
)  # fmt: skip
UCB = ("ucb1", "s-ucb", "h-ucb", "rh-ucb")  # share a kernel, which takes longest to compile: a process of their own


class Row(NamedTuple):
    """A line of the table, and what there is to say below it."""

    cells: tuple[str, ...]
    remark: str


def audit_mechanism(name: str, budget: float) -> Row:
    """One mechanism with its theorem's parameters: the audit of all agents, and the regret if all are honest."""
    start = time.perf_counter()
    market = cp.load_market(MARKET)
    mechanism = cp.mechanism(name, market=market)
    exact, regret = honest_regret(market, mechanism)
    try:
        audit = cp.audit(market, mechanism, tolerance=TOLERANCE, budget_seconds=None if exact else budget)
    except cp.errors.EngineError as refusal:
        seconds = f"{time.perf_counter() - start:.1f} s"
        return Row((name, "not audited", "", "", regret, seconds), f"{name}: {refusal}")
    worst = audit.worst
    gain = f"{100 * worst.relative_gain:+.1f}"
    if audit.verdict == "undecided":  # what the samples do not rule out
        gain = f"at most {100 * worst.gain.high / worst.honest.value:+.0f}"
    copies = f"{worst.agent} {','.join(map(str, worst.copies))}"
    cells = (name, audit.verdict, gain, copies, regret, f"{time.perf_counter() - start:.1f} s")
    sampled = f"{worst.gain.value:+.1f} ± {worst.gain.error:.0f}"
    return Row(cells, "" if exact else f"{name}: {len(audit.tried)} deviations sampled, this one's gain is {sampled}")


def honest_regret(market: cp.Market, mechanism: cp.Mechanism) -> tuple[bool, str]:
    """Whether the closed form applies, and the regret by it or by a second of runs, with its 99 % interval."""
    try:
        return True, f"{cp.evaluate(market, mechanism, engine='closed-form').regret.value:.0f}"
    except cp.errors.EngineError:
        cp.evaluate(market, mechanism, engine="monte-carlo", runs=1)  # compiles, on the first day
        regret = cp.evaluate(market, mechanism, engine="monte-carlo", budget_seconds=REGRET_SECONDS).regret
        return False, f"{regret.value:.0f} ± {regret.error:.0f}"


def audit_in_turn(names: tuple[str, ...], budget: float) -> dict[str, Row]:
    """One mechanism after the other, each kernel compiled once."""
    return {name: audit_mechanism(name, budget) for name in names}


def main(budget: float = 7.0) -> None:
    """Print the table."""
    start = time.perf_counter()
    rows: dict[str, Row] = {}
    others = tuple(name for name in MECHANISMS if name not in UCB)
    silent = not sys.stderr.isatty()
    with ProcessPoolExecutor(2) as pool, Progress(console=Console(stderr=True), transient=True, disable=silent) as bar:
        jobs = [pool.submit(audit_in_turn, names, budget) for names in (UCB, others)]
        task = bar.add_task("auditing", total=len(MECHANISMS))
        for job in as_completed(jobs):
            rows |= job.result()
            bar.advance(task, len(job.result()))
    title = f"{MARKET.name}: the best attack by copies on each mechanism"
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    for column in ("mechanism", "verdict"):
        table.add_column(column, no_wrap=True)
    for column in ("gain, %", "with copies", "regret", "time"):
        table.add_column(column, justify="right")
    for name in MECHANISMS:
        table.add_row(*rows[name].cells)
    Console(width=None if sys.stdout.isatty() else 100, highlight=False).print(table)
    print(f"Gains of up to {TOLERANCE:.1%} count as none. Sampled mechanisms had {budget:g} s each:")
    for name in MECHANISMS:
        if rows[name].remark:
            print("  " + rows[name].remark[:96])
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*(float(argument) for argument in sys.argv[1:]))
