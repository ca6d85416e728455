"""From an audit to a certificate: its verdict, and what the checker needs to derive it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

from cloneproof._files import write_whole
from cloneproof._version import package_versions
from cloneproof.analysis.audit.question import AuditCase, audit_case
from cloneproof.analysis.audit.result import Audit
from cloneproof.analysis.audit.score_thresholds import two_phase_game
from cloneproof.analysis.audit.search_result import Witness
from cloneproof.analysis.audit.theorems import scan_theorem
from cloneproof.analysis.certificate.bars_checker import bars_numbers
from cloneproof.analysis.certificate.document import (
    BARS,
    COMPOSED,
    FORMAT,
    SCAN,
    SHAPES,
    VERSION,
    RejectedError,
    mechanism_shape,
    name_fits,
    scan_numbers,
)
from cloneproof.analysis.certificate.verification import check, prior_words
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CertificateError, EngineError, brief
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

ROOM = 1e-9  # by how much a claimed bound is looser than what was found, so that other roundings still meet it


def market_data(market: Market) -> dict[str, Any]:
    """Return the market as data; leaves out continuous priors, which only irrelevant opponents can have."""
    for what, given in {"positions": market.positions, "segments": market.segments}.items():
        if given:
            raise CertificateError(f"a certificate expects a market without {what}, got some; do without it")
    agents = []
    for agent in market.agents:
        atoms = [[list(atom) for atom in prior.atoms] for prior in agent.priors if prior.atoms is not None]
        agents.append({"name": agent.name, "priors": atoms if len(atoms) == agent.count else None})
    data = {"horizon": market.horizon, "share": market.share, "rewards": market.family.name, "agents": agents}
    return data if market.ends == "at-horizon" else data | {"ends": market.ends}


def mechanism_data(running: Mechanism) -> dict[str, Any]:
    """Return the running mechanism as data, without redundant parts.

    A name that is not the catalogue's name for these rules is left out, since the checker would reject it.
    """
    data = {key: value for key, value in running.to_dict().items() if key not in ("parameters", "fallback")}
    if name_fits(data, scan_numbers) or name_fits(data, bars_numbers):
        return data
    try:
        fits = data["name"] in SHAPES and SHAPES[data["name"]](mechanism_shape(data))
    except RejectedError:
        return data
    return data if fits else {**data, "name": COMPOSED}


def first_difference(data: dict[str, Any], market: Market | None, running: Mechanism | None) -> str | None:
    """First difference between a certificate's data and this market and mechanism, in words; None if equal."""
    in_market = () if market is None else market_differences(data["market"], market_data(market))
    in_mechanism = () if running is None else mechanism_differences(data["mechanism"], mechanism_data(running))
    return next(chain(in_market, in_mechanism), None)


