"""Which numbers a formula takes: every argument is checked by its name, as names mean the same in all of them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from cloneproof._checks import real, whole
from cloneproof.errors import MechanismError, brief

P = ParamSpec("P")
R = TypeVar("R")
DomainCheck = Callable[[Any], Any]


def count(value: object, name: str) -> int:
    """A whole number from 1, or one sentence."""
    number = whole(value)
    if number is None or number < 1:
        raise MechanismError(f"expected {name} to be a whole number from 1, got {brief(value)}; count from 1")
    return number


def _positive(value: Any, name: str) -> Any:  # noqa: ANN401 (numbers of any kind)
    number = math.inf if value == math.inf and name.endswith("gap") else real(value)
    if number is None or number <= 0:
        raise MechanismError(f"expected {name} to be a number above 0, got {brief(value)}; use e.g. 0.5")
    return value


def _distance(value: Any, name: str) -> Any:  # noqa: ANN401
    number = math.inf if value == math.inf else real(value)
    if number is None or number < 0:
        raise MechanismError(f"expected {name} to be numbers from 0, got {brief(value)}; 0 is the best arm's")
    return value


def _mean(value: Any, name: str) -> Any:  # noqa: ANN401
    number = real(value)
    if number is None or not 0 <= number <= 1:
        raise MechanismError(f"expected {name} to be numbers in [0, 1], got {brief(value)}; scale the rewards")
    return value


def _finite(value: Any, name: str) -> Any:  # noqa: ANN401
    if real(value) is None:
        raise MechanismError(f"expected {name} to be a finite number, got {brief(value)}; use e.g. 0.5")
    return value


def _anything(value: Any, name: str) -> Any:  # noqa: ANN401
    return value


def _callable(value: Any, name: str) -> Any:  # noqa: ANN401
    if not callable(value):
        raise MechanismError(f"expected {name} to be a function of a whole number, got {brief(value)}; give a function")
    return value


def _several(each: Callable[[Any, str], Any], value: Any, name: str) -> Any:  # noqa: ANN401
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise MechanismError(f"expected {name} to be a list of at least one number, got {brief(value)}; give a list")
    for item in value:
        each(item, name)
    return value


CHECKS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("agents", "originals", "max_arms", "horizon", "epoch"), count),
    **dict.fromkeys(("arm_rounds", "score_rounds", "agent_rounds", "rounds"), count),
    **dict.fromkeys(("gap", "agent_gap", "spread", "power", "factor"), _positive),
    **dict.fromkeys(("holds", "trial"), _callable),
    "gaps": partial(_several, _distance),
    **dict.fromkeys(("means", "values"), partial(_several, _mean)),
    **dict.fromkeys(("low", "high"), _mean),
    "threshold": _finite,
    "overtaken.gap": _distance,  # of two arms, which may be equal
    "uniform_etc_regret.means": partial(_several, partial(_several, _mean)),  # of each agent
    "uniform_etc_regret_at_least.means": partial(_several, partial(_several, _mean)),
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The formula, with one sentence for an argument outside its domain instead of a wrong number or a traceback."""
    parameters = inspect.signature(function).parameters
    checks: dict[str, DomainCheck] = {}
    for name, parameter in parameters.items():
        check = CHECKS.get(f"{function.__name__}.{name}") or CHECKS.get(name) or _anything
        checks[name] = partial(_or_none if "None" in str(parameter.annotation) else _as_it_is, check, name)
    in_order = tuple(checks.values())

    @wraps(function)
    def formula(*args: P.args, **kwargs: P.kwargs) -> R:
        values = [check(value) for check, value in zip(in_order, args, strict=False)]
        named = {name: checks[name](value) if name in checks else value for name, value in kwargs.items()}
        try:
            return function(*values, *args[len(in_order) :], **named)  # type: ignore[arg-type]
        except (OverflowError, ZeroDivisionError):
            words = ", ".join(brief(value) for value in (*args, *kwargs.values()))
            raise MechanismError(
                f"expected numbers for which {function.__name__} fits into a float, got {words}; use less extreme ones"
            ) from None

    return formula


def _as_it_is(check: Callable[[Any, str], Any], name: str, value: Any) -> Any:  # noqa: ANN401
    return check(value, name)


def _or_none(check: Callable[[Any, str], Any], name: str, value: Any) -> Any:  # noqa: ANN401
    return None if value is None else check(value, name)
