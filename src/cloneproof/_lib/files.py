"""Write files atomically, and devices and pipes directly.

Digests of sources: stored results and compiled code are reused only if what computed them is unchanged.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cloneproof._version import __version__
from cloneproof.errors import CloneproofError, FileError, brief


def checked_path(path: object) -> Path:
    """Return the path, or raise an error."""
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"expected the path of a file, got {brief(path)}; give its name as text")
    return Path(path)


def check_place(path: str | Path, error: type[CloneproofError] = FileError) -> None:
    """Refuse a path where no file can be written, before any work."""
    place = checked_path(path)
    target = place.resolve()
    if target.is_dir():
        raise error(f"expected a file to write, got the folder {path}; add a name")
    if _is_special(place):
        writable = os.access(place, os.W_OK) and not place.is_socket()
    elif target.parent.is_dir():
        writable = _takes_files(target.parent) and (not target.exists() or os.access(target, os.W_OK))
    else:
        raise error(f"expected a folder to write {path} into, got none; make {target.parent} first")
    if not writable:
        raise error(f"expected a place that may be written, got {path}, which may not; choose another")


def _is_special(place: Path) -> bool:
    """Return whether it is there and neither a file nor a folder: a device, a pipe, a socket."""
    return place.exists() and not place.is_file() and not place.is_dir()


def _takes_files(folder: Path) -> bool:
    """Return whether a file can be made there; permissions alone do not tell, as in /proc."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def write_whole(path: str | Path, content: str | bytes, error: type[CloneproofError] = FileError) -> None:
    """Write to a temporary file in the same folder, then rename: a reader sees the old content or the new one.

    A link is followed to the file that it stands for. What is no regular file, such as a device or a named pipe, is
    never replaced: the content goes into it.
    """
    place, data = checked_path(path), content.encode() if isinstance(content, str) else content
    try:
        if _is_special(place):
            with place.open("wb") as stream:
                stream.write(data)
        else:
            _replace(place.resolve(), data)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise error(f"expected to write {path}, got: {why}; make room or its folder, or choose another place") from None


def _replace(target: Path, data: bytes) -> None:
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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
    from importlib.metadata import version  # late: it loads a parser of mails

    libraries = [f"{name} {version(name)}" for name in LIBRARIES if name != "numba" or find_spec("numba")]
    return ", ".join([f"cloneproof {__version__}", f"sources {package_digest()}", *libraries])
