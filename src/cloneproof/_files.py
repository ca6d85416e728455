"""Write files atomically."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cloneproof.errors import FileError, brief


def checked_path(path: object) -> Path:
    """Return the path, or raise an error."""
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"expected the path of a file, got {brief(path)}; give its name as text")
    return Path(path)


def check_place(path: str | Path) -> None:
    """Refuse a path where no file can be written, before any work."""
    target = checked_path(path).resolve()
    if target.is_dir():
        raise FileError(f"expected a file to write, got the folder {path}; add a name")
    if not target.parent.is_dir():
        raise FileError(f"expected a folder to write {path} into, got none; make {target.parent} first")
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise FileError(f"expected a place that may be written, got {path}, which may not; choose another")


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write to a temporary file in the same folder, then rename: a reader sees the old content or the new one."""
    target = checked_path(path).resolve()  # through a link, to the file that it stands for
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
