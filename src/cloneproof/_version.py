"""Version, in one place: the package, its metadata and the sweeps read it here."""

from __future__ import annotations

__version__ = "0.1.0"


def package_versions(*names: str) -> dict[str, str]:
    """Return the versions of installed packages, and of "python" itself."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in names:
        try:
            found[name] = platform.python_version() if name == "python" else version(name)
        except PackageNotFoundError:  # a source tree that is not installed
            found[name] = "unknown"
    return found