def market_differences(certified: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """Agents, priors, horizon, share and rewards, in this order."""
    names = [[agent["name"] for agent in described["agents"]] for described in (certified, expected)]
    if names[0] != names[1]:
        yield _unlike("market", "its agents are", *map(brief, names))
    for own, other in zip(certified["agents"], expected["agents"], strict=True):
        if own["priors"] != other["priors"]:
            yield _unlike("market", f"{own['name']!r} has", prior_words(own["priors"]), prior_words(other["priors"]))
    words = {"horizon": "its horizon is", "share": "its share is", "rewards": "its rewards are", "ends": "it ends"}
    for key, said in words.items():
        own, other = (market.get(key, "at-horizon") for market in (certified, expected))
        if own != other:
            yield _unlike("market", said, brief(own), brief(other))


def mechanism_differences(certified: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """Compare field by field, the name first; a missing field counts as none, and a composition may have any name."""
    for field in dict.fromkeys(["name", *expected, *certified]):
        own, other = certified.get(field), expected.get(field)
        if field == "name" and COMPOSED in (own, other):
            continue
        if isinstance(own, dict) and isinstance(other, dict):
            for key in dict.fromkeys([*other, *own]):
                if own.get(key) != other.get(key):
                    yield _unlike("mechanism", f"{field} {key} is", brief(own.get(key)), brief(other.get(key)))
        elif own != other:
            yield _unlike("mechanism", f"its {field} is", brief(own), brief(other))


def _unlike(what: str, words: str, own: str, other: str) -> str:
    return f"it is about another {what}: {words} {own} in the certificate, and {other} in yours"


def write_certificate(audit: Audit, path: str | Path) -> None:
    """Write the certificate of an exact verdict, after the checker has accepted it.

    Sampled verdicts have no certificate, only a replay record of seeds and counts (`cp.results.write_replay`), which is
    not a proof. `undecided` claims nothing and has none either.

    Parameters
    ----------
    audit : Audit
        Whose verdict; for "clone-proof" one against `opponents="any"`, or one by the scan theorem.
    path : str or Path
        The file to write.

    Examples
    --------
    See `verify`.
    """
    if not isinstance(audit, Audit):
        raise CertificateError(f"expected an audit, got {brief(audit)}; make one with cp.audit(market, mechanism)")
    write_json(checked_certificate(audit), path)


def write_json(data: dict[str, Any], path: str | Path) -> None:
    """Write the data to a file, whole or not at all."""
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n", CertificateError)


def checked_certificate(audit: Audit) -> dict[str, Any]:
    """Return the certificate as data, accepted by the checker."""
    audit.check_every_copy_played()
    most = max((sum(witness.copies) for witness in audit.tried), default=0)
    later = (most, most + 1) if audit.verdict == "clone-proof" and most else ()  # after the vectors that were swept
    return first_accepted(certificate(audit, from_arms) for from_arms in (None, *later))


def first_accepted(documents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the first certificate that the checker accepts."""
    problem = ""
    for document in documents:
        verification = check(document)
        if verification.accepted:
            return document
        problem = verification.statement
    raise CertificateError(f"expected a verdict that the checker can re-derive, got one it rejects: {problem}")


def certificate(audit: Audit, from_arms: int | None = None) -> dict[str, Any]:
    """Return the certificate as data, not yet checked; vectors of at least `from_arms` arms are left to a bound."""
    if audit.verdict == "undecided":
        raise CertificateError("expected a verdict to certify, got 'undecided', which claims nothing; search further")
    if audit.verdict == "exploitable":
        _check_proven(audit)
        market = audit.market.with_horizon(audit.worst.horizon)
        return attack_certificate(market, audit.mechanism, audit.worst, audit.tolerance)
    case = audit_case(audit.market, audit.mechanism, audit.worst.agent)
    return _document(case, audit.verdict, audit.tolerance) | {"argument": _argument(audit, case, from_arms)}


def attack_certificate(
    market: Market, mechanism: Mechanism, witness: Witness, tolerance: float = 0.0
) -> dict[str, Any]:
    """Return the certificate of an attack in the market as data, not yet checked."""
    case = audit_case(market, mechanism, witness.agent)
    return _document(case, "exploitable", tolerance) | {"witness": _witness_data(witness)}


def _document(case: AuditCase, verdict: str, tolerance: float) -> dict[str, Any]:
    """Return what every certificate has."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_by": package_versions("cloneproof", "python-flint"),
        "agent": case.agent.name,
        "verdict": verdict,
        "tolerance": tolerance,
        "market": market_data(case.market),
        "mechanism": mechanism_data(case.running),
    }


def _check_proven(audit: Audit) -> None:
    """Refuse an attack whose payoffs are not enclosed in balls, and say what to do instead."""
    witness = audit.worst
    inexact = [payoff.kind for payoff in (witness.honest, witness.copied, witness.gain) if payoff.kind != "proven"]
    if not inexact:
        return
    sampled = any((sample.agent, sample.copies) == (witness.agent, witness.copies) for sample in audit.samples)
    instead = (
        "a sampled verdict has a replay record instead: cp.results.write_replay(audit, path)"
        if sampled
        else "there is no certificate and no replay record of a gain that was computed in floats"
    )
    raise CertificateError(f"expected a gain in ball arithmetic, got one of kind {inexact[0]!r}; {instead}")


def _argument(audit: Audit, case: AuditCase, from_arms: int | None) -> dict[str, Any]:
    """Return the vectors to sweep with their claimed bounds, and the number of arms from which one bound covers all.

    If the scan theorem covers everything: the law of scores. If that on bars does: its name, as nothing else is needed.
    """
    if scan_theorem(case) is not None:
        return _scan_argument(case)
    if case.running.bars and case.market.ends == "at-random":
        return _bars_argument(audit, case)
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


def _scan_argument(case: AuditCase) -> dict[str, Any]:
    """Return the exact possible means of the agent's originals, and how many coins a test counts."""
    support = case.agent.support
    if case.running.in_epochs:
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
        raise _continuous()
    means = sorted({Fraction(value) for value in support})
    listed = [f"{mean.numerator}/{mean.denominator}" for mean in means]
    return {"kind": SCAN, "law": {"scores": "binomial", "pulls": case.running.arm_rounds, "means": listed}}


def _bars_argument(audit: Audit, case: AuditCase) -> dict[str, Any]:
    most = audit.gain_at_most
    if most is None or most.kind != "proven" or most.high > 0:
        raise CertificateError(
            "expected a verdict by which bars on slots leave no gain at all, got one within a tolerance or without a "
            "proof, of which there is no certificate; put bars between the values of the prior"
        )
    if case.agent.support is None:
        raise _continuous()
    return {"kind": BARS}


def _continuous() -> CertificateError:
    return CertificateError(
        "expected an agent whose prior has finitely many values, got a continuous prior, which no certificate "
        "lists; certify a prior such as cp.Discrete"
    )


def _how_to_check_all_opponents(case: AuditCase) -> str:
    try:
        two_phase_game(case)
    except EngineError as refusal:
        return f"there is no certificate of it, since {refusal.reason}"
    return "audit with opponents='any'"


def _loosen(bound: float) -> float:
    """Return a slightly weaker bound than the one found; at most 0, which still proves the claim."""
    return min(0.0, bound + ROOM * (1 + abs(bound))) if bound <= 0 else bound


def _witness_data(witness: Witness) -> dict[str, Any]:
    return {
        "market": market_data(witness.market),
        "copies": {name: list(copies) for name, copies in witness.all_copies.items()},
        **{key: interval(getattr(witness, key)) for key in ("honest", "copied", "gain")},
    }


def interval(estimate: Estimate) -> dict[str, float]:
    """Return the estimate as a file has it."""
    return {"value": estimate.value, "error": estimate.error}
