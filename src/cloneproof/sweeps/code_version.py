"""The code version: what the bits of a result depend on, besides its configuration.

The version of the package, a digest of every source that can change a result, and the versions of the numerical
libraries: the last bits of a beta quantile are theirs. Chunks of different code versions never meet.

Which sources those are follows from imports, from what a worker runs on: nobody has to keep a list. Late imports and
those for types count as well, and a package that is named in a string counts with all its modules (that is how rules,
scores, restarts and reward families are found).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

from cloneproof._version import __version__

_ROOT = Path(__file__).parents[1]
_PACKAGE = "cloneproof"
_WORKER = f"{_PACKAGE}.sweeps.execution.tasks"  # what computes the contents of chunks
_KERNELS = "engines/monte_carlo/gpu/source"  # in another language, which has no imports to follow
LIBRARIES = ("numpy", "scipy", "numba", "python-flint")
_FROM = re.compile(rf"^[ \t]*from ({_PACKAGE}[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(rf"^[ \t]*import ({_PACKAGE}[\w.]*)", re.MULTILINE)
_QUOTED = re.compile(rf"\"({_PACKAGE}\.[\w.]+)\"")
_WORD = re.compile(r"\w+")


@cache
def code_version() -> str:
    """In words that a message can show: `cloneproof 0.1.0, sources 8f3a.., numpy 2.4.6, ..`."""
    libraries = [f"{name} {version(name)}" for name in LIBRARIES]
    return ", ".join([f"cloneproof {__version__}", f"sources {source_digest(_ROOT)}", *libraries])


def source_digest(root: Path) -> str:
    """A digest of the sources that results depend on, by their names and contents; `root` is a copy of the package."""
    digest = blake2b(digest_size=6)
    kernels = {path.name: path.read_bytes() for path in (root / _KERNELS).glob("*")}
    for name, text in sorted((sources(root) | kernels).items()):
        digest.update(f"{name} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


def sources(root: Path) -> dict[str, bytes]:
    """Every module that a worker imports, also indirectly or late, with its text.

    The package's own `__init__` gathers names for users; its text counts, what it imports does not.
    """
    files = _modules(root)
    found: dict[str, bytes] = {}
    ahead = [_WORKER]
    while ahead:
        name = ahead.pop()
        if name in found:
            continue
        found[name] = files[name].read_bytes()
        if name != _PACKAGE:
            ahead.append(name.rpartition(".")[0])  # a package is loaded before its modules
            ahead.extend(_imports(found[name].decode(), files))
    return found


def _modules(root: Path) -> dict[str, Path]:
    files = {path.relative_to(root).with_suffix("").parts: path for path in root.rglob("*.py")}
    return {".".join([_PACKAGE, *parts]).removesuffix(".__init__"): path for parts, path in files.items()}


def _imports(text: str, known: Mapping[str, Path]) -> list[str]:
    """The modules of the package that a source names; too many rather than too few."""
    named = [match for match in _IMPORT.findall(text) if match in known]
    for module, names in _FROM.findall(text):
        inside = [f"{module}.{word}" for word in _WORD.findall(names)]
        named += [name for name in (module, *inside) if name in known]
    for package in _QUOTED.findall(text):
        named += [name for name in known if f"{name}.".startswith(f"{package}.")]
    return named
