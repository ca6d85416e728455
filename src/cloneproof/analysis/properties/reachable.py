"""What can be reached from an object: a walk over attributes, containers and the closures of functions."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from cloneproof.market import Agent, Beta, Discrete, Empirical, Instance, Market, Point, Uniform

PRIVATE = (Market, Agent, Point, Discrete, Uniform, Beta, Empirical, Instance)
_LEAVES = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)


def private_things(root: object, name: str) -> Iterator[str]:
    """The paths from an object to what no mechanism may know: markets, agents, priors, instances.

    >>> list(private_things({"a": [Point(0.5)]}, "box"))
    ["box['a'][0] (Point)"]
    """
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [(name, root)]
    while stack:
        path, thing = stack.pop()
        if isinstance(thing, _LEAVES) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, PRIVATE):
            yield f"{path} ({type(thing).__name__})"
            continue
        stack.extend(_neighbours(path, thing))


def _neighbours(path: str, thing: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    if isinstance(thing, Mapping):
        yield from ((f"{path}[{key!r}]", value) for key, value in thing.items())
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((f"{path}[{number}]", value) for number, value in enumerate(thing))
    elif isinstance(thing, types.MethodType):
        yield from ((f"{path}.__self__", thing.__self__), (f"{path}.__func__", thing.__func__))
    elif isinstance(thing, types.FunctionType):
        yield from _of_function(path, thing)
    elif isinstance(thing, partial):
        yield from ((f"{path}.func", thing.func), (f"{path}.args", thing.args), (f"{path}.keywords", thing.keywords))
    elif callable(thing) and type(thing).__module__.partition(".")[0] not in ("builtins", "cloneproof"):
        yield from ((f"{path}'s class.{key}", value) for key, value in vars(type(thing)).items())
    yield from ((f"{path}.{key}", value) for key, value in getattr(thing, "__dict__", {}).items())
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, slot):
                yield f"{path}.{slot}", getattr(thing, slot)


def _of_function(path: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Closure, defaults, and the globals that the code names: not all globals, which would be the whole program."""
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{path} closes over {variable}", cell.cell_contents
        except ValueError:  # an empty cell
            continue
    for number, value in enumerate(function.__defaults__ or ()):
        yield f"{path} default {number}", value
    for key, value in (function.__kwdefaults__ or {}).items():
        yield f"{path} default {key}", value
    codes = [function.__code__]
    for code in codes:  # functions inside it name globals too
        codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        for variable in code.co_names:
            if variable in function.__globals__:
                yield f"{path} uses {variable}", function.__globals__[variable]
