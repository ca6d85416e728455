"""Dominance for several agents: one audit each, put together."""

from __future__ import annotations

from dataclasses import replace

from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.dominance.check import dominance
from cloneproof.analysis.audit.dominance.contest import contest_dominance
from cloneproof.analysis.audit.dominance.epochs import dominance_in_epochs
from cloneproof.analysis.audit.judgement import best_of
from cloneproof.analysis.audit.proof.theorems import is_contest
from cloneproof.analysis.audit.question import Question
from cloneproof.analysis.audit.verdict import Audit, Verdict

ORDER: tuple[Verdict, ...] = ("clone-proof", "undecided", "exploitable")


def dominance_audit(question: Question, clock: Deadline) -> Audit:
    """Every strategy and every realisation of the others, one agent at a time."""
    audits: dict[str, Audit] = {}
    for (case,) in question.searched:  # dominance is asked at one horizon
        if is_contest(case.running):
            audits[case.name] = contest_dominance(case, question.tolerance)
            continue
        check = dominance_in_epochs if case.mechanism.clearing.planned_epochs else dominance
        audits[case.name] = check(case, question.max_copies, question.tolerance)
    if len(question.agents) == 1:
        return next(iter(audits.values()))
    return _join(audits, question.representatives, clock.seconds)


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
