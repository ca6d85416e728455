"""Digests of sources: stored results and compiled code are reused only if what they depend on is unchanged.

The sources follow from the imports of the module that computes, including late ones and those for types. A package
named in a string counts with all its modules, since rules, scores, restarts and reward families are found that way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cloneproof._version import __version__

PACKAGE_ROOT: Final = Path(__file__).parent
LIBRARIES = ("numpy", "scipy", "numba", "python-flint")
WORKER = "cloneproof.sweeps.tasks"  # computes the contents of chunks
_KERNELS = "engines/monte_carlo/gpu/source"  # in another language, which has no imports to follow
_FROM = re.compile(r"^[ \t]*from (cloneproof[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import (cloneproof[\w.]*)", re.MULTILINE)
_QUOTED = re.compile(r"\"(cloneproof\.[\w.]+)\"")


def source_digest(files: Iterable[Path], root: Path = PACKAGE_ROOT) -> str:
    """Return twelve hexadecimal digits that change with the names (below the root) and the contents of these files.

    >>> source_digest([PACKAGE_ROOT / "errors.py"]) == source_digest([PACKAGE_ROOT / "_version.py"])
    False
    """
    digest = blake2b(digest_size=6)
    for path in sorted(files):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()


@cache
def code_version() -> str:
    """Return the versions in words for a message: `cloneproof 0.1.0, sources 8f3a.., numpy 2.4.6, ..`.

    Numerical libraries are included, since they decide the last bits of a beta quantile.
    """
    libraries = [f"{name} {version(name)}" for name in LIBRARIES if name != "numba" or find_spec("numba")]
    return ", ".join([f"cloneproof {__version__}", f"sources {worker_digest(PACKAGE_ROOT)}", *libraries])


def worker_digest(root: Path) -> str:
    """Return a digest of the sources that the results of a sweep depend on; `root` is a copy of the package."""
    return source_digest([*sources(WORKER, root).values(), *(root / _KERNELS).glob("*")], root)


def sources(start: str, root: Path = PACKAGE_ROOT) -> dict[str, Path]:
    """Return every module of the package that a module imports, also indirectly or late.

    The package's own `__init__` counts, but not what it imports for users.
    """
    files = _modules(root)

    def imports(name: str, file: Path) -> Iterable[str]:
        return () if name == "cloneproof" else [name.rpartition(".")[0], *_imports(file, files)]

    return closure(start, files.get, imports)


def closure(
    start: str, find: Callable[[str], Path | None], imports: Callable[[str, Path], Iterable[str]]
) -> dict[str, Path]:
    """Return the files of a module and of everything it depends on; files that are not found are left out."""
    found: dict[str, Path] = {}
    ahead = [start]
    while ahead:
        name = ahead.pop()
        if name not in found and (file := find(name)) is not None:
            found[name] = file
            ahead += imports(name, file)
    return found


def _modules(root: Path) -> dict[str, Path]:
    files = {path.relative_to(root).with_suffix("").parts: path for path in root.rglob("*.py")}
    return {".".join(["cloneproof", *parts]).removesuffix(".__init__"): path for parts, path in files.items()}


def _imports(file: Path, known: dict[str, Path]) -> list[str]:
    """Return the modules of the package that a source names; errs on the side of too many."""
    text = file.read_text(encoding="utf-8")
    named = [match for match in _IMPORT.findall(text) if match in known]
    for module, names in _FROM.findall(text):
        inside = [f"{module}.{word}" for word in re.findall(r"\w+", names)]
        named += [name for name in (module, *inside) if name in known]
    for package in _QUOTED.findall(text):
        named += [name for name in known if f"{name}.".startswith(f"{package}.")]
    return named
