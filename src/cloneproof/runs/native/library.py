"""The kernels for cores: the library that is loaded, and how arrays get there.

A job goes to C++ as records whose fields have 8 bytes each: whole numbers, floats, or addresses of arrays. `record`
writes them in the order in which they are given, and asserts that a struct of the headers has these fields in it.

The library carries the digest of the sources that it was built from. In a checkout it is built anew where that is not
theirs; elsewhere such a library is refused.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from cloneproof.errors import EngineError
from cloneproof.runs.native import build

CHECKOUT: Final = build.FOLDER.parents[3] / "setup.py"  # beside `src`, where sources are edited
INSTALL: Final = "install a C++ compiler (on Debian: apt install g++) and install cloneproof again"


class KernelRecord(NamedTuple):
    """A struct for C++: its words, and the arrays and records that it points to."""

    words: np.ndarray[Any, np.dtype[np.int64]]
    kept: tuple[Any, ...]

    @property
    def address(self) -> int:
        return int(self.words.ctypes.data)


def record(struct: str, **fields: Any) -> KernelRecord:  # noqa: ANN401 (numbers, arrays, records)
    """Return a struct of the headers; an empty array is no address.

    >>> record("Page", first=np.zeros(0), rest=0.5)
    Traceback (most recent call last):
    AssertionError: Page has other fields in C++: none
    """
    there = _fields(struct)
    assert tuple(fields) == there, f"{struct} has other fields in C++: {', '.join(there) or 'none'}"
    words = np.zeros(len(fields), np.int64)
    for place, value in enumerate(fields.values()):
        if isinstance(value, KernelRecord):
            words[place] = value.address
        elif isinstance(value, np.ndarray):
            assert value.flags.c_contiguous
            assert value.itemsize == 8
            words[place] = value.ctypes.data if value.size else 0
        elif isinstance(value, float):
            words.view(np.float64)[place] = value
        else:
            words[place] = value
    return KernelRecord(words, tuple(fields.values()))


@cache
def _fields(struct: str) -> tuple[str, ...]:
    """Return the names of the fields of a struct, from the header that has it; functions follow them."""
    for header in build.FOLDER.glob("*.h"):
        form = rf"^struct {struct} {{\n(.*?)(?=^}};|^    [^;]*\) const {{|^\n)"
        found = re.search(form, header.read_text(), re.M | re.S)
        if found:
            lines = re.sub(r"//.*", "", found[1]).split(";")
            return tuple(name for line in lines for name in re.findall(r"(\w+)\s*(?:,|$)", line.strip()))
    return ()


def call(name: str, *records: KernelRecord) -> None:
    """Call a function of the library with the addresses of records; the interpreter is released meanwhile."""
    getattr(library(), name)(*(ctypes.c_void_p(each.address) for each in records))


@cache
def missing() -> str | None:
    """Say why there are no kernels; None if there are."""
    try:
        library()
    except EngineError as problem:
        return str(problem)
    return None


@cache
def library() -> ctypes.CDLL:
    """Load the library for this processor; in a checkout of the sources, build it first where they have changed."""
    return loaded(build.FOLDER, CHECKOUT.exists())


def loaded(folder: Path, checkout: bool) -> ctypes.CDLL:
    """Load the library of a folder, built from the sources there."""
    path, digest = folder / build.best_name(), build.source_digest(folder)
    if checkout and not _is_of(path, digest):
        _build(folder, path, digest)
    if not path.exists():
        raise EngineError(f"expected compiled kernels, got none; {INSTALL}")
    if not _is_of(path, digest):
        raise EngineError(f"expected kernels built from the C++ sources installed here, got others; {INSTALL}")
    return ctypes.CDLL(str(path))


def _is_of(path: Path, digest: str) -> bool:
    """Whether a library was built from sources of this digest, which is text in it: a loaded one cannot be replaced."""
    return path.exists() and f"\0cloneproof sources {digest}\0".encode() in path.read_bytes()


def _build(folder: Path, path: Path, digest: str) -> None:
    """Build the library of a checkout, one process at a time."""
    import fcntl  # late: Windows has none, and builds nothing here

    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_of(path, digest):  # another process has built it meanwhile
            return
        if sys.stderr.isatty():
            print("building the kernels, a few seconds", file=sys.stderr)
        try:
            build.build(folder, folder, path.name)
        except FileNotFoundError:
            return  # no compiler: it is said below what to do
        except subprocess.CalledProcessError as problem:
            raise EngineError(f"the kernels do not compile:\n{problem.stderr.strip()}") from None
        except OSError as problem:
            raise EngineError(f"the kernels cannot be built: {problem}; make {folder} writable") from None
