"""Best response by sampling, where no exact engine applies: successive elimination on paired samples.

Every candidate has a confidence sequence of its own, at 1 - ALPHA / (all estimates of the audit together), so that all
of them hold at once with probability 1 - ALPHA whenever the sampling stops. In passes of twice as many pairs, a
candidate leaves as soon as its gain is surely at most the tolerance, or surely below another one's; the search ends
when the leader's gain is surely above the tolerance, nobody is left, or runs or budget are spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloneproof.analysis.audit.exact import Searched
from cloneproof.analysis.audit.judgement import does_not_pay, pays
from cloneproof.analysis.audit.question import Clock, Question
from cloneproof.analysis.audit.vectors import Vector
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.analysis.gain import gain

ALPHA = 0.01
FIRST_PASS = 32  # pairs of each candidate
RUNS = 2048  # pairs of a candidate at most, if neither runs nor a budget is given
NO_LIMIT = 1 << 30
PART = 0.25  # of what is left of a budget, for one candidate: the dear ones, of many arms, must not eat it all


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
    watch = Clock(budget)
    states: dict[Vector, Any] = {}
    alive, pairs = list(vectors), FIRST_PASS
    most = runs if runs is not None else (RUNS if budget is None else NO_LIMIT)
    while alive:
        pairs = min(pairs, most)
        for number, vector in enumerate(alive):
            left = None if watch.left is None else watch.left * PART
            if number and pairs == FIRST_PASS and watch.budget is not None and watch.seconds > watch.budget / 2:
                result.left_out |= dict.fromkeys(alive[number:], f"half the budget of {watch.budget:g} s was spent")
                break
            if watch.spent and vector not in result.found:
                result.left_out[vector] = f"the budget of {watch.budget:g} s was spent"
            if watch.spent:
                continue
            found = gain(
                market,
                mechanism,
                agent,
                vector,
                runs=pairs,
                confidence=confidence,
                seed=seed,
                stop_when_decided=False,
                budget_seconds=left,
                resume=states.get(vector),
            )
            if vector not in states and found.runs < pairs and number:
                late = dict.fromkeys(alive[number:], f"more arms are too dear for the budget of {watch.budget:g} s")
                result.left_out |= late
                break
            states[vector] = found.progress
            result.found[vector] = [_witness(question, horizon, agent, vector, found)]
            clock.tell(number + 1, len(alive), f"{agent}: {pairs} pairs, {len(alive)} candidates")
        tried = [vector for vector in alive if vector in result.found]
        if not tried or any(pays(result.found[vector][0], question.tolerance) for vector in tried):
            break
        best = max(result.found[vector][0].gain.low for vector in tried)
        alive = [
            vector
            for vector in tried
            if not does_not_pay(result.found[vector][0], question.tolerance)
            and result.found[vector][0].gain.high >= best
        ]
        if watch.spent or pairs >= most:
            break
        pairs *= 2
    if result.found:
        result.honest[horizon] = min((each[0].honest for each in result.found.values()), key=lambda own: own.error)
    return result


def _witness(question: Question, horizon: int, agent: str, vector: Vector, found: Any) -> Witness:  # noqa: ANN401
    return Witness(
        agent, vector, found.honest, found.copied, found.estimate, question.markets[horizon], dict(found.copies)
    )
