"""Checking a certificate: read it, have the checker re-derive its verdict, and say what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from flint import ctx

from cloneproof.analysis.certificate.checker import attack, honesty
from cloneproof.analysis.certificate.contest_checker import contest_attack, contest_honesty, is_contest_mechanism
from cloneproof.analysis.certificate.document import KEYS, RejectedError, number, only, require
from cloneproof.analysis.certificate.facts import CertificateFacts, facts
from cloneproof.analysis.certificate.scan_checker import is_scan_argument, scan_honesty
from cloneproof.analysis.certificate.scan_facts import scan_facts
from cloneproof.errors import CloneproofError
from cloneproof.mechanisms.mechanism import mechanism_from_dict

PRECISION = 160  # bits


@dataclass(frozen=True)
class Verification:
    """Whether a certificate holds; and what it says in the checker's own words, or why it does not hold.

    Attributes
    ----------
    accepted : bool
        Whether it is a proof that was found again.
    statement : str
        What it says in the checker's own words, or why it does not hold.
    seconds : float
        How long it took.
    kind : {"certificate", "replay record"}
        "replay record" where samples were drawn again.
    replayed : bool
        Whether a record came out the same. The same samples are no proof, so that it is not `accepted`.
    about : tuple of (str, str)
        The mechanism, every prior, the horizon and the agent of an accepted certificate, which proves something of
        exactly these.
    out_of_time : bool
        Whether the time for a record was over before all of it was drawn; `statement` says what was checked by then.
    """

    accepted: bool
    statement: str
    seconds: float
    kind: Literal["certificate", "replay record"] = "certificate"
    replayed: bool = False
    about: CertificateFacts = ()
    out_of_time: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is a proof that was accepted, or a record that came out the same."""
        return self.accepted or self.replayed

    @property
    def outcome(self) -> str:
        """In a word."""
        if self.kind == "certificate":
            return "accepted" if self.accepted else "rejected"
        if self.out_of_time:
            return "undecided"
        return "replayed" if self.replayed else "not reproduced"


def check(data: dict[str, Any]) -> Verification:
    """Re-derive the verdict of a certificate's data."""
    began = time.monotonic()
    try:
        with ctx.workprec(PRECISION):
            tolerance = number(data["tolerance"])
            require(data["verdict"] in ("exploitable", "clone-proof"), "only exploitable and clone-proof are certified")
            exploitable = data["verdict"] == "exploitable"
            evidence = "witness" if exploitable else "argument"
            only(data, ("format", "version", "made_by", *KEYS, evidence), "the certificate")
            if is_scan_argument(data):
                statement = scan_honesty(data)
            elif is_contest_mechanism(data["mechanism"]):
                statement = (contest_attack if exploitable else contest_honesty)(data, tolerance)
            else:
                statement = (attack if exploitable else honesty)(data, tolerance)
        _check_built(data["mechanism"])
        return Verification(True, statement, time.monotonic() - began, about=_about(data))
    except RejectedError as problem:
        reason = str(problem)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as problem:
        reason = f"its data make no sense ({type(problem).__name__}: {problem})"
    return Verification(False, reason, time.monotonic() - began)


def _about(data: dict[str, Any]) -> CertificateFacts:
    return scan_facts(data) if is_scan_argument(data) else facts(data)


def _check_built(data: dict[str, Any]) -> None:
    """Besides the checker's own reading: what runs mechanisms makes this one of the data, and no other."""
    try:
        built = mechanism_from_dict(data)
    except CloneproofError as refusal:
        raise RejectedError(f"there is no such mechanism: {refusal}") from None
    again = {key: value for key, value in built.to_dict().items() if key != "parameters"}
    same = again == {key: value for key, value in data.items() if value is not None or key in again}
    require(same, "the mechanism that runs by this description has another one")
