"""Somebody's own rule or reward family as C functions, compiled by Numba and called by their addresses.

A function is compiled with all Python functions that it calls. What raises gives NaN: the run is then played by the
reference simulator, which says in which round. What does not compile is played by the reference too.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from threading import RLock
from types import CellType, FunctionType
from typing import Any, NamedTuple

from cloneproof._lib import randomness

_lock = RLock()  # one thread compiles, the others wait for its result


def compiles(make: Callable[[], object]) -> bool:
    """Whether Numba is there and compiles what `make` asks for."""
    if find_spec("numba") is None:
        return False
    try:
        with _lock:
            make()
    except _refusals():
        return False
    return True


class Looked(NamedTuple):
    """What a rule looks at: a record of seven numbers, its function, its bound and what compares, and its parameters.

    Without a bound, and where it draws, priorities are computed for all candidates of a round at once.
    """

    inputs: Callable[..., Any]
    priority: Callable[..., float]
    bound: Callable[..., float] | None
    exceeds: Callable[..., bool] | None
    parameters: tuple[Any, ...]


def compiled_rule(rule: Looked) -> tuple[int, int, int, int]:
    """Return the addresses of a rule's priority, bound, `exceeds` and priorities of a round; 0 where none is called."""
    inputs, priority, bound, exceeds, parameters = rule
    with _lock:
        if bound is None:
            return 0, 0, 0, _compiled_round(inputs, priority, parameters).address
        first = _compiled(inputs, priority, parameters, False).address
        above = _compiled(inputs, exceeds, parameters, True).address if exceeds else 0
        return first, _compiled(inputs, bound, parameters, False).address, above, 0


def compiled_quantile(function: Callable[..., float], parameters: tuple[float, ...]) -> int:
    """Return the address of a family's quantile."""
    with _lock:
        return int(_compiled_quantile(function, parameters).address)


@lru_cache(maxsize=256)  # what is compiled must be kept while it is in use
def _compiled(told: Any, function: Callable[..., Any], parameters: tuple[Any, ...], compares: bool) -> Any:  # noqa: ANN401
    import numba as nb

    inner = with_callees(function, {})

    @nb.njit(nogil=True)
    def of_inputs(inputs):
        return float(inner(inputs, *parameters))

    @nb.njit(nogil=True)
    def of_level(inputs, level):
        return float(inner(inputs, level, *parameters))

    def value(clock, log_clock, pulls, mean, coin, draw, candidates):
        try:
            return of_inputs(told(clock, log_clock, pulls, mean, coin, draw, candidates))
        except Exception:
            return math.nan

    def above(clock, log_clock, pulls, mean, coin, draw, candidates, level):
        try:
            return of_level(told(clock, log_clock, pulls, mean, coin, draw, candidates), level)
        except Exception:
            return 0.0

    numbers = [nb.int64, *[nb.float64] * 5, nb.int64]
    if compares:
        return nb.cfunc(nb.float64(*numbers, nb.float64))(above)
    return nb.cfunc(nb.float64(*numbers))(value)


@lru_cache(maxsize=256)
def _compiled_round(told: Any, function: Callable[..., float], parameters: tuple[float, ...]) -> Any:  # noqa: ANN401
    import numba as nb

    inner = with_callees(function, {})

    @nb.njit(nogil=True)
    def of_all(count, clock, log_clock, coin, pulls, means, draws, priorities):
        for k in range(count):
            inputs = told(clock, log_clock, pulls[k], means[k], coin, draws[k], count)
            priorities[k] = float(inner(inputs, *parameters))

    def priorities_of_round(count, clock, log_clock, coin, pulls, means, draws, priorities):
        try:
            of_all(count, clock, log_clock, coin, pulls, means, draws, priorities)
        except Exception:
            priorities[0] = math.nan

    array = nb.types.CPointer(nb.float64)
    numbers = [nb.int64, nb.int64, nb.float64, nb.float64, array, array, array, array]
    return nb.cfunc(nb.void(*numbers))(priorities_of_round)


@lru_cache(maxsize=256)
def _compiled_quantile(function: Callable[..., float], parameters: tuple[float, ...]) -> Any:  # noqa: ANN401
    import numba as nb

    inner = with_callees(function, {})

    @nb.njit(nogil=True)
    def reward(mean, u):
        return float(inner(mean, u, *parameters))

    def quantile(mean, u):
        try:
            return reward(mean, u)
        except Exception:
            return math.nan

    return nb.cfunc(nb.float64(nb.float64, nb.float64))(quantile)


def with_callees(function: Any, known: dict[Any, Any]) -> Any:  # noqa: ANN401
    """Return a function compiled with all Python functions that it can reach; anything else unchanged."""
    import numba as nb
    from numba.extending import is_jitted

    if not isinstance(function, FunctionType) or is_jitted(function):
        return function
    if function in (randomness.word, randomness.uniform):
        return _generator()[function is randomness.uniform]
    if function in known:
        return known[function]
    known[function] = function  # a function that reaches itself is left to fail, and so to the reference
    names = {name: value for name, value in function.__globals__.items() if name in function.__code__.co_names}
    reached = {name: with_callees(value, known) for name, value in names.items()}
    cells = tuple(CellType(with_callees(cell.cell_contents, known)) for cell in function.__closure__ or ())
    copy = FunctionType(
        function.__code__, {**function.__globals__, **reached}, function.__name__, function.__defaults__, cells
    )
    known[function] = nb.njit(nogil=True)(copy)
    return known[function]


@lru_cache(maxsize=1)
def _generator() -> tuple[Any, Any]:
    """Return `word` and `uniform` of `_randomness`, compiled."""
    import numba as nb
    import numpy as np

    golden, first, second = map(np.uint64, (randomness.GOLDEN, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
    one, twelve, a, b, c = map(np.uint64, (1, 12, 30, 27, 31))

    @nb.njit(nogil=True)
    def word(stream, index):
        x = np.uint64(stream) + golden * (np.uint64(index) + one)
        x = (x ^ (x >> a)) * first
        x = (x ^ (x >> b)) * second
        return x ^ (x >> c)

    @nb.njit(nogil=True)
    def uniform(stream, index):
        return (np.float64(word(stream, index) >> twelve) + 0.5) * 2.0**-52

    return word, uniform


def _refusals() -> tuple[type[Exception], ...]:
    """Return what the compiler raises at a function that returns text, say."""
    from numba.core.errors import NumbaError

    return NumbaError, TypeError, ValueError
