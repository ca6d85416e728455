"""What a name finds: a factory with its options, or an object at MODULE:NAME or FILE.py:NAME, which is imported."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from cloneproof._lib.checks import known
from cloneproof.errors import CloneproofError, brief, did_you_mean

F = TypeVar("F", bound=Callable[..., Any])


def formula(name: str) -> Callable[[F], F]:
    """Declare which formula a function computes, for engines that have it on arrays or in closed form."""

    def declare(function: F) -> F:
        vars(function)["formula"] = name
        return function

    return declare


def formula_of(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (a literal of the caller's)
    """Return the formula that a function declares; "own" for one that declares none, as a user's."""
    return getattr(function, "formula", "own")


def call(
    what: str,
    name: str,
    choices: Mapping[str, Callable[..., Any]],
    options: Mapping[str, Any],
    error: type[CloneproofError],
) -> Any:  # noqa: ANN401 (what a factory makes is its own affair)
    """Call the factory of that name; raises an error for an unknown name or option."""
    factory = choices[known(name, choices, what, error)]
    parameters = inspect.signature(factory).parameters
    check_options(f"{what} {name!r}", options, parameters, error)
    needed = [key for key, p in parameters.items() if p.default is p.empty and key not in options]
    if needed:
        raise error(f"{what} {name!r} needs {' and '.join(needed)}; give a value for each")
    return factory(**options)


def check_options(
    owner: str, options: Mapping[str, Any], known: Mapping[str, Any] | list[str], error: type[CloneproofError]
) -> None:
    """Refuse an option that the owner does not have."""
    for option in options:
        if option not in known:
            raise error(
                f"unknown parameter {option!r} of {owner}; {did_you_mean(option, known)}"
                f"it takes {', '.join(known) or 'none'}"
            )


def imported(text: object, what: str, example: str, error: type[CloneproofError]) -> Any:  # noqa: ANN401 (theirs)
    """Import the object at MODULE:NAME or FILE.py:NAME; raise an error if that fails.

    Never use it for a name from a file or a network: importing runs code.
    """
    module_name, colon, name = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    file = Path(module_name) if module_name.endswith(".py") else None
    by_name = file is None and "/" not in module_name and not module_name.startswith(".")
    if not colon or not name or not (file or (by_name and module_name)):
        raise error(
            f"expected {what} as MODULE:NAME or FILE.py:NAME, such as mymodule:{example}, got {brief(text)}; name both"
        )
    if file is not None:
        module_name = _module_of(file, what, error)
    try:
        target: Any = import_module(module_name)
        for attribute in name.split("."):
            target = getattr(target, attribute)
    except ModuleNotFoundError as problem:
        where = "run it where the module is, or install it" if problem.name == module_name else "install that one too"
        raise error(f"expected {what} that can be imported, got {text!r} ({problem}); {where}") from None
    except AttributeError as problem:
        known = [word for word in vars(import_module(module_name)) if not word.startswith("_")]
        raise error(
            f"expected {what} that can be imported, got {text!r} ({problem}); {did_you_mean(name, known)}name what the "
            "module defines"
        ) from None
    except Exception as problem:
        raise error(
            f"expected {what} that can be imported, but {text!r} raised {type(problem).__name__}: {problem}; fix the "
            "module"
        ) from problem
    return target


def _module_of(file: Path, what: str, error: type[CloneproofError]) -> str:
    """Return the name under which Python imports this file, here and in workers: its folder is searched first."""
    file = file.resolve()
    if not file.is_file():
        raise error(f"expected {what} that can be imported, got no file {file}; check the path")
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    invalidate_caches()
    try:
        spec = find_spec(file.stem)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != file:
        taken = "nothing" if spec is None else spec.origin
        raise error(f"expected {file} to be the module {file.stem!r}, got {taken} under that name; rename the file")
    return file.stem
