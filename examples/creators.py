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

import cloneproof as cp
from cloneproof.cli.output import new_table, print_table, progress_bar
from cloneproof.mechanisms import CATALOGUE

MARKET = Path(__file__).with_name("creators.toml")
TOLERANCE = 0.005
REGRET_SECONDS = 1.0
SIDE_BY_SIDE = (  # a process each: those of the UCB kernel, which takes longest to compile, and the rest
    ("ucb1", "s-ucb", "h-ucb", "rh-ucb"),
    tuple(name for name in CATALOGUE if name not in ("ucb1", "s-ucb", "h-ucb", "rh-ucb")),
)


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
    try:
        found = cp.audit(market, mechanism, tolerance=TOLERANCE, budget_seconds=None if exact else budget)
    except cp.errors.EngineError as refusal:
        seconds = f"{time.perf_counter() - start:.1f} s"
        return Row((name, "not audited", "", "", regret, seconds), f"{name}: {refusal}")
    worst = found.worst
    cells = (
        name,
        found.verdict,
        f"{100 * worst.relative_gain:+.1f}"
        if found.verdict != "undecided"
        else f"at most {100 * not_ruled_out(worst):+.0f}",
        f"{worst.agent} {','.join(map(str, worst.copies))}",
        regret,
        f"{time.perf_counter() - start:.1f} s",
    )
    gain = f"{worst.gain.value:+.1f} ± {worst.gain.error:.0f}"
    return Row(cells, "" if exact else f"{name}: {len(found.tried)} deviations sampled, this one's gain is {gain}")


def not_ruled_out(worst: cp.results.Witness) -> float:
    """The largest gain that the samples leave room for, as a part of the honest payoff."""
    return worst.gain.high / worst.honest.value


def honest_regret(market: cp.Market, mechanism: cp.Mechanism) -> tuple[bool, str]:
    """Whether the closed form applies, and the regret by it or by a second of runs, with its 99 % interval."""
    try:
        return True, f"{cp.evaluate(market, mechanism, engine='closed-form').regret.value:.0f}"
    except cp.errors.EngineError:
        cp.evaluate(market, mechanism, engine="monte-carlo", runs=1)  # compiles, on the first day
        regret = cp.evaluate(market, mechanism, engine="monte-carlo", budget_seconds=REGRET_SECONDS).regret
        return False, f"{regret.value:.0f} ± {regret.error:.0f}"


def in_turn(names: tuple[str, ...], budget: float) -> dict[str, Row]:
    """One mechanism after the other, each kernel compiled once."""
    return {name: audited(name, budget) for name in names}


def main(budget: float = 7.0) -> None:
    """Print the table."""
    start = time.perf_counter()
    rows: dict[str, Row] = {}
    with ProcessPoolExecutor(len(SIDE_BY_SIDE)) as pool, progress_bar() as bar:
        jobs = [pool.submit(in_turn, names, budget) for names in SIDE_BY_SIDE]
        task = bar.add_task("auditing", total=len(CATALOGUE))
        for job in as_completed(jobs):
            rows |= job.result()
            bar.advance(task, len(job.result()))
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
