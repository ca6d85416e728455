"""From an audit to a certificate: its verdict, and what the checker needs to find it again."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cloneproof._files import write_whole
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.analysis.certificate.document import FORMAT, VERSION
from cloneproof.analysis.certificate.verification import check
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CertificateError
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

ROOM = 1e-9  # by how much a claimed bound is looser than what was found, so that other roundings still meet it


def write_certificate(audit: Audit, path: str | Path) -> None:
    """Write the certificate of an exact verdict, whole or not at all; it has passed the checker by then.

    Sampled verdicts have none: what can be replayed is a record of seeds and counts, and not a proof. Nor has
    `undecided`, which claims nothing.
    """
    data = checked_certificate(audit)
    try:
        write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
    except OSError as problem:
        raise CertificateError(f"expected a folder to write {path} into, got: {problem}; make it first") from None


def checked_certificate(audit: Audit) -> dict[str, Any]:
    """The certificate as data; the checker has accepted it."""
    data = certificate(audit)
    found = check(data)
    for arms in _later_starts(audit) if audit.verdict == "clone-proof" else ():
        if found.accepted:
            break
        data = certificate(audit, arms)
        found = check(data)
    if not found.accepted:
        raise CertificateError(
            f"expected a verdict that the checker can re-derive, got one it rejects: {found.statement}"
        )
    return data


def certificate(audit: Audit, from_arms: int | None = None) -> dict[str, Any]:
    """The certificate as data, not yet checked; vectors of at least `from_arms` arms are left to a bound."""
    if audit.verdict == "undecided":
        raise CertificateError("expected a verdict to certify, got 'undecided', which claims nothing; search further")
    witness = audit.worst
    if audit.verdict == "exploitable" and any(
        own.kind != "proven" for own in (witness.honest, witness.copied, witness.gain)
    ):
        raise CertificateError(
            f"expected a gain in exact arithmetic, got one of kind {witness.gain.kind!r}; a sampled verdict has a "
            "replay record and no certificate: cp.write_replay(audit, path)"
        )
    horizon = witness.horizon if audit.verdict == "exploitable" else audit.market.horizon
    market = audit.market.with_horizon(horizon)
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": {name: _version(name) for name in ("cloneproof", "python-flint")},
        "agent": witness.agent,
        "verdict": audit.verdict,
        "tolerance": audit.tolerance,
        "market": _market(market),
        "mechanism": _mechanism(audit.mechanism, market),
    }
    return data | (
        {"witness": _witness(witness)} if audit.verdict == "exploitable" else {"argument": _argument(audit, from_arms)}
    )


def _argument(audit: Audit, from_arms: int | None) -> dict[str, Any]:
    """The vectors to sweep, each with its claimed bound, and from how many arms on one bound covers all."""
    if not audit.thresholds:
        raise CertificateError(
            "expected a complete check against all opponents, got a clone-proof verdict of another kind; "
            "audit with opponents='any'"
        )
    score = audit.mechanism.at_horizon(len(audit.market.agents), audit.market.horizon).scoring
    originals = len(audit.worst.copies)
    first = from_arms or max(score.max_arms or 0, originals) + 1
    listed = [
        {"copies": list(own.copies), "bound": _loosened(own.gain.high) if not audit.tolerance else 0.0}
        for own in audit.tried
        if sum(own.copies) < first
    ]
    return {"copies": listed, "from_arms": first, "bound": 0.0}


def _later_starts(audit: Audit) -> list[int]:
    """Where the bound may start instead: after the vectors that were swept one by one."""
    most = max((sum(own.copies) for own in audit.tried), default=0)
    return [most, most + 1] if most else []


def _loosened(bound: float) -> float:
    """A bound that rests on a little less than was found; 0 is the most that still proves something."""
    return min(0.0, bound + ROOM * (1 + abs(bound))) if bound <= 0 else bound


def _witness(witness: Witness) -> dict[str, Any]:
    return {
        "market": _market(witness.market),
        "copies": {name: list(copies) for name, copies in witness.all_copies.items()},
        **{key: _interval(getattr(witness, key)) for key in ("honest", "copied", "gain")},
    }


def _interval(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "error": estimate.error}


def _market(market: Market) -> dict[str, Any]:
    """The market as data; continuous priors, which only an opponent that does not matter can have, are left out."""
    agents = []
    for agent in market.agents:
        atoms = [[list(atom) for atom in prior.atoms] for prior in agent.priors if prior.atoms is not None]
        agents.append({"name": agent.name, "priors": atoms if len(atoms) == agent.count else None})
    rewards = market.family.name
    return {"horizon": market.horizon, "share": market.share, "rewards": rewards, "agents": agents}


def _mechanism(mechanism: Mechanism, market: Market) -> dict[str, Any]:
    """The mechanism that runs in the market, as data and without what says the same twice."""
    data = mechanism.at_horizon(len(market.agents), market.horizon).to_dict()
    return {key: value for key, value in data.items() if key not in ("parameters", "fallback")}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a source tree that is not installed
        return "unknown"
