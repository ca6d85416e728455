"""How often sampled audits are wrong, and how small a gain they find.

*False alarms.* Small markets of agents with one original each, under mechanisms that choose agents by their rewards
alone. Whatever an agent registers, its rewards are the same independent sequence, so every gain is exactly 0: the
hardest case of "nothing pays". An audit would say so by that argument; here its candidates are raced all the same, for
a second, without a tolerance. How many say that something pays?

*Planted gains.* Markets of T = 4,000 rounds in which one agent gains 10, 3 or 1 percent by copies, under Thompson
sampling, epsilon-greedy or UCB1. With probability q its original is a little worse than somebody else's, where copies
pay; else it is by far the best, where they pay next to nothing. Both gains are sampled apart, copies are those of 2, 4,
16 and 64 that gain most, and q follows from the gain that is wanted. An audit of the agent has 30 seconds and ends when
it has found something that surely pays. In how many markets does it?

    python studies/audit_power.py quick                         a few of each, no files
    python studies/audit_power.py FOLDER [ALARMS [MARKETS]]     FOLDER/false_alarms.csv, planted.csv; can be resumed
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from scipy.stats import beta

import cloneproof as cp
from cloneproof.analysis.audit.cases import audit_cases
from cloneproof.analysis.audit.copy_vectors import grid, ladders
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.search.race.api import race
from cloneproof.analysis.audit.search.race.candidates import RaceEntry
from cloneproof.cli.display.output import new_table, print_table, progress_bar
from resumable_rows import resume_rows

ALARMS, MARKETS = 2000, 200
SIZES = (0.10, 0.03, 0.01)
HORIZON, SHARE = 4000, 0.4
BUDGET, SHORT = 30.0, 1.0  # seconds
RUNGS = (2, 4, 16, 64)
PILOT, TRUTH = 16, 96  # pairs
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
    name = dice.choice(("h-ucb", "rh-ucb", "two-level thompson", "two-level epsilon-greedy"))
    rule = name.removeprefix("two-level ")
    made = cp.mechanism(name) if rule == name else cp.Mechanism(agent=cp.rule(rule), arm=cp.rule(rule))
    cases = audit_cases(market, made, [agent.name for agent in agents], [horizon])
    candidates = [
        RaceEntry(case, vector)
        for (case,) in cases.values()
        for vector in sorted({*grid(case.kinds, 4)[0], *(v for rungs in ladders(case.kinds, horizon) for v in rungs)})
    ]
    results = race(candidates, 0.0, None, number, Deadline(budget), budget)
    pays = any(witness.gain.low > 0 for result in results for witness in result.witnesses)
    pairs = sum(sample.progress.runs for result in results for sample in result.samples.values())
    return AlarmRow(number, name, count, horizon, len(candidates), pairs, pays)


def _prior(dice: random.Random) -> cp.parts.Prior:
    if dice.random() < 0.5:
        return cp.Point(dice.uniform(0.1, 0.9))
    return cp.Discrete([dice.uniform(0.0, 0.5), dice.uniform(0.5, 1.0)], [0.5, 0.5])


def planted(size: float, number: int, budget: float = BUDGET) -> PlantedRow:
    """One market with a planted gain, audited."""
    dice = random.Random(f"planted {number}")  # the same worlds for every size; q differs
    lost = SMALL
    while lost >= SMALL:
        name = dice.choice(("thompson", "epsilon-greedy", "ucb1"))
        made, rival = cp.mechanism(name), dice.uniform(0.3, 0.7)
        others = [rival, *(dice.uniform(0.2, rival) for _ in range(dice.randint(0, 2)))]
        worse, best = rival - dice.uniform(0.02, 0.15), dice.uniform(0.9, 0.99)
        trial = _gain(made, best, others, RUNGS[-1], PILOT, 3)
        lost = trial.estimate.value / trial.honest.value
    tries = {copies: _gain(made, worse, others, copies, PILOT, 1) for copies in RUNGS}
    copies = max(tries, key=lambda each: tries[each].estimate.value)
    low, high = (_gain(made, mean, others, copies, TRUTH, 2) for mean in (worse, best))
    more = low.estimate.value - size * low.honest.value
    less = size * high.honest.value - high.estimate.value
    q = less / (more + less) if more > 0 else 1.0  # q more = (1 - q) less: the gain is that part of the honest payoff
    honest = q * low.honest.value + (1 - q) * high.honest.value
    errors = [part * float(each.progress.variances[0] / each.runs) ** 0.5 for part, each in ((q, low), (1 - q, high))]
    gain = (q * low.estimate.value + (1 - q) * high.estimate.value) / honest
    market = _market(cp.Discrete([worse, best], [q, 1 - q]) if q < 1 else cp.Point(worse), others)
    begun = time.perf_counter()
    audit = cp.audit(market, made, agent="ana", budget_seconds=budget, seed=number)
    seconds = time.perf_counter() - begun
    pairs = sum(sample.progress.runs for sample in audit.samples)
    error = sum(error**2 for error in errors) ** 0.5 / honest
    return PlantedRow(size, number, name, copies, gain, error, audit.verdict == "exploitable", seconds, pairs)


def _market(prior: cp.parts.Prior, others: Sequence[float]) -> cp.Market:
    agents = [cp.Agent("ana", 1, prior), *(cp.Agent(f"b{i}", 1, cp.Point(mean)) for i, mean in enumerate(others))]
    return cp.Market(agents, horizon=HORIZON, share=SHARE)


def _gain(
    made: cp.Mechanism, mean: float, others: Sequence[float], copies: int, runs: int, seed: int
) -> cp.results.Gain:
    market = _market(cp.Point(mean), others)
    return cp.gain(market, made, "ana", (copies,), runs=runs, seed=seed, stop_when_decided=False)


def interval(hits: int, of: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson.

    >>> [round(end, 4) for end in interval(0, 2000)]
    [0.0, 0.0018]
    """
    low = 0.0 if hits == 0 else float(beta.ppf((1 - LEVEL) / 2, hits, of - hits + 1))
    high = 1.0 if hits == of else float(beta.ppf(1 - (1 - LEVEL) / 2, hits + 1, of - hits))
    return low, high


