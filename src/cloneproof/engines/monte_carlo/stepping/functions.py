"""All rules behind one compiled function, and all reward families behind another, selected by a number.

This makes a single kernel, compiled once and cached on disk. The functions are those of the rules and families,
compiled as they are; a user's is called by its address.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202, ANN401 (compiled functions are typed by their arguments)
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import RLock
from types import CellType, FunctionType
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core.errors import NumbaError
from numba.extending import intrinsic, is_jitted

from cloneproof import _randomness
from cloneproof.engines.monte_carlo.compiling import compiled, uniform, word
from cloneproof.market.rewards import bernoulli, beta, deterministic, gaussian
from cloneproof.mechanisms.rule import PriorityInputs
from cloneproof.mechanisms.rules import epsilon_greedy, etc, kl_ucb, slow_ucb, steady_kl_ucb, steady_ucb, thompson, ucb
from cloneproof.mechanisms.rules import uniform as uniform_choice

carray: Any = nb.carray  # type: ignore[attr-defined]
_lock = RLock()  # one thread compiles, the others wait for its result
_POINTERS: Any = nb.types.CPointer
_STATISTICS = (nb.int64, nb.float64, nb.int64, nb.float64, nb.float64, nb.float64, nb.int64)
_PRIORITY = nb.float64(*_STATISTICS, _POINTERS(nb.int64), _POINTERS(nb.float64))
_QUANTILE = nb.float64(nb.float64, nb.float64)
_OURS: dict[Any, Any] = {_randomness.uniform: uniform, _randomness.word: word}
PRIORITIES: Final = (
    etc.average, ucb.index, uniform_choice.indifferent, slow_ucb.index, epsilon_greedy.priority,
    thompson.posterior_draw, steady_ucb.index, steady_kl_ucb.index, kl_ucb.index,
)  # fmt: skip
USES_LOGARITHM: Final = ("ucb", "slow-ucb", "kl-ucb", "own")  # or may, as a user's function
FAMILIES: Final = (bernoulli.quantile, deterministic.quantile, gaussian.quantile, beta.quantile)
STEADY_UCB: Final = PRIORITIES.index(steady_ucb.index)
STEADY_KL_UCB: Final = PRIORITIES.index(steady_kl_ucb.index)
KL_UCB: Final = PRIORITIES.index(kl_ucb.index)


class Function(NamedTuple):
    """A function for the kernel: which of the built-in ones and its parameter, or -1 and the address of a user's."""

    which: int
    parameter: float
    address: int

    @classmethod
    def of(cls, builtin: tuple[Callable[..., float], ...], function: Any, parameters: tuple[float, ...]) -> Function:
        """Make one of the built-in ones, each of which has one parameter at most."""
        return cls(builtin.index(function), float(parameters[0]) if parameters else 0.0, 0)


def _once(make: Callable[..., Any]) -> Callable[..., Any]:
    known = lru_cache(maxsize=256)(make)

    def made(*arguments: Any) -> Any:
        with _lock:
            return known(*arguments)

    return made


@_once
def user_priority(function: Callable[..., float], parameters: tuple[float, ...], siblings: bool) -> Any:
    """Compile a rule's priority with its parameters (NaN where it raises); None if it does not compile.

    It is called with the addresses of the siblings' pulls and means, which most rules ignore.
    """
    compiled = with_callees(function)

    def alone(inputs, all_pulls, all_means):
        return float(compiled(inputs, *parameters))

    def among(inputs, all_pulls, all_means):
        return float(compiled(inputs, all_pulls, all_means, *parameters))

    with_parameters = nb.njit(nogil=True)(among if siblings else alone)

    def priority(clock, log_clock, pulls, mean, coin, draw, candidates, all_pulls, all_means):
        inputs = PriorityInputs(clock, log_clock, pulls, mean, coin, draw, candidates)
        shown = carray(all_pulls, (candidates,)), carray(all_means, (candidates,))
        try:
            value = with_parameters(inputs, shown[0], shown[1])
        except Exception:
            value = np.nan
        return value

    return _callable_by_address(_PRIORITY, priority)


@_once
def user_quantile(function: Callable[..., float], parameters: tuple[float, ...]) -> Any:
    """Compile a family's quantile in the same way."""
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


def _callable_by_address(signature: Any, function: Any) -> Any:
    try:
        return nb.cfunc(signature)(function)
    except (NumbaError, TypeError, ValueError):  # what the compiler says of a function that returns text, say
        return None


def with_callees(function: Callable[..., Any]) -> Any:
    """Return the function compiled with all that it calls; random words come from the compiled generator.

    What belongs to this package is compiled once for all kernels.
    """
    ours = getattr(function, "__module__", "").startswith("cloneproof.")
    return _compiled(function, _OURS if ours else dict(_OURS))


