"""What is tried where the scan theorem covers everything: a few deviations, so that a reader sees what they cost.

The verdict rests on the theorem. A deviation that pays nevertheless would be a fault of ours; the audit says so then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloneproof.analysis.audit.cases import AgentCases, AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds
from cloneproof.analysis.audit.judgement import best_of, pays
from cloneproof.analysis.audit.proof.scan import SCAN_SCOPE, scan_theorem
from cloneproof.analysis.audit.question import Question
from cloneproof.analysis.audit.search.exact_search import payoffs
from cloneproof.analysis.audit.search.other_deviations import OtherDeviations
from cloneproof.analysis.audit.search.results import ArguedResult, ExactResult, SearchResult
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError

MANY_COPIES = 1000
MOST_EVALUATED = 1000  # horizons of an agent; at earlier ones the theorem speaks alone


def scan_results(question: Question) -> list[SearchResult] | None:
    """A few deviations of one agent of each kind; None where the theorem does not cover every agent and horizon."""
    arguments = {case: scan_theorem(case) for cases in question.searched for case in cases}
    if None in arguments.values():
        return None
    results: list[SearchResult] = []
    for cases in question.searched:
        sentences = {case.horizon: str(arguments[case]) for case in cases}
        results += [_argued((case,), sentences) for case in cases[:-MOST_EVALUATED]]
        results.append(_few_deviations(cases[-MOST_EVALUATED:], sentences))
    return results


def few_vectors(kinds: OriginalKinds) -> list[CopyVector]:
    """A second copy of the first original, of all but the last, and many copies of the first.

    >>> few_vectors(OriginalKinds((0, 0, 0)))
    [(2, 1, 1), (2, 2, 1), (1000, 1, 1)]
    """
    rest = kinds.honest[1:]
    vectors = [(2, *rest), (*(2 for _ in rest), 1) if rest else (2,), (MANY_COPIES, *rest)]
    return list(dict.fromkeys(vectors))


def _few_deviations(cases: AgentCases, arguments: dict[int, str]) -> SearchResult:
    """By the closed form, where there is one; its errors are counted."""
    kinds = cases[0].kinds
    try:
        honest = payoffs(cases, "closed-form", kinds.honest)
        evaluated = {vector: _witnesses(cases, honest, vector) for vector in few_vectors(kinds)}
    except EngineError:
        return _argued(cases, arguments)
    return ExactResult(cases, "closed-form", honest, arguments, evaluated)


def _witnesses(cases: Sequence[AuditCase], honest: dict[int, Estimate], vector: CopyVector) -> list[Witness]:
    copied = payoffs(tuple(cases), "closed-form", vector)
    return [case.witness(vector, honest[case.horizon], copied[case.horizon]) for case in cases]


def _argued(cases: AgentCases, arguments: dict[int, str]) -> ArguedResult:
    """A first copy that nobody evaluated: by the theorem it gains nothing."""
    vector = few_vectors(cases[0].kinds)[0]
    honest: dict[int, Estimate] = {}
    witnesses = []
    for case in cases:
        half = case.market.share * case.horizon / 2  # means lie in [0, 1]
        payoff = Estimate(half, half, "proven", "between none and all of the rounds at a mean of 1")
        loss = Estimate(-half, half, "proven", "no gain, by the scan theorem")
        honest[case.horizon] = payoff
        witnesses.append(replace(case.witness(vector, payoff, payoff), gain=loss))
    return ArguedResult(cases, honest, {case.horizon: arguments[case.horizon] for case in cases}, {vector: witnesses})


def scan_withholding(results: Sequence[SearchResult], tolerance: float) -> OtherDeviations:
    """Withholding, which the theorem covers: one original left out, and all but one, where they can be evaluated."""
    witnesses: list[Witness] = []
    for result in results:
        count = result.cases[0].kinds.count
        vectors = {(*(1,) * (count - 1), 0), (1, *(0,) * (count - 1))} if count > 1 else set()
        for vector in sorted(vectors, reverse=True) if isinstance(result, ExactResult) else ():
            witnesses += _witnesses(result.cases, result.honest, vector)
    if not witnesses:
        return {}, ["withholding: covered by the scan theorem; none was evaluated"]
    best = best_of(witnesses)
    against = "it pays, against the scan theorem: please report this" if pays(best, tolerance) else "it does not pay"
    note = (
        f"withholding: covered by the scan theorem; registering {best.copies} as {best.agent} changes the payoff by "
        f"{best.gain.value:+.6g} ({best.relative_gain:+.2%}) at horizon {best.horizon}: {against}"
    )
    return {"withholding": best}, [note]


def with_scan_scope(audit: Audit, question: Question, results: Sequence[SearchResult]) -> Audit:
    """The audit with the theorem's scope, which is wider than what was tried."""
    if audit.verdict != "clone-proof":
        return audit
    argument = next(iter(results[0].arguments.values()))
    tried = {w.copies for result in results if isinstance(result, ExactResult) for w in result.witnesses}
    besides = f"{len(tried)} deviations were evaluated besides, by closed form against honest others with their priors"
    scope = (
        f"{SCAN_SCOPE}, by {', '.join(question.agents)}: {argument}; not covered: an agent that knows which of its "
        f"originals is better, originals of different priors, second accounts; "
        f"{besides if tried else 'no deviation was evaluated'}."
    )
    return replace(audit, scope=scope)
