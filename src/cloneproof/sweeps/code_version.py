"""The code version: what the bits of a result depend on, besides its configuration.

The version of the package, a digest of every source that can change a result, and the versions of the numerical
libraries: the last bits of a beta quantile are theirs. Chunks of different code versions never meet.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

from cloneproof._version import __version__

_ROOT = Path(__file__).parents[1]
_FOLDERS = ("bounds", "market", "mechanisms", "engines", "analysis")
_FILES = ("_randomness.py", "_checks.py", "_discovery.py", "sweeps/configuration.py", "sweeps/execution/tasks.py")
_LIBRARIES = ("numpy", "scipy", "numba", "python-flint")


@cache
def code_version() -> str:
    """In words that a message can show: `cloneproof 0.1.0, sources 8f3a.., numpy 2.4.6, ..`."""
    libraries = [f"{name} {version(name)}" for name in _LIBRARIES]
    return ", ".join([f"cloneproof {__version__}", f"sources {source_digest(_ROOT)}", *libraries])


def source_digest(root: Path) -> str:
    """A digest of the sources under the root of the package, by their names and contents."""
    files = [path for folder in _FOLDERS for path in (root / folder).rglob("*.py")]
    digest = blake2b(digest_size=6)
    for path in sorted([*files, *(root / name for name in _FILES)]):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()
