"""Checking a certificate: read it, have the checker re-derive its verdict, and say what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from flint import ctx

from cloneproof.analysis.certificate.checker import attack, honesty
from cloneproof.analysis.certificate.document import RejectedError, number, require
from cloneproof.analysis.certificate.scan_checker import is_scan_argument, scan_honesty

PRECISION = 160  # bits


@dataclass(frozen=True)
class Verification:
    """Whether a certificate holds; and what it says in the checker's own words, or why it does not hold.

    `kind` is "certificate", or "replay record" where samples were drawn again. The same samples are no proof, so a
    record that holds is `replayed` and not `accepted`.
    """

    accepted: bool
    statement: str
    seconds: float
    kind: Literal["certificate", "replay record"] = "certificate"
    replayed: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is a proof that was accepted, or a record that came out the same."""
        return self.accepted or self.replayed

    @property
    def outcome(self) -> str:
        """In a word."""
        if self.kind == "certificate":
            return "accepted" if self.accepted else "rejected"
        return "replayed" if self.replayed else "not reproduced"


def check(data: dict[str, Any]) -> Verification:
    """Re-derive the verdict of a certificate's data."""
    began = time.monotonic()
    try:
        with ctx.workprec(PRECISION):
            tolerance = number(data["tolerance"])
            require(data["verdict"] in ("exploitable", "clone-proof"), "only exploitable and clone-proof are certified")
            if is_scan_argument(data):
                statement = scan_honesty(data)
            else:
                statement = (attack if data["verdict"] == "exploitable" else honesty)(data, tolerance)
        return Verification(True, statement, time.monotonic() - began)
    except RejectedError as problem:
        reason = str(problem)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as problem:
        reason = f"its data make no sense ({type(problem).__name__}: {problem})"
    return Verification(False, reason, time.monotonic() - began)
