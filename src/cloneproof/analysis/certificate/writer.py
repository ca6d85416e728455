"""From an audit to a certificate: its verdict, and what the checker needs to find it again."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cloneproof._files import write_whole
from cloneproof.analysis.audit.cases import AuditCase, audit_case
from cloneproof.analysis.audit.dominance.two_phase_game import two_phase_game
from cloneproof.analysis.audit.proof.scan import scan_theorem
from cloneproof.analysis.audit.proof.theorems import is_contest
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.analysis.certificate.description import market_data, mechanism_data
from cloneproof.analysis.certificate.document import FORMAT, VERSION
from cloneproof.analysis.certificate.scan_checker import SCAN
from cloneproof.analysis.certificate.verification import check
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CertificateError, EngineError, brief

ROOM = 1e-9  # by how much a claimed bound is looser than what was found, so that other roundings still meet it


def write_certificate(audit: Audit, path: str | Path) -> None:
    """Write the certificate of an exact verdict, whole or not at all; it has passed the checker by then.

    Sampled verdicts have none: what can be replayed is a record of seeds and counts (`cp.results.write_replay`), and
    not a proof. Nor has `undecided`, which claims nothing.

    Parameters
    ----------
    audit : Audit
        Whose verdict; for "clone-proof" one against `opponents="any"`, or one by the scan theorem.
    path : str or Path
        The file to write.

    Raises
    ------
    CertificateError
        Where the audit has no verdict that can be certified, or the file cannot be written.

    Examples
    --------
    See `verify`.
    """
    if not isinstance(audit, Audit):
        raise CertificateError(f"expected an audit, got {brief(audit)}; make one with cp.audit(market, mechanism)")
    data = checked_certificate(audit)
    try:
        write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
    except OSError as problem:
        raise CertificateError(f"expected a folder to write {path} into, got: {problem}; make it first") from None


def checked_certificate(audit: Audit) -> dict[str, Any]:
    """The certificate as data; the checker has accepted it."""
    data = certificate(audit)
    verification = check(data)
    for arms in _later_starts(audit) if audit.verdict == "clone-proof" else ():
        if verification.accepted:
            break
        data = certificate(audit, arms)
        verification = check(data)
    if not verification.accepted:
        raise CertificateError(
            f"expected a verdict that the checker can re-derive, got one it rejects: {verification.statement}"
        )
    return data


def certificate(audit: Audit, from_arms: int | None = None) -> dict[str, Any]:
    """The certificate as data, not yet checked; vectors of at least `from_arms` arms are left to a bound."""
    if audit.verdict == "undecided":
        raise CertificateError("expected a verdict to certify, got 'undecided', which claims nothing; search further")
    witness = audit.worst
    if audit.verdict == "exploitable":
        _check_proven(audit)
    horizon = witness.horizon if audit.verdict == "exploitable" else audit.market.horizon
    case = audit_case(audit.market.with_horizon(horizon), audit.mechanism, witness.agent)
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": {name: _version(name) for name in ("cloneproof", "python-flint")},
        "agent": witness.agent,
        "verdict": audit.verdict,
        "tolerance": audit.tolerance,
        "market": market_data(case.market),
        "mechanism": mechanism_data(case.running),
    }
    if audit.verdict == "exploitable":
        return data | {"witness": _witness_data(witness)}
    return data | {"argument": _argument(audit, case, from_arms)}


def _check_proven(audit: Audit) -> None:
    """Refuse an attack whose payoffs are not enclosed in balls, and say what there is instead."""
    witness = audit.worst
    inexact = [each.kind for each in (witness.honest, witness.copied, witness.gain) if each.kind != "proven"]
    if not inexact:
        return
    sampled = any((each.agent, each.copies) == (witness.agent, witness.copies) for each in audit.samples)
    instead = (
        "a sampled verdict has a replay record instead: cp.results.write_replay(audit, path)"
        if sampled
        else "there is no certificate and no replay record of a gain that was computed in floats"
    )
    raise CertificateError(f"expected a gain in ball arithmetic, got one of kind {inexact[0]!r}; {instead}")


def _argument(audit: Audit, case: AuditCase, from_arms: int | None) -> dict[str, Any]:
    """The vectors to sweep, each with its claimed bound, and from how many arms on one bound covers all.

    Where the scan theorem covers everything: the law of scores.
    """
    if scan_theorem(case) is not None:
        return _scan_argument(case)
    if is_contest(case.running) and audit.tried and audit.worst.gain.kind == "proven":
        return _contest_argument(audit, case)
    if not audit.thresholds:
        raise CertificateError(
            "expected a complete check against all opponents, got a clone-proof verdict of another kind; "
            + _how_to_check_all_opponents(case)
        )
    first = from_arms or max(case.running.scoring.max_arms or 0, case.agent.count) + 1
    listed = [
        {"copies": list(witness.copies), "bound": _loosen(witness.gain.high) if not audit.tolerance else 0.0}
        for witness in audit.tried
        if sum(witness.copies) < first
    ]
    return {"copies": listed, "from_arms": first, "bound": 0.0}


def _contest_argument(audit: Audit, case: AuditCase) -> dict[str, Any]:
    """The vectors that take part, each with its claimed bound; a bound covers those that take none."""
    most = case.running.scoring.max_arms or 0
    listed = [
        {"copies": list(witness.copies), "bound": _loosen(witness.gain.high) if not audit.tolerance else 0.0}
        for witness in audit.tried
        if sum(witness.copies) <= most
    ]
    return {"copies": listed, "from_arms": most + 1, "bound": 0.0}


def _scan_argument(case: AuditCase) -> dict[str, Any]:
    """The possible means of the agent's originals, exactly, and how many coins a test counts."""
    support = case.agent.support
    if case.running.clearing.planned_epochs:
        raise CertificateError(
            "expected one mechanism over the whole horizon, got one in epochs, for which there is no certificate; "
            "certify the mechanism of an epoch"
        )
    if not case.running.arm.binarise:
        raise CertificateError(
            "expected scores that count coins, whose law a certificate lists, got sums of gaussian rewards; the "
            "verdict of the audit stands without a certificate"
        )
    if support is None:
        raise CertificateError(
            "expected an agent whose prior has finitely many values, got a continuous prior, which no certificate "
            "lists; certify a prior such as cp.Discrete"
        )
    means = sorted({Fraction(value) for value in support})
    listed = [f"{mean.numerator}/{mean.denominator}" for mean in means]
    return {"kind": SCAN, "law": {"scores": "binomial", "pulls": case.running.arm.explore, "means": listed}}


def _how_to_check_all_opponents(case: AuditCase) -> str:
    try:
        two_phase_game(case)
    except EngineError as refusal:
        return f"there is no certificate of it, since {refusal.reason}"
    return "audit with opponents='any'"


def _later_starts(audit: Audit) -> list[int]:
    """Where the bound may start instead: after the vectors that were swept one by one."""
    most = max((sum(witness.copies) for witness in audit.tried), default=0)
    return [most, most + 1] if most else []


def _loosen(bound: float) -> float:
    """A bound that rests on a little less than was found; 0 is the most that still proves something."""
    return min(0.0, bound + ROOM * (1 + abs(bound))) if bound <= 0 else bound


def _witness_data(witness: Witness) -> dict[str, Any]:
    return {
        "market": market_data(witness.market),
        "copies": {name: list(copies) for name, copies in witness.all_copies.items()},
        **{key: _interval(getattr(witness, key)) for key in ("honest", "copied", "gain")},
    }


def _interval(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "error": estimate.error}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a source tree that is not installed
        return "unknown"
