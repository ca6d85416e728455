"""How often sampled audits are wrong, and how small a gain they find.

*False alarms.* Small markets of agents with one original each, under mechanisms that choose agents by their rewards
alone. Whatever an agent registers, its rewards are the same independent sequence, so every gain is exactly 0: the
hardest case of "nothing pays". An audit would say so by that argument; here its candidates are raced all the same, for
a second, without a tolerance. How many say that something pays?

*Planted gains.* Markets of T = 4,000 rounds in which one agent gains 10, 3 or 1 percent by copies, under Thompson
sampling, epsilon-greedy or UCB1. With probability q its original is a little worse than somebody else's, where copies
pay; else it is by far the best, where they pay next to nothing. Both gains are sampled apart, copies are those of 2, 4,
16 and 64 that gain most, and q follows from the gain that is wanted: the same worlds for the three sizes. An audit of
the agent has 30 seconds and ends when it has found something that surely pays. In how many markets does it?

Audits run side by side, as many as there are cores, each in a process that has one core to itself: a second and 30
seconds are wall time of one core. That is harder than what a user with two cores asks.

    python studies/audit_power.py quick                         a few of each, no files
    python studies/audit_power.py FOLDER [ALARMS [MARKETS]]     FOLDER/false_alarms.csv, planted.csv; can be resumed
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cloneproof as cp
from cloneproof._lib.sections import Section, Table
from cloneproof.audits.deviations import grid, ladders
from cloneproof.audits.question import audit_cases
from cloneproof.audits.race import race
from cloneproof.audits.race_state import RaceEntry
from cloneproof.cli.output import print_sections, progress_bar
from cloneproof.market.priors import Prior
from cloneproof.runs.deadline import Deadline
from resumable_rows import interval, resume_rows

ALARMS, MARKETS = 2000, 200
SIZES = (0.10, 0.03, 0.01)
HORIZON, SHARE = 4000, 0.4
BUDGET, SHORT = 30.0, 1.0  # seconds
RUNGS = (2, 4, 16, 64)
PILOT = 16  # pairs
TRUTH = {"thompson": 32, "epsilon-greedy": 256, "ucb1": 64}  # pairs; the first ones are slow, the second ones vary
SMALL = 0.008  # of the honest payoff: the most that copies may gain where the original is by far the best
LEVEL = 0.95  # of the intervals of the table


@dataclass(frozen=True)
class AlarmRow:
    """An audit where nothing pays, and whether it says that something does."""

    number: int
    mechanism: str
    agents: int
    horizon: int
    candidates: int
    pairs: int
    alarm: bool


@dataclass(frozen=True)
class PlantedRow:
    """An audit where something pays: the gain as sampled for the planting, and whether the audit found one."""

    size: float
    number: int
    mechanism: str
    copies: int
    gain: float
    error: float
    found: bool
    seconds: float
    pairs: int


def alarm(number: int, budget: float = SHORT) -> AlarmRow:
    """One market in which nothing pays."""
    dice = random.Random(f"alarm {number}")
    count, horizon = dice.randint(2, 4), dice.choice((12, 24, 48, 96, 192))
    agents = [cp.Agent(f"a{i}", 1, _prior(dice)) for i in range(count)]
    market = cp.Market(agents, horizon=horizon)
    name = dice.choice(("h-ucb", "two-level thompson", "two-level epsilon-greedy"))
    rule = name.removeprefix("two-level ")
    made = cp.mechanism(name) if rule == name else cp.bandit(agent=cp.rule(rule), arm=cp.rule(rule))
    cases = audit_cases(market, made, [agent.name for agent in agents])
    candidates = [
        RaceEntry(case, vector)
        for case in cases.values()
        for vector in sorted({*grid(case.kinds, 4)[0], *(v for rungs in ladders(case.kinds, horizon) for v in rungs)})
    ]
    results = race(candidates, 0.0, cp.Search(seed=number), Deadline(budget), budget)
    pays = any(witness.gain.low > 0 for result in results for witness in result.witnesses)
    pairs = sum(sample.progress.runs for result in results for sample in result.samples.values())
    return AlarmRow(number, name, count, horizon, len(candidates), pairs, pays)


def _prior(dice: random.Random) -> Prior:
    if dice.random() < 0.5:
        return cp.Point(dice.uniform(0.1, 0.9))
    return cp.Discrete([dice.uniform(0.0, 0.5), dice.uniform(0.5, 1.0)], [0.5, 0.5])


@dataclass(frozen=True)
class PlantedWorlds:
    """A rival, others, and an original a little worse or by far the best; what the copies gain in each world."""

    made: cp.Mechanism
    others: tuple[float, ...]
    worse: float
    best: float
    copies: int
    low: cp.results.Gain
    high: cp.results.Gain


def worlds(number: int) -> PlantedWorlds:
    """The first worlds of that number in which copies pay 10 % where they should, and next to nothing where not."""
    dice = random.Random(f"planted {number}")
    while True:
        name = dice.choice(("thompson", "epsilon-greedy", "ucb1"))
        made, rival = cp.mechanism(name), dice.uniform(0.3, 0.7)
        others = (rival, *(dice.uniform(0.2, rival) for _ in range(dice.randint(0, 2))))
        worse, best = rival - dice.uniform(0.02, 0.15), dice.uniform(0.9, 0.99)
        if _part(_gain(made, best, others, RUNGS[-1], PILOT, 3)) >= SMALL:
            continue
        tries = {copies: _gain(made, worse, others, copies, PILOT, 1) for copies in RUNGS}
        copies = max(tries, key=lambda each: tries[each].estimate.value)
        low, high = (_gain(made, mean, others, copies, TRUTH[name], 2) for mean in (worse, best))
        if _part(high) < SMALL and _part(low) > SIZES[0]:
            return PlantedWorlds(made, others, worse, best, copies, low, high)


def _part(found: cp.results.Gain) -> float:
    return found.estimate.value / found.honest.value


def planted(size: float, number: int, at: PlantedWorlds, budget: float = BUDGET) -> PlantedRow:
    """One market with a planted gain, audited."""
    low, high = at.low, at.high
    more = low.estimate.value - size * low.honest.value
    less = size * high.honest.value - high.estimate.value
    q = less / (more + less)  # q more = (1 - q) less: the gain is that part of the honest payoff
    honest = q * low.honest.value + (1 - q) * high.honest.value
    errors = [part * float(each.progress.variances[0] / each.runs) ** 0.5 for part, each in ((q, low), (1 - q, high))]
    gain = (q * low.estimate.value + (1 - q) * high.estimate.value) / honest
    market = _market(cp.Discrete([at.worse, at.best], [q, 1 - q]), at.others)
    begun = time.perf_counter()
    audit = cp.audit(market, at.made, agent="ana", search=cp.Search(seconds=budget, seed=number))
    seconds = time.perf_counter() - begun
    pairs = sum(sample.progress.runs for sample in audit.samples)
    error = sum(error**2 for error in errors) ** 0.5 / honest
    name, found = at.made.name or "", audit.verdict == "exploitable"
    return PlantedRow(size, number, name, at.copies, gain, error, found, seconds, pairs)


def planted_rows(number: int, sizes: Sequence[float] = SIZES) -> dict[float, PlantedRow]:
    """The audits of one pair of worlds, a market for each size."""
    at = worlds(number)
    return {size: planted(size, number, at) for size in sizes}


def _market(prior: Prior, others: Sequence[float]) -> cp.Market:
    agents = [cp.Agent("ana", 1, prior), *(cp.Agent(f"b{i}", 1, cp.Point(mean)) for i, mean in enumerate(others))]
    return cp.Market(agents, horizon=HORIZON, share=SHARE)


def _gain(
    made: cp.Mechanism, mean: float, others: Sequence[float], copies: int, runs: int, seed: int
) -> cp.results.Gain:
    market = _market(cp.Point(mean), others)
    return cp.gain(
        market, made, "ana", (copies,), search=cp.Search(runs=runs, seed=seed), stop_when_decided=False, threads=1
    )


def show(alarms: Sequence[AlarmRow], found: Sequence[PlantedRow]) -> None:
    """Both tables."""
    shown = []
    groups: list[tuple[str, list[bool]]] = [("nothing pays", [row.alarm for row in alarms])]
    groups += [(f"a gain of {size:.0%}", [row.found for row in found if row.size == size]) for size in SIZES]
    for what, verdicts in groups:
        if verdicts:
            low, high = interval(sum(verdicts), len(verdicts))
            rate = f"{sum(verdicts)} ({sum(verdicts) / len(verdicts):.1%})"
            shown.append((what, str(len(verdicts)), rate, f"{low:.2%} to {high:.2%}"))
    columns = ("what", "audits", "say that something pays", f"interval at {LEVEL:.0%}")
    print_sections([Section("Sampled audits", [Table.of(columns, shown)])])


def main(folder: str, alarms: int = ALARMS, markets: int = MARKETS) -> None:
    """All audits, or some of them."""
    if folder == "quick":
        show([alarm(number) for number in range(10)], list(planted_rows(0).values()))
        return
    with progress_bar() as bar, _processes() as pool:
        jobs: dict[object, Future[AlarmRow]] = {}
        several: dict[int, Future[dict[float, PlantedRow]]] = {}

        def start_alarms(left: Sequence[int]) -> Iterable[int]:
            jobs.update({number: pool.submit(alarm, number) for number in left})
            return bar.track(left, description="false alarms")

        def start_planted(left: Sequence[tuple[float, int]]) -> Iterable[tuple[float, int]]:
            for number in dict.fromkeys(number for _, number in left):
                several[number] = pool.submit(planted_rows, number, [size for size, other in left if other == number])
            return bar.track(left, description="planted gains")

        cases = [(size, number) for number in range(markets) for size in SIZES]
        first = resume_rows(
            AlarmRow, Path(folder) / "false_alarms.csv", list(range(alarms)), lambda row: row.number,
            lambda number: jobs.pop(number).result(), start_alarms,
        )  # fmt: skip
        second = resume_rows(
            PlantedRow, Path(folder) / "planted.csv", cases, lambda row: (row.size, row.number),
            lambda case: several[case[1]].result()[case[0]], start_planted,
        )  # fmt: skip
    show(first, second)


def _processes() -> ProcessPoolExecutor:
    """One for each core; only the parent writes files."""
    context = multiprocessing.get_context("spawn")
    cores: multiprocessing.Queue[int] = context.Queue()
    for core in (free := sorted(os.sched_getaffinity(0))):
        cores.put(core)
    return ProcessPoolExecutor(len(free), context, _take_core, (cores,))


def _take_core(cores: multiprocessing.Queue[int]) -> None:
    os.sched_setaffinity(0, {cores.get()})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "quick", *map(int, sys.argv[2:]))
