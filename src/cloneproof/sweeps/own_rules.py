"""Somebody's own rules in a sweep: by what name a worker imports them, with a digest of their sources.

A part of a sweep is text. A rule of one's own is in it as the name that `cp.rule` took, its options, and a digest of
its module and of the modules beside it that it imports. So results of another version of the module are never mixed
with these: the key of the part covers the digest, and a worker whose module has another one refuses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from cloneproof.errors import SweepError
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_from_dict
from cloneproof.mechanisms.rule import Rule, installed_rules, rule, rule_from_dict

LEVELS = ("agent", "arm")


def with_own_rules(mechanism: Mechanism) -> dict[str, Any]:
    """`Mechanism.to_dict` with own rules as a worker can import them."""
    data = mechanism.to_dict()
    for level in LEVELS:
        used = getattr(mechanism, level)
        if used is not None and used.source:
            data[level] = {"own": used.source, "options": dict(used.options), "digest": rule_digest(used.source)}
    if mechanism.fallback is not None:
        data["fallback"] = with_own_rules(mechanism.fallback)
    return data


def mechanism_with_own_rules(data: Mapping[str, Any]) -> Mechanism:
    """The inverse, on a worker."""
    return mechanism_from_dict(data, _rule)


def _rule(data: Mapping[str, Any]) -> Rule:
    if "own" not in data:
        return rule_from_dict(data)
    made = rule(data["own"], **data["options"])
    if (found := rule_digest(data["own"])) != data["digest"]:
        raise SweepError(
            f"expected every worker to have the driver's version of {data['own']!r} (sources {data['digest']}), got "
            f"another ({found}); put the same files on all and start again"
        )
    return made


def rule_digest(source: str) -> str:
    """A digest of the module of a rule, and of the modules beside it that it imports, also indirectly."""
    module = (source if ":" in source else installed_rules()[source]).partition(":")[0]
    top = _file(module.partition(".")[0])
    if top is None:
        raise SweepError(f"expected {source!r} in a file of Python that a digest can cover, got none; put it into one")
    folder, digest = top.parent if top.name != "__init__.py" else top.parent.parent, blake2b(digest_size=6)
    found: dict[str, bytes] = {}
    ahead = [module]
    while ahead:
        name = ahead.pop()
        place = _file(name)
        if name in found or place is None or not _beside(place, folder, top):
            continue
        found[name] = place.read_bytes()
        ahead += [name.rpartition(".")[0]] if "." in name else []
        ahead += _imports(found[name], name, place)
    for name, text in sorted(found.items()):
        digest.update(f"{name} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


def _beside(place: Path, folder: Path, top: Path) -> bool:
    """Whether a module is the user's: of the same package, or in the same folder unless that has installed packages."""
    if top.name == "__init__.py" or folder.name in ("site-packages", "dist-packages"):
        return place == top or (top.name == "__init__.py" and place.is_relative_to(top.parent))
    return place.is_relative_to(folder) and "site-packages" not in place.parts


def _imports(text: bytes, name: str, place: Path) -> Iterator[str]:
    """The modules that a source names in its imports; too many rather than too few."""
    package = name if place.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package) if node.level else str(node.module)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    """The file of a module of Python, if it has one."""
    try:
        spec = find_spec(module)
    except (ImportError, AttributeError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin).resolve()
