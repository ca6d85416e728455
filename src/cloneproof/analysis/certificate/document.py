"""Certificates as files and as data: read whole or refused, every number an exact fraction. No mathematics yet."""

from __future__ import annotations

import json
from collections.abc import Collection
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from cloneproof.errors import CertificateError, brief

FORMAT, VERSION = "cloneproof certificate", 1
KEYS = ("agent", "verdict", "tolerance", "market", "mechanism")

LARGEST = 20_000  # scores of one law: beyond it a certificate is refused, not checked
LONGEST = 1_000_000  # rounds of exploration of one arm: at low rates most of them are never a success


def read_json(path: str | Path) -> Any:  # noqa: ANN401
    """Whatever JSON there is in a file."""
    if not isinstance(path, str | PathLike):
        raise CertificateError(f"expected the path of a certificate, got {brief(path)}; give its name as text")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise CertificateError(f"expected a readable certificate, got {path}: {problem}; check the path") from None
    except (ValueError, RecursionError) as problem:
        raise CertificateError(
            f"expected a whole certificate, got {path}, which ends early or is not JSON ({problem}); write it again"
        ) from None


def whole_document(data: Any, path: str | Path, form: str, version: int, keys: tuple[str, ...]) -> dict[str, Any]:  # noqa: ANN401
    """The data, if they are of that format and version and have these keys."""
    kind = form.removeprefix("cloneproof ")
    if not isinstance(data, dict) or data.get("format") != form:
        raise CertificateError(f"expected a {kind}, got other JSON in {path}; give a file of `cloneproof audit`")
    if data.get("version") != version or data["version"] is True:
        raise CertificateError(
            f"expected a {kind} of version {version}, got version {brief(data.get('version'))}; "
            "check it with the cloneproof that wrote it"
        )
    missing = [key for key in keys if key not in data]
    if missing:
        raise CertificateError(f"expected a whole {kind}, got one without {', '.join(missing)}; write it again")
    return data


class RejectedError(Exception):
    """What the certificate says is not so, or cannot be checked here."""


def require(condition: bool, otherwise: str) -> None:
    """Reject a certificate of which this is not so."""
    if not condition:
        raise RejectedError(otherwise)


def number(value: object, least: float = 0) -> Fraction:
    """The exact fraction that a number of the file is."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RejectedError(f"{value!r} is not a number")
    require(value >= least, f"{value!r} is too small")
    return Fraction(value)


def whole(value: object, most: int = 10**15, least: int = 1) -> int:
    """A whole number from 1, or from `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RejectedError(f"{value!r} is not a whole number")
    require(least <= value <= most, f"{value!r} is not from {least} to {most}, which can be checked")
    return value


def only(data: Any, keys: Collection[str], what: str) -> None:  # noqa: ANN401
    """Reject data with keys that are not known: nobody would have checked what they say."""
    require(isinstance(data, dict), f"{what} is not described by names and values")
    for key in data:
        require(key in keys, f"{what} has {brief(key)}, which is not known here")
