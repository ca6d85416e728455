"""A stamp of the sources that kernels are compiled from, so that an edit is never answered from an old cache.

Numba looks at the file of the cached function alone, not at those of the functions that it calls. So only the
outermost function of a kernel is cached on disk, and it is made with this stamp in its closure, which is part of the
key of the cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("engines/monte_carlo", "mechanisms/rules", "market/rewards")
_GPU = _ROOT / "engines/monte_carlo/gpu"  # no compiled code depends on it
_FILES = (
    "_randomness.py", "engines/reference.py", "mechanisms/beta_variate.py", "mechanisms/kl_bound.py",
    "mechanisms/online/level.py", "mechanisms/online/streams.py",
)  # fmt: skip


@cache
def source_stamp() -> int:
    """A number from 1 that changes with what compiled code depends on."""
    files = [path for folder in _FOLDERS for path in (_ROOT / folder).rglob("*.py") if path.parent != _GPU]
    return stamp_of(sorted([*files, *(_ROOT / name for name in _FILES)]))


def stamp_of(files: Iterable[Path]) -> int:
    """A number from 1 that changes with the content of these files."""
    digest = blake2b(digest_size=7)
    for path in files:
        digest.update(path.read_bytes())
    return 1 + int.from_bytes(digest.digest())
