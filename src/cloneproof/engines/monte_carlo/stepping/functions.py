"""Functions of rules and reward families in compiled code: with all that they call, and with their parameters.

Built-in families stand behind one function, selected by a number; a user's is called by its address.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,name-defined"
# ruff: noqa: ANN001, ANN201, ANN202, ANN401, F821 (compiled functions are typed by their arguments; open names)
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import RLock
from types import CellType, FunctionType
from typing import Any, Final, NamedTuple, TypeVar

import numba as nb
import numpy as np
from numba.core.errors import NumbaError
from numba.extending import intrinsic, is_jitted
from numba.np.unsafe import ndarray

from cloneproof import _randomness
from cloneproof.engines.monte_carlo.compiling import compiled, inlined, source_stamp, uniform, word
from cloneproof.market.rewards import RewardFamily, bernoulli, beta, deterministic, gaussian
from cloneproof.mechanisms.rule import RULES_PACKAGE, PriorityInputs, Rule

to_fixed_tuple: Any = ndarray.to_fixed_tuple
OnceMade = TypeVar("OnceMade")
_lock = RLock()  # one thread compiles, the others wait for its result
_QUANTILE = nb.float64(nb.float64, nb.float64)
_OURS: dict[Any, Any] = {_randomness.uniform: uniform, _randomness.word: word}
_INPUTS = nb.types.NamedTuple(
    [nb.int64, nb.float64, nb.float64, nb.float64, nb.float64, nb.float64, nb.int64],
    PriorityInputs,  # on pages
)
_PRIORITY = nb.float64(_INPUTS, nb.float64[::1])
USES_LOGARITHM: Final = ("ucb", "slow-ucb", "kl-ucb", "own")  # or may, as a user's function
MOST_FLOATS: Final = 4  # parameters of a rule that are given as numbers
FAMILIES: Final = (bernoulli.quantile, deterministic.quantile, gaussian.quantile, beta.quantile)


def once(make: Callable[..., OnceMade]) -> Callable[..., OnceMade]:
    """Make a thing once for the same arguments, by one thread."""
    known = lru_cache(maxsize=256)(make)

    def made(*arguments: Any) -> OnceMade:
        with _lock:
            return known(*arguments)

    return made


def with_callees(function: Callable[..., Any] | None) -> Any:
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


def floats_of(rule: Rule) -> tuple[float, ...] | None:
    """Return a rule's parameters where they are a few floats; others are constants of the code."""
    own = rule.parameters
    return own if len(own) <= MOST_FLOATS and all(isinstance(value, float) for value in own) else None


def specialised(template: Callable[[int], Any], name: str, kept: bool, **functions: Any) -> Any:
    """Compile what the template makes, when first needed, with these functions for its global names.

    Kept on disk if said so: the closure, which is part of the key, has only the stamp of the sources.
    """
    made = template(source_stamp())
    copy = FunctionType(
        made.__code__, {**made.__globals__, **functions}, made.__name__, made.__defaults__, made.__closure__
    )
    copy.__qualname__ = f"{made.__name__}_{name}"
    return nb.njit(nogil=True, cache=kept)(copy)


class RuleFunctions(NamedTuple):
    """What code is specialised by: the functions of a rule, and the parameters that are constants of it.

    A few parameters that are floats are read when it runs, so that a rule is compiled once for all of them.
    """

    priority: Callable[..., float]
    bound: Callable[..., float] | None
    exceeds: Callable[..., bool] | None
    randomised: bool
    siblings: bool
    floats: int
    constants: tuple[Any, ...]

    @classmethod
    def of(cls, rule: Rule) -> RuleFunctions:
        own, floats = rule.parameters, floats_of(rule) is not None
        plain = rule.randomised or rule.siblings or rule.bound is None
        bound, exceeds = (None, None) if plain else (rule.bound, rule.exceeds)
        counts = (len(own), ()) if floats else (0, own)
        return cls(rule.priority, bound, exceeds, rule.randomised, rule.siblings, *counts)

    @property
    def built_in(self) -> bool:
        """Whether this is code of the package alone, which is kept on disk; a closure may have a user's code in it."""
        there = [each for each in self[:3] if each is not None]
        ours = all(getattr(each, "__module__", "").startswith(f"{RULES_PACKAGE}.") for each in there)
        plain = not (self.constants or self.siblings or any(getattr(each, "__closure__", None) for each in there))
        return ours and plain

    @property
    def name(self) -> str:
        """A name for the compiled code, unique among what is kept on disk: that is linked by its names."""
        parts = [f"{each.__module__.rpartition('.')[2]}_{each.__name__}" for each in self[:3] if each is not None]
        return "_".join([*parts, str(self.floats), "randomised" * self.randomised]) if self.built_in else "own"

    def given(self) -> Any:
        """Return a compiled function that makes a tuple of parameters from an array of those that are read."""
        floats, constants = self.floats, self.constants

        def read(parameters):
            return to_fixed_tuple(parameters, floats)

        def constant(parameters):
            return constants

        return self.inlined(read if floats else constant)

    def inlined(self, function: Callable[..., Any]) -> Any:
        """Make a part of the code for this rule."""
        function.__qualname__ = f"{function.__name__}_{self.name}"
        return inlined(function)

    def specialised(self, template: Callable[[int], Any], **functions: Any) -> Any:
        """Compile what the template makes for this rule."""
        return specialised(template, self.name, self.built_in, **functions)


