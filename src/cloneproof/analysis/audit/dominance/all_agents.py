"""Dominance for several agents: one audit each, put together."""

from __future__ import annotations

from dataclasses import replace

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.dominance.check import dominance
from cloneproof.analysis.audit.dominance.contest import contest_dominance
from cloneproof.analysis.audit.dominance.epochs import dominance_in_epochs
from cloneproof.analysis.audit.judgement import best_of
from cloneproof.analysis.audit.proof.theorems import is_contest
from cloneproof.analysis.audit.question import Question
from cloneproof.analysis.audit.verdict import Audit, Verdict, Witness
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.time_limit import engine_time
from cloneproof.errors import OutOfTimeError

ORDER: tuple[Verdict, ...] = ("clone-proof", "undecided", "exploitable")


def dominance_audit(question: Question, clock: Deadline) -> Audit:
    """Every strategy and every realisation of the others, one agent at a time."""
    audits: dict[str, Audit] = {}
    with engine_time(clock.left):
        for (case,) in question.searched:  # dominance is asked at one horizon
            try:
                audits[case.name] = _dominance(case, question)
            except OutOfTimeError:
                audits[case.name] = _out_of_time(case, question.tolerance, clock)
    if len(question.agents) == 1:
        return next(iter(audits.values()))
    return _join(audits, question.representatives, clock.seconds)


def _dominance(case: AuditCase, question: Question) -> Audit:
    if is_contest(case.running):
        return contest_dominance(case, question.tolerance)
    check = dominance_in_epochs if case.mechanism.clearing.planned_epochs else dominance
    return check(case, question.max_copies, question.tolerance)


def _out_of_time(case: AuditCase, tolerance: float, clock: Deadline) -> Audit:
    """Nothing is known but that payoffs are between nothing and all rewards."""
    half = case.market.share * case.horizon / 2  # means lie in [0, 1]
    anything = Estimate(half, half, "proven", "between nothing and the share of all rounds")
    copies = tuple(2 * number if k == 0 else number for k, number in enumerate(case.kinds.honest))
    nothing = Estimate(0.0, 2 * half, "proven", anything.method)
    witness = Witness(case.name, copies, anything, anything, nothing, case.market, case.copies(copies))
    scope = f"out of time: the budget of {clock.budget:g} s was spent before anything was known of {case.name!r}"
    return Audit(case.mechanism, case.market, "undecided", witness, scope, tolerance)


def _join(audits: dict[str, Audit], representatives: dict[str, str], seconds: float) -> Audit:
    """One audit out of those of several agents; agents of equal priors stand as the first of them does."""
    verdict = max((audit.verdict for audit in audits.values()), key=ORDER.index)
    deciding = [audit for audit in audits.values() if audit.verdict == verdict]
    worst = best_of(audit.worst for audit in deciding)
    twins = [f"{name} stands as {like} does" for name, like in representatives.items() if name != like]
    return replace(
        next(audit for audit in deciding if audit.worst is worst),
        verdict=verdict,
        scope=" ".join([*(f"{name}: {audit.scope}" for name, audit in audits.items()), *twins]),
        tried=tuple(witness for audit in audits.values() for witness in audit.tried),
        notes=tuple(dict.fromkeys(text for audit in audits.values() for text in audit.notes)),
        seconds=seconds,
    )