def _compiled(function: Any, known: dict[Any, Any]) -> Any:
    """Return the function with all Python functions that it can reach compiled; anything else unchanged."""
    if not isinstance(function, FunctionType) or is_jitted(function):
        return function
    if function in known:
        return known[function]
    known[function] = function  # a function that reaches itself is left to fail, and so to the reference
    names = {name: value for name, value in function.__globals__.items() if name in function.__code__.co_names}
    reached = {name: _compiled(value, known) for name, value in names.items()}
    cells = tuple(CellType(_compiled(cell.cell_contents, known)) for cell in function.__closure__ or ())
    copy = FunctionType(
        function.__code__, {**function.__globals__, **reached}, function.__name__, function.__defaults__, cells
    )
    known[function] = nb.njit(nogil=True)(copy)
    return known[function]


def _call(context, builder, signature, arguments):
    """Call the function at the address that is the first argument; arguments after the seventh are addresses too."""
    address, *given = arguments
    pointers = [ir.IntType(64).as_pointer(), ir.DoubleType().as_pointer()]
    given[7:] = [builder.inttoptr(place, kind) for place, kind in zip(given[7:], pointers, strict=False)]
    kind = ir.FunctionType(ir.DoubleType(), [argument.type for argument in given])
    return builder.call(builder.inttoptr(address, kind.as_pointer()), given)


def _priority_at(typing, address, clock, log_clock, pulls, mean, coin, draw, candidates, all_pulls, all_means):
    return nb.float64(nb.int64, *_STATISTICS, nb.int64, nb.int64), _call


def _quantile_at(typing, address, mean, u):
    return nb.float64(nb.int64, *_QUANTILE.args), _call


priority_at: Any = intrinsic(_priority_at)
quantile_at: Any = intrinsic(_quantile_at)
"""`quantile_at(address, mean, u)`: the reward by the function at an address; likewise a priority."""


(
    _average, _ucb, _indifferent, _slow_ucb, _epsilon_greedy, _posterior_draw, _steady_ucb, _steady_kl_ucb, _kl_ucb
) = (with_callees(function) for function in PRIORITIES)  # fmt: skip
_bernoulli, _deterministic, _gaussian, _beta = (nb.njit(nogil=True)(function) for function in FAMILIES)


@compiled
def priority(function, inputs, all_pulls, all_means):
    """Compute the priority by rule `function.which` of PRIORITIES; below 0, by a user's, which may see siblings."""
    which, parameter = function.which, function.parameter
    if which == 0:
        value = _average(inputs)
    elif which == 1:
        value = _ucb(inputs, parameter)
    elif which == 2:
        value = _indifferent(inputs)
    elif which == 3:
        value = _slow_ucb(inputs, parameter)
    elif which == 4:
        value = _epsilon_greedy(inputs, parameter)
    elif which == 5:
        value = _posterior_draw(inputs)
    elif which == 6:
        value = _steady_ucb(inputs, parameter)
    elif which == 7:
        value = _steady_kl_ucb(inputs, parameter)
    elif which == 8:
        value = _kl_ucb(inputs, parameter)
    else:
        clock, log_clock, pulls, mean, coin, draw, candidates = inputs
        places = all_pulls.ctypes.data, all_means.ctypes.data
        value = priority_at(
            function.address, clock, log_clock, pulls, mean, coin, draw, candidates, places[0], places[1]
        )
    return value


@compiled
def surely_above(bar, pulls, mean, width):
    """Whether steady KL-UCB's index is above `bar` by more than rounding: n kl(mean, bar) < ln T, with a margin.

    One divergence instead of an inversion; enough to see that a leader keeps its lead.
    """
    if mean > bar + 1e-12:
        return pulls > 0
    level = bar + 1e-9
    if pulls == 0 or level >= 1.0:
        return False
    divergence = (1.0 - mean) * np.log((1.0 - mean) / (1.0 - level))
    if mean > 0.0:
        divergence += mean * np.log(mean / level)
    return pulls * divergence < width * (1.0 - 1e-9)


@compiled
def reward_at(function, mean, u):
    """Return the reward at level u of family `function.which` of FAMILIES; below 0, a user's."""
    which, parameter = function.which, function.parameter
    if which < 0:
        return quantile_at(function.address, mean, u)
    if which == 0:
        return _bernoulli(mean, u)
    if which == 1:
        return _deterministic(mean, u)
    if which == 2:
        return _gaussian(mean, u, parameter)
    return _beta(mean, u, parameter)
