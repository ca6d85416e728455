"""Finished rows on disk: one file each, whole or absent, so that a run that was killed goes on where it stopped.

A stored row counts only for the same setting and the same code: its key holds the scale, the seed, the versions of what
computes, and a hash of every source file that could change a number (all of cloneproof but what draws and what talks to
people, and of the rows only the own one).
"""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cloneproof.errors
from cloneproof._files import write_whole
from cloneproof.reproduce.findings import Findings, to_dict
from cloneproof.reproduce.row import Setting

PACKAGES = ("cloneproof", "numpy", "scipy", "numba", "python-flint", "matplotlib")
PRESENTATION = ("report", "cli", "serve", "sweeps")  # rooms that change how a result is shown, and not what it is


def load(folder: Path, name: str, setting: Setting) -> dict[str, Any] | None:
    """The finished row with its seconds, or None if it is absent, of another setting or code, or unreadable."""
    try:
        data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.get("key") == key(name, setting) else None


def store(folder: Path, name: str, setting: Setting, findings: Findings, seconds: float) -> None:
    """Write the finished row, whole or not at all."""
    data = {"key": key(name, setting), "seconds": seconds, "findings": to_dict(findings)}
    write_whole(folder / f"{name}.json", json.dumps(data, allow_nan=False) + "\n")


def key(name: str, setting: Setting) -> dict[str, Any]:
    """What a stored row must agree with."""
    return {
        "row": name,
        "scale": setting.scale,
        "seed": setting.seed,
        "versions": versions(),
        "sources": sources_hash(name),
    }


def versions() -> dict[str, str]:
    """What computes the numbers."""
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            numbers[package] = "not installed as a package"
    return numbers


@cache
def sources_hash(name: str) -> str:
    """A hash of all code that the row's numbers could depend on."""
    root, module = Path(cloneproof.errors.__file__).parent, f"{name.replace('-', '_')}.py"
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        other_row = parts[:2] == ("reproduce", "rows") and not parts[-1].startswith("_") and parts[-1] != module
        if parts[0] not in PRESENTATION and not other_row:
            digest.update("/".join(parts).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
