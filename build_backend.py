"""Setuptools, with a C++ compiler from the package index where the machine has none."""

import runpy
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 (the hooks of PEP 517 and PEP 660)

BUILD = "src/cloneproof/runs/native/build.py"
ZIG = "ziglang>=0.13"  # 101 MB; its C++ gives the same bits


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:  # noqa: ANN401
    """Return what a build needs."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:  # noqa: ANN401
    """Return what an editable installation needs."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler()]


def _compiler() -> list[str]:
    return [] if runpy.run_path(BUILD)["compiler"]() else [ZIG]
