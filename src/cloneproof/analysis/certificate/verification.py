"""Checking a certificate: read it, have the checker re-derive its verdict, and say what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from flint import ctx

from cloneproof.analysis.certificate.checker import attack, honesty
from cloneproof.analysis.certificate.document import RejectedError, number, require

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
            statement = (attack if data["verdict"] == "exploitable" else honesty)(data, tolerance)
        return Verification(True, statement, time.monotonic() - began)
    except RejectedError as problem:
        reason = str(problem)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as problem:
        reason = f"its data make no sense ({type(problem).__name__}: {problem})"
    return Verification(False, reason, time.monotonic() - began)
