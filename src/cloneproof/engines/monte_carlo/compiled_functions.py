"""Decorators for compiled functions that only compiled code calls.

Numba otherwise makes two wrappers of each, for callers in Python and in C. A wrapper of a function that takes records
of arrays unpacks every array of them: that took a third of the time of compiling the kernels.
"""

from __future__ import annotations

from typing import Any

import numba as nb

_OPTIONS: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled: Any = nb.njit(**_OPTIONS)
"""A function that others call."""

inlined: Any = nb.njit(forceinline=True, **_OPTIONS)
"""A function that becomes part of its callers: a body of a loop, or a step that is named for readability."""
