"""SciPy's normal and beta quantiles for compiled code: the same functions, hence the same bits as in Python.

They are linked by name and not by address, so that what uses them can be cached on disk. Importing this module teaches
the compiler `scipy.special.ndtri` and `scipy.special.betaincinv`, also inside a user's rule or reward family.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from numba import types
from numba.extending import get_cython_function_address, overload
from scipy.special import betaincinv, ndtri

__all__ = ["betaincinv", "ndtri"]

_MODULE = "scipy.special.cython_special"


def _linked(name: str, exported: str, arguments: int) -> Any:  # noqa: ANN401 (numba has no types)
    """A function of `cython_special` as an external symbol; its last argument is Cython's and stays 0."""
    symbol = f"cloneproof_{name}"
    llvm.add_symbol(symbol, get_cython_function_address(_MODULE, exported))
    return types.ExternalFunction(symbol, types.float64(*[types.float64] * arguments, types.int32))


_native_ndtri = _linked("ndtri", "ndtri", 1)
_native_betaincinv = _linked("betaincinv", "__pyx_fuse_0betaincinv", 3)  # fuse 0: the one for doubles


@overload(ndtri)
def _ndtri(u):
    return lambda u: _native_ndtri(float(u), 0)


@overload(betaincinv)
def _betaincinv(a, b, u):
    return lambda a, b, u: _native_betaincinv(float(a), float(b), float(u), 0)
