"""Checking a certificate: read it, have the checker re-derive its verdict, and say what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flint import ctx

from cloneproof.analysis.certificate.checker import attack, honesty
from cloneproof.analysis.certificate.document import RejectedError, number, read_document, require

PRECISION = 160  # bits


@dataclass(frozen=True)
class Verification:
    """Whether a certificate holds; and what it says in the checker's own words, or why it does not hold."""

    accepted: bool
    statement: str
    seconds: float


def verify(path: str | Path) -> Verification:
    """Check a certificate file; a `CertificateError` says that there is none of this version to read."""
    return check(read_document(path))


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
