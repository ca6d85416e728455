"""Best response by sampling, where no exact engine applies: successive elimination on paired samples.

Every candidate has a confidence sequence of its own, at 1 - ALPHA / (all estimates of the audit together), so that all
of them hold at once with probability 1 - ALPHA whenever the sampling stops. In passes of four times as many pairs, the
most promising first, a candidate leaves as soon as its gain is surely at most the tolerance, or surely below another
one's; the search ends when a gain is surely above the tolerance, nobody is left, or runs or budget are spent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cloneproof.analysis.audit.exact import Searched
from cloneproof.analysis.audit.judgement import does_not_pay, pays
from cloneproof.analysis.audit.question import Clock, Question
from cloneproof.analysis.audit.vectors import Vector
from cloneproof.analysis.audit.verdict import Sample, Witness
from cloneproof.analysis.gain import gain

ALPHA = 0.01
FIRST_PASS = 32  # pairs of each candidate
STEP = 1.5  # the least growth of a candidate's pairs that is worth a call
GROWTH = 4  # of the pairs from pass to pass
RUNS = 2048  # pairs of a candidate at most, if neither runs nor a budget is given
NO_LIMIT = 1 << 30
FIRST_PART, PART = 0.25, 0.5  # of what is left of a budget, for one candidate in the first pass and later


@dataclass
class Purse:
    """What a pair of runs of each candidate costs in seconds, and how many pairs a budget affords."""

    cost: dict[Vector, float] = field(default_factory=dict)
    done: dict[Vector, int] = field(default_factory=dict)

    def note(self, vector: Vector, runs: int, seconds: float) -> None:
        """A candidate has so many pairs now, the last of which took that long."""
        fresh = max(1, runs - self.done.get(vector, 0))
        self.cost[vector], self.done[vector] = max(seconds, 1e-6) / fresh, runs

    def pairs(self, vector: Vector, wanted: int, left: float | None) -> int:
        """The pairs in all to ask for, at most `wanted`; 0 where what is left affords no step worth taking.

        An unknown candidate is taken to cost as much per arm as the last one that was met.
        """
        if left is None:
            return wanted
        done = self.done.get(vector, 0)
        if vector in self.cost:
            affordable = done + int(left * PART / self.cost[vector])
            return min(wanted, affordable) if affordable >= STEP * done else 0
        if not self.cost:
            return wanted
        last, cost = next(reversed(self.cost.items()))
        return wanted if wanted * cost * sum(vector) / sum(last) <= left * FIRST_PART else 0


def sample(
    question: Question,
    agent: str,
    horizon: int,
    vectors: Sequence[Vector],
    estimates: int,
    runs: int | None,
    seed: int,
    clock: Clock,
    budget: float | None,
) -> Searched:
    """Sampled gains of the vectors at one horizon; `estimates` is how many the whole audit asks for."""
    confidence = 1 - ALPHA / (2 * estimates)  # twice: a gain, and the honest payoff that a tolerance is relative to
    result = Searched(agent, "sampled", {})
    market, mechanism = question.markets[horizon], question.mechanisms[horizon]
    if budget is not None and vectors:
        gain(market, mechanism, agent, vectors[0], runs=1, seed=seed)  # compiles what there is to compile
    watch, purse = Clock(budget), Purse()
    states: dict[Vector, Any] = {}
    alive, pairs = list(vectors), FIRST_PASS
    most = runs if runs is not None else (RUNS if budget is None else NO_LIMIT)
    while alive:
        pairs, moved = min(pairs, most), False
        for number, vector in enumerate(alive):
            wanted = purse.pairs(vector, pairs, watch.left)
            if wanted == 0 and vector not in states and number:
                result.left_out |= dict.fromkeys(alive[number:], f"too dear for a budget of {watch.budget:.3g} s")
                break
            if wanted == 0 and vector in states:
                continue
            start = time.perf_counter()
            found = gain(
                market,
                mechanism,
                agent,
                vector,
                runs=max(1, wanted),
                confidence=confidence,
                seed=seed,
                stop_when_decided=False,
                resume=states.get(vector),
            )
            moved = True
            purse.note(vector, found.runs, time.perf_counter() - start)
            states[vector] = found.progress
            result.samples[vector] = Sample(agent, vector, market, mechanism, seed, confidence, found.progress)
            result.found[vector] = [_witness(question, horizon, agent, vector, found)]
            clock.tell(number + 1, len(alive), f"{agent}: {pairs} pairs, {len(alive)} candidates")
            if pairs > FIRST_PASS and pays(result.found[vector][0], question.tolerance):
                break  # the most promising come first, so nobody is passed over unseen
        tried = [vector for vector in alive if vector in result.found]
        if not tried or any(pays(result.found[vector][0], question.tolerance) for vector in tried):
            break
        best = max(result.found[vector][0].gain.low for vector in tried)
        alive = sorted(
            (
                vector
                for vector in tried
                if not does_not_pay(result.found[vector][0], question.tolerance)
                and result.found[vector][0].gain.high >= best
            ),
            key=lambda vector: -result.found[vector][0].gain.value / math.sqrt(purse.cost[vector]),
        )
        if watch.spent or pairs >= most or not moved:
            break
        pairs *= GROWTH
    if result.found:
        result.honest[horizon] = min((each[0].honest for each in result.found.values()), key=lambda own: own.error)
    return result


def _witness(question: Question, horizon: int, agent: str, vector: Vector, found: Any) -> Witness:  # noqa: ANN401
    return Witness(
        agent, vector, found.honest, found.copied, found.estimate, question.markets[horizon], dict(found.copies)
    )
