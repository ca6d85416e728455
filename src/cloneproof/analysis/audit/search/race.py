"""Best response by sampling, where no exact engine applies: a race of all deviations on paired samples.

Every candidate has a confidence sequence of its own, at 1 - ALPHA / (all estimates of the audit together), so that all
of them hold at once with probability 1 - ALPHA whenever the sampling stops. So the next pairs may go wherever they
promise most:

1. A look at each candidate, the fewest arms first, as long as a look is cheap beside the budget.
2. Then always the candidate that would be found to pay soonest, by its gain so far, its error and the cost of a pair;
   where none seems to pay, the one that leaves room for the largest gain.
3. A candidate leaves as soon as its gain is surely at most the tolerance, or surely below another one's of its agent.

It ends when a gain is surely above the tolerance, nobody is left, or runs or budget are spent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.judgement import does_not_pay, pays
from cloneproof.analysis.audit.search.results import SampledResult
from cloneproof.analysis.audit.verdict import SampledDeviation, Witness
from cloneproof.analysis.gain import Gain, sampled_gain
from cloneproof.analysis.paired_runs import PairedSampling
from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals

ALPHA = 0.01
FIRST = 16  # pairs of a look
GROWTH = 2  # of a candidate's pairs from turn to turn
RUNS = 2048  # pairs of a candidate at most, if neither runs nor a budget is given
NO_LIMIT = 1 << 30
LOOKS, LOOK, TURN = 0.5, 0.1, 0.5  # of a budget: for all looks; of what is left of it: for one look, for one turn


class RaceEntry(NamedTuple):
    """Copies of an agent at a horizon."""

    case: AuditCase
    copies: CopyVector

    def sample(
        self, pairs: int, seed: int, confidence: float = 0.99, resume: RunTotals | None = None, to_the_end: bool = True
    ) -> Gain:
        """The gain by so many pairs of runs."""
        case = self.case
        sampling = PairedSampling(pairs, None, confidence, seed, stop_when_decided=not to_the_end, resume=resume)
        return sampled_gain(case.market, case.mechanism, case.name, case.copies(self.copies), sampling)


@dataclass
class Race:
    """What is known of each candidate, and what its pairs cost: seconds under a budget, else arms."""

    tolerance: float
    seed: int
    confidence: float
    budget: float | None
    witnesses: dict[RaceEntry, Witness] = field(default_factory=dict)
    samples: dict[RaceEntry, SampledDeviation] = field(default_factory=dict)
    cost: dict[RaceEntry, float] = field(default_factory=dict)
    deadline: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.budget)

    def done(self, entry: RaceEntry) -> int:
        """How many pairs it has."""
        return self.samples[entry].progress.runs if entry in self.samples else 0

    def advance(self, entry: RaceEntry, pairs: int) -> None:
        """Bring a candidate to so many pairs."""
        case, vector = entry
        start, before = time.perf_counter(), self.done(entry)
        gain = entry.sample(pairs, self.seed, self.confidence, self.samples[entry].progress if before else None)
        seconds = (time.perf_counter() - start) / max(1, gain.runs - before)
        self.cost[entry] = float(sum(vector)) if self.budget is None else max(seconds, 1e-9)
        self.samples[entry] = SampledDeviation(
            case.name, vector, case.market, case.mechanism, self.seed, self.confidence, gain.progress
        )
        self.witnesses[entry] = Witness(
            case.name, vector, gain.honest, gain.copied, gain.estimate, case.market, gain.copies
        )

    def first_look_is_cheap(self, entry: RaceEntry) -> bool:
        """Whether a look at an unknown candidate is affordable, if pairs cost in proportion to the arms."""
        left = self.deadline.left
        if left is None or not self.cost or self.budget is None:
            return True
        last, cost = next(reversed(self.cost.items()))
        return left > (1 - LOOKS) * self.budget and FIRST * cost * sum(entry.copies) / sum(last.copies) <= LOOK * left

    def alive(self) -> list[RaceEntry]:
        """Those that may still be the best, and of whom it is not known whether they pay."""
        best: dict[AuditCase, float] = {}
        for entry, witness in self.witnesses.items():
            best[entry.case] = max(best.get(entry.case, -math.inf), witness.gain.low)
        return [
            entry
            for entry, witness in self.witnesses.items()
            if not does_not_pay(witness, self.tolerance) and witness.gain.high >= best[entry.case]
        ]

    def time_to_decide(self, entry: RaceEntry) -> tuple[float, float]:
        """About what it costs until it is known to pay (infinite where it seems not to); then, what is ruled out."""
        witness = self.witnesses[entry]
        excess = witness.gain.value - self.tolerance * max(0.0, witness.honest.high)
        room = -witness.gain.high / max(witness.honest.value, 1e-300)
        if excess <= 0:
            return math.inf, room
        # an error falls like 1/n while pairs are few, like 1/sqrt(n) later: between the two
        return self.done(entry) * self.cost[entry] * max(0.0, (witness.gain.error / excess) ** 1.5 - 1), room

    def affordable(self, entry: RaceEntry, most: int) -> int:
        """The pairs of its next turn in all; no more than it has where the budget affords nothing worth a turn."""
        done = self.done(entry)
        wanted = min(most, GROWTH * done)
        if self.deadline.left is None:
            return wanted
        within = done + int(self.deadline.left * TURN / self.cost[entry])
        return min(wanted, within) if within >= done + max(1, done // 4) else done

    def anybody_pays(self) -> bool:
        """Whether a gain is surely above the tolerance."""
        return any(pays(witness, self.tolerance) for witness in self.witnesses.values())

    def results(self, cases: Iterable[AuditCase]) -> dict[AuditCase, SampledResult]:
        """What is known, case by case; an honest payoff is that of the candidate that knows it best."""
        results = {case: SampledResult((case,)) for case in cases}
        for (case, vector), witness in self.witnesses.items():
            result = results[case]
            result.evaluated[vector], result.samples[vector] = [witness], self.samples[RaceEntry(case, vector)]
            known = result.honest.get(case.horizon)
            if known is None or witness.honest.error < known.error:
                result.honest[case.horizon] = witness.honest
        return results


def race(
    candidates: Sequence[RaceEntry],
    tolerance: float,
    runs: int | None,
    seed: int,
    clock: Deadline,
    budget: float | None,
    estimates: int | None = None,
) -> list[SampledResult]:
    """Sampled gains of the candidates, a result for each case; `estimates` is of the whole audit."""
    if budget is not None and candidates:
        candidates[0].sample(1, seed, to_the_end=False)  # compiles what there is, before the budget's clock starts
    # each estimate twice: a gain, and the honest payoff that a tolerance is relative to
    state = Race(tolerance, seed, 1 - ALPHA / (2 * (estimates or max(1, len(candidates)))), budget)
    most = runs if runs is not None else (RUNS if budget is None else NO_LIMIT)
    left_out: list[RaceEntry] = []
    seen: set[AuditCase] = set()
    for number, entry in enumerate(sorted(candidates, key=lambda entry: sum(entry.copies))):
        if entry.case in seen and not state.first_look_is_cheap(entry):
            left_out.append(entry)
            continue
        seen.add(entry.case)
        state.advance(entry, min(FIRST, most))
        clock.tell(number + 1, len(candidates), f"{entry.case.name}: a look at copies {entry.copies}")
    while not state.anybody_pays() and not state.deadline.spent:
        turns = [(entry, state.affordable(entry, most)) for entry in state.alive()]
        turns = [(entry, pairs) for entry, pairs in turns if pairs > state.done(entry)]
        if not turns:
            break
        entry, pairs = min(turns, key=lambda turn: state.time_to_decide(turn[0]))
        state.advance(entry, pairs)
        clock.tell(state.done(entry), most, f"{entry.case.name}: {pairs} pairs of copies {entry.copies}")
    results = state.results(dict.fromkeys(entry.case for entry in candidates))
    for entry in left_out:
        results[entry.case].left_out[entry.copies] = f"too dear for a budget of {budget:.3g} s"
    return list(results.values())