class NativeFunction(NamedTuple):
    """A compiled function by its address, and what must be kept while that is in use."""

    address: int
    kept: Any

    @classmethod
    def of(cls, dispatcher: Any, signature: Any) -> NativeFunction:
        dispatcher.compile(signature)
        result = dispatcher.overloads[signature.args]
        return cls(result.library.get_pointer_to_function(result.fndesc.llvm_func_name), dispatcher)


def called(signature: Any) -> Any:
    """Return what an intrinsic returns that calls a compiled function of this signature.

    Its first argument is the function's address. It gives -2 or NaN where the function raises.
    """
    return signature.return_type(nb.int64, *signature.args), _call


def _call(context, builder, signature, arguments):
    address, *given = arguments
    back, kinds = signature.return_type, signature.args[1:]
    place = builder.inttoptr(address, context.call_conv.get_function_type(back, kinds).as_pointer())
    status, value = context.call_conv.call_function(builder, place, back, kinds, given)
    return builder.select(status.is_error, context.get_constant(back, -2 if back == nb.int64 else np.nan), value)


def _template(sources):
    def priority(inputs, parameters):
        return float(value(inputs, *given(parameters))) if sources else np.nan

    return priority


@once
def _priority(functions: RuleFunctions) -> NativeFunction:
    value = with_callees(functions.priority)
    return NativeFunction.of(functions.specialised(_template, value=value, given=functions.given()), _PRIORITY)


def _priority_at(typing, address, inputs, parameters):
    return called(_PRIORITY)


priority_at: Any = intrinsic(_priority_at)
"""`priority_at(address, inputs, parameters)`: the priority of a rule by `compiled_priority`."""


def compiled_priority(rule: Rule) -> NativeFunction:
    """Compile a built-in rule's priority for `priority_at`."""
    return _priority(RuleFunctions.of(rule))


class Function(NamedTuple):
    """A reward family for the kernels: which of the built-in ones and its parameter, or -1 and a user's address."""

    which: int
    parameter: float
    address: int

    @classmethod
    def of(cls, builtin: tuple[Callable[..., float], ...], function: Any, parameters: tuple[float, ...]) -> Function:
        """Make one of the built-in ones, each of which has one parameter at most."""
        return cls(builtin.index(function), float(parameters[0]) if parameters else 0.0, 0)


@once
def _user_quantile(function: Callable[..., float], parameters: tuple[float, ...]) -> NativeFunction | None:
    """Compile a family's quantile with its parameters; None if it does not compile."""
    inner = with_callees(function)

    @nb.njit(nogil=True)
    def quantile(mean, u):
        return float(inner(mean, u, *parameters))

    try:
        return NativeFunction.of(quantile, _QUANTILE)
    except (NumbaError, TypeError, ValueError):
        return None


def compiled_family(family: RewardFamily) -> tuple[Function, Any] | None:
    """Return a reward family for the kernels, and what must be kept meanwhile; None if it does not compile."""
    if family.quantile in FAMILIES:
        return Function.of(FAMILIES, family.quantile, family.parameters), None
    made = _user_quantile(family.quantile, family.parameters)
    return None if made is None else (Function(-1, 0.0, made.address), made)


def _quantile_at(typing, address, mean, u):
    return called(_QUANTILE)


quantile_at: Any = intrinsic(_quantile_at)
_bernoulli, _deterministic, _gaussian, _beta = (nb.njit(nogil=True)(function) for function in FAMILIES)


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
