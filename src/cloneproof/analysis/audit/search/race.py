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
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.judgement import does_not_pay, pays
from cloneproof.analysis.audit.question import Deadline, Question
from cloneproof.analysis.audit.search.exact_search import SearchResult
from cloneproof.analysis.audit.verdict import SampledDeviation, Witness
from cloneproof.analysis.gain import gain

ALPHA = 0.01
FIRST = 16  # pairs of a look
GROWTH = 2  # of a candidate's pairs from turn to turn
RUNS = 2048  # pairs of a candidate at most, if neither runs nor a budget is given
NO_LIMIT = 1 << 30
LOOKS, LOOK, TURN = 0.5, 0.1, 0.5  # of a budget: for all looks; of what is left of it: for one look, for one turn


class RaceEntry(NamedTuple):
    """Copies of an agent at a horizon."""

    agent: str
    horizon: int
    copies: CopyVector


@dataclass
class Race:
    """What is known of each candidate, and what its pairs cost: seconds under a budget, else arms."""

    question: Question
    seed: int
    confidence: float
    budget: float | None
    found: dict[RaceEntry, Witness] = field(default_factory=dict)
    samples: dict[RaceEntry, SampledDeviation] = field(default_factory=dict)
    cost: dict[RaceEntry, float] = field(default_factory=dict)
    watch: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Deadline(self.budget)

    def done(self, one: RaceEntry) -> int:
        """How many pairs it has."""
        return self.samples[one].progress.runs if one in self.samples else 0

    def advance(self, one: RaceEntry, pairs: int) -> None:
        """Bring a candidate to so many pairs."""
        market, mechanism = self.question.markets[one.horizon], self.question.mechanisms[one.horizon]
        start, before = time.perf_counter(), self.done(one)
        drawn = gain(
            market, mechanism, one.agent, one.copies,
            runs=pairs, confidence=self.confidence, seed=self.seed, stop_when_decided=False,
            resume=self.samples[one].progress if before else None,
        )  # fmt: skip
        seconds = (time.perf_counter() - start) / max(1, drawn.runs - before)
        self.cost[one] = float(sum(one.copies)) if self.budget is None else max(seconds, 1e-9)
        self.samples[one] = SampledDeviation(
            one.agent, one.copies, market, mechanism, self.seed, self.confidence, drawn.progress
        )
        self.found[one] = Witness(
            one.agent, one.copies, drawn.honest, drawn.copied, drawn.estimate, market, dict(drawn.copies)
        )

    def looks_cheap(self, one: RaceEntry) -> bool:
        """Whether a look at an unknown candidate is affordable, if pairs cost in proportion to the arms."""
        left = self.watch.left
        if left is None or not self.cost or self.budget is None:
            return True
        last, cost = next(reversed(self.cost.items()))
        return left > (1 - LOOKS) * self.budget and FIRST * cost * sum(one.copies) / sum(last.copies) <= LOOK * left

    def alive(self) -> list[RaceEntry]:
        """Those that may still be the best, and of whom it is not known whether they pay."""
        best: dict[tuple[str, int], float] = {}
        for one, seen in self.found.items():
            best[one[:2]] = max(best.get(one[:2], -math.inf), seen.gain.low)
        tolerance = self.question.tolerance
        return [
            one
            for one, seen in self.found.items()
            if not does_not_pay(seen, tolerance) and seen.gain.high >= best[one[:2]]
        ]

    def time_to_decide(self, one: RaceEntry) -> tuple[float, float]:
        """About what it costs until it is known to pay (infinite where it seems not to); then, what is ruled out."""
        seen = self.found[one]
        excess = seen.gain.value - self.question.tolerance * max(0.0, seen.honest.high)
        room = -seen.gain.high / max(seen.honest.value, 1e-300)
        if excess <= 0:
            return math.inf, room
        # an error falls like 1/n while pairs are few, like 1/sqrt(n) later: between the two
        return self.done(one) * self.cost[one] * max(0.0, (seen.gain.error / excess) ** 1.5 - 1), room

    def affordable(self, one: RaceEntry, most: int) -> int:
        """The pairs of its next turn in all; no more than it has where the budget affords nothing worth a turn."""
        done = self.done(one)
        wanted = min(most, GROWTH * done)
        if self.watch.left is None:
            return wanted
        within = done + int(self.watch.left * TURN / self.cost[one])
        return min(wanted, within) if within >= done + max(1, done // 4) else done


def race(
    question: Question,
    candidates: Sequence[RaceEntry],
    runs: int | None,
    seed: int,
    clock: Deadline,
    budget: float | None,
    estimates: int | None = None,
) -> list[SearchResult]:
    """Sampled gains of the candidates, a result for each agent and horizon; `estimates` is of the whole audit."""
    tolerance = question.tolerance
    if budget is not None and candidates:
        first = candidates[0]  # compiles what there is to compile, before the budget's clock starts
        market, mechanism = question.markets[first.horizon], question.mechanisms[first.horizon]
        gain(market, mechanism, first.agent, first.copies, runs=1, seed=seed)
    # each estimate twice: a gain, and the honest payoff that a tolerance is relative to
    state = Race(question, seed, 1 - ALPHA / (2 * (estimates or max(1, len(candidates)))), budget)
    most = runs if runs is not None else (RUNS if budget is None else NO_LIMIT)
    results = {one[:2]: SearchResult(one.agent, "sampled", {}) for one in candidates}
    seen: set[tuple[str, int]] = set()
    for number, one in enumerate(sorted(candidates, key=lambda one: sum(one.copies))):
        if one[:2] in seen and not state.looks_cheap(one):
            results[one[:2]].left_out[one.copies] = f"too dear for a budget of {budget:.3g} s"
            continue
        seen.add(one[:2])
        state.advance(one, min(FIRST, most))
        clock.tell(number + 1, len(candidates), f"{one.agent}: a look at copies {one.copies}")
    while not any(pays(own, tolerance) for own in state.found.values()) and not state.watch.spent:
        turns = [(one, state.affordable(one, most)) for one in state.alive()]
        turns = [(one, pairs) for one, pairs in turns if pairs > state.done(one)]
        if not turns:
            break
        one, pairs = min(turns, key=lambda turn: state.time_to_decide(turn[0]))
        state.advance(one, pairs)
        clock.tell(state.done(one), most, f"{one.agent}: {pairs} pairs of copies {one.copies}")
    for one, own in state.found.items():
        result = results[one[:2]]
        result.found[one.copies], result.samples[one.copies] = [own], state.samples[one]
        known = result.honest.get(one.horizon)
        result.honest[one.horizon] = own.honest if known is None or own.honest.error < known.error else known
    return list(results.values())
