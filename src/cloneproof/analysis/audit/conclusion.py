"""From what was searched to a verdict: the witness to show, the argument of each case, and the scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cloneproof.analysis.audit.judgement import NEARLY, best_of, pays, relative_gain_at_most, simplest_of
from cloneproof.analysis.audit.proof.coverage import Coverage, coverage
from cloneproof.analysis.audit.proof.many_copies import copy_limits
from cloneproof.analysis.audit.question import Question
from cloneproof.analysis.audit.scope import scope_of
from cloneproof.analysis.audit.search.results import SampledResult, SearchResult, for_exchangeable
from cloneproof.analysis.audit.verdict import Audit, Verdict, Witness
from cloneproof.errors import EngineError

BoundedDeviation = tuple[Witness, float | None]
CoverageByCase = dict[tuple[str, int], Coverage]  # (agent, horizon)


def conclude(
    question: Question,
    searched: Sequence[SearchResult],
    apart: dict[str, Witness],
    notes: Sequence[str],
    seconds: float,
) -> Audit:
    """The audit, from the results of one agent of each kind and the deviations that are reported apart."""
    results = _of_everybody(question, searched)
    tried = [witness for result in results for witness in result.witnesses]
    if not tried:
        reasons = dict.fromkeys(why for result in results for why in result.left_out.values())
        raise EngineError("no deviation could be evaluated: " + "; ".join(list(reasons)[:3]))
    covered = {
        (result.agent, case.horizon): coverage(case, result, question.tolerance)
        for result in results
        for case in result.cases
        if case.horizon in result.honest
    }
    bounds = [bounded for result in results for bounded in _bounds(result)]
    paying = [witness for witness in tried if pays(witness, question.tolerance)]
    cases = sum(map(len, question.cases.values()))
    verdict: Verdict
    if paying:
        verdict, worst = "exploitable", _shown(paying)
        notes = [*notes, *_contradictions(paying, covered)]
    elif len(covered) == cases and all(each.argument is not None for each in covered.values()):
        sampled = [witness for result in results if result.samples for witness in result.witnesses]
        verdict, worst = "clone-proof", best_of(sampled or tried)  # what was computed, rather than argued about
    else:
        verdict, worst = "undecided", max(bounds, key=_relative_gain_not_ruled_out)[0]
    limits = tuple(limit for result in results for limit in copy_limits(result))
    deciding = next(case for case in question.cases[worst.agent] if case.horizon == worst.horizon)
    audit = Audit(
        mechanism=deciding.mechanism,
        market=question.market,
        verdict=verdict,
        worst=worst,
        scope=scope_of(question, verdict, worst, results, covered, limits),
        tried_at_most=_largest(bound for _, bound in bounds),
        tolerance=question.tolerance,
        tried=tuple(tried),
        by_horizon=_by_horizon(tried),
        apart=apart,
        notes=tuple(notes),
        samples=tuple(sample for result in results for sample in result.samples.values()),
        seconds=seconds,
        limits=limits,
        sampled_proof=verdict == "clone-proof" and any(each.sampled for each in covered.values()),
    )
    return replace(audit, scope=f"{audit.about_tried}; {audit.scope}") if audit.about_tried else audit


def _bounds(result: SearchResult) -> list[BoundedDeviation]:
    """The deviations of a result with relative gains that they do not exceed, all of them together."""
    if isinstance(result, SampledResult) and result.at_most:
        largest = _largest(result.at_most.values())  # which bounds the candidates that have no bound of their own
        return [(one, result.at_most.get(vector, largest)) for vector, (one,) in result.evaluated.items()]
    return [(witness, relative_gain_at_most(witness)) for witness in result.witnesses]


def _largest(bounds: Iterable[float | None]) -> float | None:
    """The largest of them; None where one is not known."""
    known = list(bounds)
    return None if None in known else max(bound for bound in known if bound is not None)


def _of_everybody(question: Question, searched: Sequence[SearchResult]) -> list[SearchResult]:
    """The findings for all agents, out of those for one of each kind."""
    return [
        result if result.agent == name else for_exchangeable(result, question.cases[name])
        for name, representative in question.representatives.items()
        for result in searched
        if result.agent == representative
    ]


def _relative_gain_not_ruled_out(bounded: BoundedDeviation) -> tuple[float, float]:
    witness, bound = bounded
    upper_end = witness.gain_at_most / max(witness.honest.value, 1e-300)
    return (upper_end if bound is None else bound), upper_end


def _shown(paying: list[Witness]) -> Witness:
    """The simplest of the best; one that is more than floats, where there is one as good."""
    simplest = simplest_of(paying)
    firm = [witness for witness in paying if witness.gain.kind != "estimated"]
    good = [witness for witness in firm if witness.relative_gain >= simplest.relative_gain * (1 - NEARLY)]
    return simplest_of(good) if good else simplest


def _by_horizon(tried: list[Witness]) -> dict[int, Witness]:
    together: dict[int, list[Witness]] = {}
    for witness in tried:
        together.setdefault(witness.horizon, []).append(witness)
    return {horizon: best_of(together[horizon]) for horizon in sorted(together)}


def _contradictions(paying: list[Witness], covered: CoverageByCase) -> list[str]:
    """An argument that says clone-proof where a deviation pays is a fault of ours, and is shown, not hidden."""
    wrong = [witness for witness in paying if covered[witness.agent, witness.horizon].argument is not None]
    return [
        f"contradiction, please report: copies {witness.copies} of {witness.agent} pay at horizon {witness.horizon}, "
        f"against this argument: {covered[witness.agent, witness.horizon].argument}"
        for witness in wrong[:3]
    ]
