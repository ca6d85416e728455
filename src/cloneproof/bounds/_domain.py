"""Check each argument of a formula against its domain, by its name; a name means the same in all formulas."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from cloneproof._lib.checks import count, number_in
from cloneproof.errors import MechanismError, brief

P = ParamSpec("P")
R = TypeVar("R")
DomainCheck = Callable[[Any, str], Any]

whole_number = partial(count, error=MechanismError)

COUNTS = (
    "agents", "originals", "horizon", "epoch", "arm_rounds", "agent_rounds", "rounds",
    "accounts", "length", "draws",
)  # fmt: skip


def _number(low: float, high: float, value: Any, name: str, *, low_open: bool = False, endless: bool = False) -> Any:  # noqa: ANN401
    """Return the value if it lies in the range; infinity is allowed where `endless`."""
    if not (endless and value == math.inf):
        number_in(value, name, low, high, MechanismError, low_open=low_open)
    return value


def _callable(value: Any, name: str) -> Any:  # noqa: ANN401
    if not callable(value):
        raise MechanismError(f"expected {name} to be a function of a whole number, got {brief(value)}; give a function")
    return value


def _several(each: DomainCheck, value: Any, name: str) -> Any:  # noqa: ANN401
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise MechanismError(f"expected {name} to be a list of at least one number, got {brief(value)}; give a list")
    for item in value:
        each(item, name)
    return value


_mean = partial(_number, 0, 1)
_distance = partial(_number, 0, math.inf, endless=True)
CHECKS: dict[str, DomainCheck] = {
    **dict.fromkeys(COUNTS, whole_number),
    **dict.fromkeys(("gap", "agent_gap"), partial(_number, 0, math.inf, low_open=True, endless=True)),
    **dict.fromkeys(
        ("spread", "power", "factor", "pot", "regret", "density", "lifetime", "waiting"),
        partial(_number, 0, math.inf, low_open=True),
    ),
    "holds": _callable,
    **dict.fromkeys(("gaps", "weights"), partial(_several, _distance)),
    "means": partial(_several, _mean),
    **dict.fromkeys(("low", "high", "new", "distance", "varied"), _mean),
    "payoffs": partial(_several, partial(_number, -math.inf, math.inf)),
    "tests": _distance,
    "season_cost.regret": _distance,
    "variant_inflation_ceiling.spread": _mean,  # 0 for copies
    "season_length.regret": _callable,
    "overtaken.gap": _distance,  # of two arms, which may be equal
    "uniform_etc_regret_at_least.means": partial(_several, partial(_several, _mean)),
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a formula so that an argument outside its domain raises one clear error."""
    checks: dict[str, DomainCheck] = {}
    optional = set()
    for name, parameter in inspect.signature(function).parameters.items():
        check = CHECKS.get(f"{function.__name__}.{name}") or CHECKS.get(name)
        if check is not None:
            checks[name] = check
        if "None" in str(parameter.annotation):
            optional.add(name)
    names = tuple(inspect.signature(function).parameters)

    def fit(name: str, value: Any) -> Any:  # noqa: ANN401
        return value if name not in checks or (value is None and name in optional) else checks[name](value, name)

    @wraps(function)
    def formula(*args: P.args, **kwargs: P.kwargs) -> R:
        values = [fit(name, value) for name, value in zip(names, args, strict=False)]
        named = {name: fit(name, value) for name, value in kwargs.items()}
        try:
            return function(*values, *args[len(names) :], **named)  # type: ignore[arg-type]
        except (OverflowError, ZeroDivisionError):
            words = ", ".join(brief(value) for value in (*args, *kwargs.values()))
            raise MechanismError(
                f"expected numbers for which {function.__name__} fits into a float, got {words}; use less extreme ones"
            ) from None

    return formula
