"""Informed agents: one who knows its means before it registers answers each realisation with copies of its own choice.

With v the realised means of the agent and pi(c | v) its payoff if it registers c (others are honest, with their
priors), the informed payoff is the sum over v of P(v) max over c of pi(c | v); its gain is that less the honest payoff,
the sum of P(v) pi(1, .., 1 | v). Given v, the agent's means are points, so any exact engine can answer.

Under a scan over slots (reservoirs) the best original alone is a best response at every v, whatever the others do
(docs/textbook/reservoir.md, section 9): with it the agent's slots score highest, so that it is champion earliest and
most often, and no champion of its is worth more. Elsewhere a few registrations are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from cloneproof.analysis.audit.cases import AgentCases, AuditCase, epoch_cases
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.informed_gain import InformedGain, InformedResponse
from cloneproof.analysis.audit.judgement import MARGIN
from cloneproof.analysis.audit.proof.scan import is_scan
from cloneproof.analysis.audit.search.realised_means import realised_means
from cloneproof.analysis.audit.search.results import ExactResult, HorizonPayoffs, SampledResult, SearchResult
from cloneproof.analysis.exact_evaluations import ExactEngine, exact_evaluations
from cloneproof.engines.estimate import weighted_sum
from cloneproof.errors import EngineError
from cloneproof.market.agents import Agent
from cloneproof.market.market import Market
from cloneproof.market.priors import Point


def best_informed(
    results: Sequence[SearchResult], max_copies: int, tolerance: float, clock: Deadline
) -> tuple[InformedGain | None, list[str]]:
    """The largest relative gain of an informed agent, and a sentence about it, or about why there is none."""
    gains: list[InformedGain] = []
    notes: list[str] = []
    for cases, engine in _exact_cases(results):
        try:
            gains += informed_gains(cases, engine, max_copies, clock)
        except EngineError as refusal:
            notes.append(f"informed: {cases[0].name} was not evaluated: {refusal.reason}")
    if not gains:
        return None, notes[:3] or ["informed: tried by exact engines only, and none applies here"]
    best = max(gains, key=lambda gain: gain.relative_gain)
    return best, [*notes[:3], _sentence(best, max_copies, tolerance)]


def _exact_cases(results: Sequence[SearchResult]) -> Iterator[tuple[AgentCases, ExactEngine]]:
    """The agents that an exact engine may answer for; a scan that nobody evaluated may have a tree."""
    for result in results:
        if isinstance(result, ExactResult):
            yield result.cases, result.engine
        elif not isinstance(result, SampledResult) and all(map(best_alone_suffices, result.cases)):
            yield result.cases, "auto"


def informed_gains(cases: AgentCases, engine: ExactEngine, max_copies: int, clock: Deadline) -> list[InformedGain]:
    """The gain at every horizon."""
    agent, kinds = cases[0].agent, cases[0].kinds
    complete = all(map(best_alone_suffices, cases))
    realised = realised_means(agent, kinds.labels)
    found: dict[int, list[InformedResponse]] = {case.horizon: [] for case in cases}
    for number, (chance, means) in enumerate(realised):
        if clock.spent:
            raise EngineError(f"the budget was spent after {number} of {len(realised)} realisations of its means")
        honest = _payoffs(cases, means, kinds.honest, engine)
        best = {horizon: (payoff, kinds.honest) for horizon, payoff in honest.items()}
        alone = tuple(int(k == means.index(max(means))) for k in range(kinds.count))
        for vector in [alone] if complete else informed_vectors(kinds, means, max_copies):
            for horizon, payoff in _payoffs(cases, means, vector, engine).items():
                if payoff.value > best[horizon][0].value:
                    best[horizon] = payoff, vector
        for horizon, (payoff, vector) in best.items():
            found[horizon].append(InformedResponse(means, chance, vector, honest[horizon], payoff))
        clock.tell(number + 1, len(realised), f"{agent.name}, informed: means {means}")
    return [_average(agent.name, horizon, responses, complete) for horizon, responses in found.items()]


def best_alone_suffices(case: AuditCase) -> bool:
    """Whether the best original alone is a best response at every realisation: a scan over slots in every epoch."""
    family = case.market.family
    return family.low >= 0 and family.high <= 1 and all(is_scan(epoch.running) for epoch in epoch_cases(case))


def informed_vectors(kinds: OriginalKinds, means: Sequence[float], max_copies: int) -> list[CopyVector]:
    """0, 1, 2 or the cap of each original; of equal ones of a kind, the larger number first. Honesty is left out.

    >>> informed_vectors(OriginalKinds((0, 0)), (0.8, 0.2), 2)[:4]
    [(0, 1), (0, 2), (1, 0), (1, 2)]
    >>> informed_vectors(OriginalKinds((0, 0)), (0.8, 0.8), 2)
    [(1, 0), (2, 0), (2, 1), (2, 2)]
    """
    marks = list(zip(kinds.labels, means, strict=True))
    equal = OriginalKinds(tuple(marks.index(mark) for mark in marks))
    numbers = sorted({0, 1, min(2, max_copies), max_copies})
    every = product(numbers, repeat=kinds.count)
    return [vector for vector in every if any(vector) and equal.canonical(vector) and vector != kinds.honest]


def _payoffs(cases: AgentCases, means: Sequence[float], vector: CopyVector, engine: ExactEngine) -> HorizonPayoffs:
    """The agent's payoff with these copies, given its means."""
    worlds = [(_at_means(case, means), case.mechanism) for case in cases]
    evaluations, _ = exact_evaluations(worlds, cases[0].copies(vector), engine)
    return {horizon: evaluation.payoff[cases[0].name] for horizon, evaluation in evaluations.items()}


def _at_means(case: AuditCase, means: Sequence[float]) -> Market:
    agents = [
        Agent(each.name, prior=[Point(mean) for mean in means]) if each.name == case.name else each
        for each in case.market.agents
    ]
    return Market(agents, case.horizon, case.market.share, case.market.rewards)


def _average(name: str, horizon: int, responses: list[InformedResponse], complete: bool) -> InformedGain:
    honest = weighted_sum([(each.chance, each.honest) for each in responses])
    informed = weighted_sum([(each.chance, each.best) for each in responses])
    return InformedGain(name, horizon, honest, informed, informed - honest, tuple(responses), complete)


def _sentence(best: InformedGain, max_copies: int, tolerance: float) -> str:
    error = best.gain.error * (MARGIN if best.gain.kind == "estimated" else 1.0)
    slack = tolerance * best.honest.value
    if best.gain.heuristic:
        judged = "undecided"
    elif best.gain.value - error > slack:
        judged = "it pays"
    else:
        judged = "it does not pay" if best.gain.value + error <= slack else "undecided"
    how = (
        "its best original alone is a best response whatever its means are"
        if best.complete
        else f"with 0, 1, 2 or {max_copies} of each original, the best for each of {len(best.responses)} realisations; "
        "other copies may pay more"
    )
    return (
        f"informed: if {best.agent} knew its means before it registers, its payoff would change by "
        f"{best.gain.value:+.6g} ({best.relative_gain:+.2%}) at horizon {best.horizon}: {judged}; {how}"
    )
