"""Best response by exact engines: honest payoffs at all horizons, then every vector of copies, in floats."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from cloneproof.analysis.audit.cases import AgentCases
from cloneproof.analysis.audit.copy_vectors import CopyVector, grid, ladders
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.proof.coverage import more_vectors
from cloneproof.analysis.audit.proof.theorems import elementary
from cloneproof.analysis.audit.search.results import ExactResult, HorizonPayoffs
from cloneproof.analysis.exact_evaluations import ExactEngine, exact_evaluations
from cloneproof.engines.estimate import Evaluation
from cloneproof.engines.time_limit import engine_time
from cloneproof.engines.tree import tree_time
from cloneproof.errors import EngineError
from cloneproof.market.rewards import deterministic

LONG = {"closed-form": 0.5, "tree": 2.0, "auto": 0.5}  # seconds for a rung after which a ladder is not climbed further
PART = 0.05  # or that part of a budget, if it is more
MOST_DIGITS = 10.0  # of a number of states that the tree need not be asked about


def honest_evaluations(
    cases: AgentCases, seconds: float | None = None
) -> tuple[dict[int, Evaluation], ExactEngine] | None:
    """Everybody honest at every horizon, and the engine that could do it; None where no exact engine can in time."""
    engine: ExactEngine = "closed-form" if _too_many_states(cases) else "auto"
    try:
        with engine_time(None if seconds is None else 2 * seconds), tree_time(seconds):
            evaluations = _evaluations(cases, cases[0].kinds.honest, engine)
    except EngineError:
        return None
    engines = {evaluation.engine for evaluation in evaluations.values()}
    if engines == {"closed-form"}:
        return evaluations, "closed-form"
    return evaluations, "tree" if engines == {"tree"} else "auto"


def _too_many_states(cases: AgentCases) -> bool:
    """Whether a look at the size is enough to know that the tree would refuse, which can take it seconds.

    Random rewards leave about T^(2a - 1) / (2a - 1)! states of pulls and successes of a arms, unless a rule commits; a
    deviation has one arm more than honesty at least.
    """
    market = cases[-1].market  # at the longest horizon
    sure = market.family.quantile is deterministic.quantile
    sure = sure or all(agent.support is not None and set(agent.support) <= {0.0, 1.0} for agent in market.agents)
    if sure or any(rule.commits for case in cases for rule in case.mechanism.rules):
        return False
    slots = max(case.mechanism.arm.draws for case in cases) * len(market.agents)
    copied = all(case.mechanism.sample is None for case in cases)
    power = 2 * (slots or market.originals + copied) - 1
    return power * math.log10(market.horizon) - math.lgamma(power + 1) / math.log(10) > MOST_DIGITS


def exact_result(
    cases: AgentCases,
    honest: dict[int, Evaluation],
    engine: ExactEngine,
    max_copies: int,
    tolerance: float,
    clock: Deadline,
) -> ExactResult:
    """Every vector up to the cap, those that make the search complete, and the ladders."""
    payoffs = {horizon: evaluation.payoff[cases[0].name] for horizon, evaluation in honest.items()}
    arguments = {case.horizon: sentence for case in cases if (sentence := elementary(case)) is not None}
    result = ExactResult(cases, engine, payoffs, arguments)
    kinds = cases[0].kinds
    vectors, _ = grid(kinds, max_copies)
    more = more_vectors(result, tolerance)
    search(result, dict.fromkeys([*vectors, *more]), ladders(kinds, cases[-1].horizon), clock)
    return result


def search(
    result: ExactResult, vectors: Iterable[CopyVector], ladders: Iterable[list[CopyVector]], clock: Deadline
) -> None:
    """Evaluate the vectors, then climb the ladders until an engine refuses or a rung takes too long."""
    listed, rungs = list(vectors), [list(ladder) for ladder in ladders]
    total, done = len(listed) + sum(map(len, rungs)), 0
    long = max(LONG[result.engine], PART * (clock.budget or 0.0))
    for vector in listed:
        _evaluate_vector(result, vector, clock)
        done += 1
        clock.tell(done, total, f"{result.agent}: copies {vector}")
    for ladder in rungs:
        for number, vector in enumerate(ladder):
            start = time.perf_counter()
            evaluated = _evaluate_vector(result, vector, clock)
            done += 1
            clock.tell(done, total, f"{result.agent}: copies {vector}")
            if evaluated and time.perf_counter() - start <= long:
                continue
            why = result.left_out.get(vector, f"copies {vector} took more than {long:g} s; a larger budget goes on")
            for beyond in ladder[number + 1 :]:
                if beyond not in result.evaluated:
                    result.left_out.setdefault(beyond, why)
            break


def payoffs(cases: AgentCases, engine: ExactEngine, vector: CopyVector) -> HorizonPayoffs:
    """The agent's payoff with these copies at every horizon."""
    evaluations = _evaluations(cases, vector, engine)
    return {horizon: evaluation.payoff[cases[0].name] for horizon, evaluation in evaluations.items()}


def _evaluations(cases: AgentCases, vector: CopyVector, engine: ExactEngine) -> dict[int, Evaluation]:
    worlds = [(case.market, case.mechanism) for case in cases]
    return exact_evaluations(worlds, cases[0].copies(vector), engine)[0]


def _evaluate_vector(result: ExactResult, vector: CopyVector, clock: Deadline) -> bool:
    """Evaluate one vector; whether it came to something."""
    if vector in result.evaluated:
        return True
    if clock.spent:
        result.left_out[vector] = f"the budget of {clock.budget:g} s was spent"
        return False
    for smaller, why in result.left_out.items() if result.engine == "tree" else ():
        if all(few <= many for few, many in zip(smaller, vector, strict=True)):
            result.left_out[vector] = why  # the tree only grows with the arms
            return False
    try:
        with engine_time(clock.left):
            copied = payoffs(result.cases, result.engine, vector)
    except EngineError as refusal:
        result.left_out[vector] = refusal.reason
        return False
    result.evaluated[vector] = [
        case.witness(vector, result.honest[case.horizon], copied[case.horizon]) for case in result.cases
    ]
    return True
