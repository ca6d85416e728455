"""Digests of sources: stored results and compiled code are reused only if what computed them is unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cloneproof._version import __version__

PACKAGE_ROOT: Final = Path(__file__).parents[1]
LIBRARIES = ("numpy", "scipy", "numba")
_KERNELS = ("runs/gpu/source/*", "runs/native/*.[ch]*")  # in another language


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


def package_digest(root: Path = PACKAGE_ROOT) -> str:
    """Return the digest of every source of the package, of which `root` may be a copy."""
    return source_digest([*root.rglob("*.py"), *(path for kernels in _KERNELS for path in root.glob(kernels))], root)


@cache
def code_version() -> str:
    """Return the versions in words for a message: `cloneproof 0.1.0, sources 8f3a.., numpy 2.4.6, ..`.

    Numerical libraries are included, since they decide the last bits of a beta quantile.
    """
    libraries = [f"{name} {version(name)}" for name in LIBRARIES if name != "numba" or find_spec("numba")]
    return ", ".join([f"cloneproof {__version__}", f"sources {package_digest()}", *libraries])