def show(alarms: Sequence[AlarmRow], found: Sequence[PlantedRow]) -> None:
    """Both tables."""
    table = new_table(
        "Sampled audits", "what", "audits", "say that something pays", f"interval at {LEVEL:.0%}", right=1
    )
    groups: list[tuple[str, list[bool]]] = [("nothing pays", [row.alarm for row in alarms])]
    groups += [(f"a gain of {size:.0%}", [row.found for row in found if row.size == size]) for size in SIZES]
    for what, verdicts in groups:
        if verdicts:
            low, high = interval(sum(verdicts), len(verdicts))
            rate = f"{sum(verdicts)} ({sum(verdicts) / len(verdicts):.1%})"
            table.add_row(what, str(len(verdicts)), rate, f"{low:.2%} to {high:.2%}")
    print_table(table)


def main(folder: str, alarms: int = ALARMS, markets: int = MARKETS) -> None:
    """All audits, or some of them."""
    if folder == "quick":
        show([alarm(number) for number in range(10)], [planted(SIZES[0], number) for number in range(3)])
        return
    with progress_bar() as bar:

        def track(what: str) -> Callable[[Sequence[object]], object]:
            return lambda left: bar.track(left, description=what)

        first = resume_rows(
            AlarmRow, Path(folder) / "false_alarms.csv", list(range(alarms)), lambda row: row.number, alarm,
            track("false alarms"),
        )  # fmt: skip
        second = resume_rows(
            PlantedRow, Path(folder) / "planted.csv", list(product(SIZES, range(markets))),
            lambda row: (row.size, row.number), lambda case: planted(*case), track("planted gains"),
        )  # fmt: skip
    show(first, second)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "quick", *map(int, sys.argv[2:]))
