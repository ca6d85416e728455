"""A user's rule or reward family, compiled as it is, for a kernel that calls it by its address.

A pure function of numbers compiles; functions that it calls, through its closure or its module, are compiled with it.
What the compiler cannot take (Python objects, text, ..) is left to the reference simulator, and so is a run in which
the function raises. Compiled code counts in 64-bit integers and freezes the globals that it reads, as it may: a rule
is a pure function of numbers.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import RLock
from types import CellType, FunctionType
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core.errors import NumbaError
from numba.extending import intrinsic, is_jitted

from cloneproof import _randomness
from cloneproof.engines.monte_carlo.randomness import compiled_quantiles  # noqa: F401 (teaches the compiler two quantiles)
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word

carray: Any = nb.carray  # type: ignore[attr-defined]
_lock = RLock()  # one thread compiles, the others wait for its result
_PRIORITY = nb.float64(nb.int64, nb.float64, nb.int64, nb.float64, nb.float64, nb.float64, nb.int64)
_POINTERS: Any = nb.types.CPointer
_AMONG = nb.float64(*_PRIORITY.args, _POINTERS(nb.int64), _POINTERS(nb.float64))
_QUANTILE = nb.float64(nb.float64, nb.float64)


def user_priority(function: Callable[..., float], parameters: tuple[float, ...], siblings: bool = False) -> Any:  # noqa: ANN401
    """A rule's priority with its parameters, compiled (NaN where it raises), or None where it does not compile."""
    with _lock:
        return (_user_priority_among if siblings else _user_priority)(function, parameters)


def user_quantile(function: Callable[..., float], parameters: tuple[float, ...]) -> Any:  # noqa: ANN401
    """A family's quantile in the same way."""
    with _lock:
        return _user_quantile(function, parameters)


@lru_cache(maxsize=256)
def _user_priority(function: Callable[..., float], parameters: tuple[float, ...]) -> Any:  # noqa: ANN401
    compiled = with_callees(function)

    @nb.njit(nogil=True)
    def with_parameters(clock, log_clock, pulls, mean, coin, draw, candidates):
        return float(compiled(clock, log_clock, pulls, mean, coin, draw, candidates, *parameters))

    def priority(clock, log_clock, pulls, mean, coin, draw, candidates):
        try:
            value = with_parameters(clock, log_clock, pulls, mean, coin, draw, candidates)
        except Exception:
            value = np.nan
        return value

    return _callable_by_address(_PRIORITY, priority)


@lru_cache(maxsize=256)
def _user_priority_among(function: Callable[..., float], parameters: tuple[float, ...]) -> Any:  # noqa: ANN401
    """The same for a rule that looks at siblings, whose pulls and means are arrays."""
    compiled = with_callees(function)

    @nb.njit(nogil=True)
    def with_parameters(clock, log_clock, pulls, mean, coin, draw, candidates, all_pulls, all_means):
        return float(compiled(clock, log_clock, pulls, mean, coin, draw, candidates, all_pulls, all_means, *parameters))

    def priority(clock, log_clock, pulls, mean, coin, draw, candidates, all_pulls, all_means):
        shown = carray(all_pulls, (candidates,)), carray(all_means, (candidates,))
        try:
            value = with_parameters(clock, log_clock, pulls, mean, coin, draw, candidates, shown[0], shown[1])
        except Exception:
            value = np.nan
        return value

    return _callable_by_address(_AMONG, priority)


@lru_cache(maxsize=256)
def _user_quantile(function: Callable[..., float], parameters: tuple[float, ...]) -> Any:  # noqa: ANN401
    compiled = with_callees(function)

    @nb.njit(nogil=True)
    def with_parameters(mean, u):
        return float(compiled(mean, u, *parameters))

    def quantile(mean, u):
        try:
            value = with_parameters(mean, u)
        except Exception:
            value = np.nan
        return value

    return _callable_by_address(_QUANTILE, quantile)


def _callable_by_address(signature: Any, function: Any) -> Any:  # noqa: ANN401
    try:
        return nb.cfunc(signature)(function)
    except (NumbaError, TypeError, ValueError):  # what the compiler says of a function that returns text, say
        return None


def with_callees(function: Callable[..., Any]) -> Any:  # noqa: ANN401
    """The function compiled with all that it calls; random words come from the compiled generator."""
    return _compiled(function, {id(_randomness.uniform): uniform, id(_randomness.word): word})


def _compiled(function: Any, known: dict[int, Any]) -> Any:  # noqa: ANN401
    """The function with all Python functions that it can reach compiled; anything else is given back."""
    if not isinstance(function, FunctionType) or is_jitted(function):
        return function
    if id(function) in known:
        return known[id(function)]
    known[id(function)] = function  # a function that reaches itself is left to fail, and so to the reference
    names = {name: value for name, value in function.__globals__.items() if name in function.__code__.co_names}
    reached = {name: _compiled(value, known) for name, value in names.items()}
    cells = tuple(CellType(_compiled(cell.cell_contents, known)) for cell in function.__closure__ or ())
    copy = FunctionType(
        function.__code__, {**function.__globals__, **reached}, function.__name__, function.__defaults__, cells
    )
    known[id(function)] = nb.njit(nogil=True)(copy)
    return known[id(function)]


def _call(context, builder, signature, arguments):
    """Call the function at the address that is the first argument."""
    kind = ir.FunctionType(ir.DoubleType(), [argument.type for argument in arguments[1:]])
    return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])


def _priority_at(typing, address, clock, log_clock, pulls, mean, coin, draw, candidates):
    return nb.float64(nb.int64, *_PRIORITY.args), _call


priority_at: Any = intrinsic(_priority_at)
"""`priority_at(address, *inputs)`: the priority by the function at an address."""


def _call_with_arrays(context, builder, signature, arguments):
    """The same where the last two arguments are addresses of numbers."""
    kinds = [argument.type for argument in arguments[1:-2]]
    pointers = [ir.IntType(64).as_pointer(), ir.DoubleType().as_pointer()]
    places = [builder.inttoptr(place, kind) for place, kind in zip(arguments[-2:], pointers, strict=True)]
    kind = ir.FunctionType(ir.DoubleType(), [*kinds, *pointers])
    return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [*arguments[1:-2], *places])


def _priority_among_at(typing, address, clock, log_clock, pulls, mean, coin, draw, candidates, all_pulls, all_means):
    return nb.float64(nb.int64, *_PRIORITY.args, nb.int64, nb.int64), _call_with_arrays


priority_among_at: Any = intrinsic(_priority_among_at)
"""`priority_among_at(address, *inputs, all_pulls, all_means)`: the same for a rule that looks at siblings."""


def _quantile_at(typing, address, mean, u):
    return nb.float64(nb.int64, *_QUANTILE.args), _call


quantile_at: Any = intrinsic(_quantile_at)
"""`quantile_at(address, mean, u)`: the reward by the function at an address."""
