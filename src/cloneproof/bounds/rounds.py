"""Probabilities of a wrong judgement, the rounds that theorems require, and when copies cannot pay.

Probabilities concern averages of independent rewards of arms with given means, which lie in [0, 1] (spread 1/2) or are
sub-Gaussian with standard deviation `spread`.

L and the gaps are declared by the principal or read off priors, never inferred from what was registered. Real numbers
are rounded up and are at least 1. `trp_*` belongs to Theorem 3 (docs/reading.md), `doubling_arm_rounds` to the epochs
of Algorithm 4 (`cloneproof._lib.schedules`).

Each argument of a formula is checked against its domain, by its name, which means the same in all formulas.
"""

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


__all__ = [
    "doubling_arm_rounds", "etc_rounds", "log_mistake", "mistake", "mistake_paper", "overtaken", "smallest",
    "trial_rounds", "trp_applies", "trp_arm_rounds",
]  # fmt: skip

LN_2 = 0.6931471805599453  # the double nearest to ln 2


@checked
def overtaken(gap: float, rounds: int, spread: float = 0.5) -> float:
    """Bound P(an average reaches that of an arm better by `gap`) after m rounds each: exp(-m gap^2 / (4 sd^2)).

    Hoeffding on all 2m rewards at once: the difference of the sums has mean -m gap and is sub-Gaussian with variance 2
    m sd^2. In [0, 1] this is exp(-m gap^2); `cl:concen` has 2 exp(-m gap^2 / 2).

    >>> round(overtaken(0.5, 46), 8)
    1.013e-05
    """
    return math.exp(-rounds * gap**2 / (4 * spread**2))


@checked
def log_mistake(originals: int, gap: float, arm_rounds: int, spread: float = 0.5) -> float:
    """Return the logarithm of `mistake`; minus infinity for one original or one mean."""
    if originals == 1 or math.isinf(gap):
        return -math.inf
    return math.log(originals - 1) - arm_rounds * gap**2 / (4 * spread**2)


@checked
def mistake(originals: int, gap: float, arm_rounds: int, spread: float = 0.5) -> float:
    """Bound P(an honest ETC over L arms commits to a worse one) by (L - 1) exp(-m gap^2 / (4 sd^2)), at most 1.

    A union bound over at most L - 1 worse arms, each at least `gap` worse; a tie counts as a mistake.
    """
    return min(1.0, (originals - 1) * overtaken(gap, arm_rounds, spread))


@checked
def mistake_paper(gap: float, arm_rounds: int) -> float:
    """Return the bound of `cl:concen`: 2 exp(-m gap^2 / 2) for one worse arm, rewards in [0, 1]; it is true."""
    return 2 * math.exp(-arm_rounds * gap**2 / 2)


@checked
def smallest(holds: Callable[[int], bool]) -> int:
    """Return the smallest whole number from 1 with a monotone property."""
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2  # fails, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@checked
def trp_applies(originals: int, gap: float, arm_rounds: int, horizon: int, spread: float = 0.5) -> bool:
    """Whether (l - 1) exp(-m gap^2) <= m / (l T), under which ETC is TRP (docs/reading.md#etc).

    >>> trp_applies(2, 0.5, 20, 1480), trp_applies(2, 0.5, 20, 1490)
    (True, False)
    """
    if originals == 1 or math.isinf(gap):
        return True
    return log_mistake(originals, gap, arm_rounds, spread) <= math.log(arm_rounds / (originals * horizon))


@checked
def etc_rounds(originals: int, gap: float, horizon: int, factor: float = 2.0) -> int:
    """Return m = (factor / gap^2) l ln(2T) of Theorems 3 and 4 (the proof of 4 takes four times the factor).

    >>> etc_rounds(originals=2, gap=1.0, horizon=4000)
    36
    """
    return max(1, math.ceil(factor / gap**2 * originals * math.log(2 * horizon)))


@checked
def trial_rounds(arm_rounds: int, originals: int, horizon: int) -> int:
    """Return M = max(mL, sqrt(T ln T)) of Theorem 5.

    >>> trial_rounds(59, 2, 10**6)
    3717
    """
    return max(arm_rounds * originals, math.ceil(math.sqrt(horizon * math.log(horizon))))


@checked
def trp_arm_rounds(originals: int, gap: float, horizon: int, spread: float = 0.5) -> int:
    """Return the smallest m that meets `trp_applies`, about 1 / (2l) of what Theorem 3 requires.

    >>> trp_arm_rounds(2, 0.5, 10**6), etc_rounds(2, 0.5, 10**6)
    (43, 233)
    """
    return smallest(lambda m: trp_applies(originals, gap, m, horizon, spread))


@checked
def doubling_arm_rounds(epoch: int, power: float = 4.0) -> int:
    """Return the m of an epoch in prior-independent ETC: floor(ln(2^i)^power), but at least 1."""
    return max(1, math.floor(math.pow(epoch * LN_2, power)))
