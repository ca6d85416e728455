"""Packages that cloneproof can work with but does not need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from cloneproof.errors import EngineError


def optional(module: str, extra: str) -> ModuleType:
    """The module, or one sentence that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # it is installed but broken: the message of the package says more
        raise EngineError(
            f"expected the package {module.partition('.')[0]!r}, which is not installed; "
            f"run: pip install 'cloneproof[{extra}]'"
        ) from None
