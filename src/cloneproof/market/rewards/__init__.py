"""Reward families: the law of an arm's rewards given its mean (the paper's G_{i,k}), one file each.

A family is a file `name.py` with a function `name(...) -> RewardFamily`. The reward at level u must not fall as the
mean grows. Theorem 4 assumes this, and it lets two arms share their random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal

from cloneproof._lib.checks import NumberRange
from cloneproof._lib.discovery import call, factories, formula_of
from cloneproof.errors import MarketError

FAMILIES_PACKAGE = "cloneproof.market.rewards"
POSITIVE = NumberRange(0, 1e6, low_open=True)
FamilyLaw = Literal["coin", "point", "normal", "beta", "own"]


@dataclass(frozen=True)
class RewardFamily:
    """Law of a reward given the arm's mean, as a pure function of numbers.

    `quantile(mean, u, *parameters)` is the reward at level u in (0, 1). `low` and `high` bound the rewards, `values`
    lists them where there are only a few. `spread` is a sub-Gaussian standard deviation that holds for every mean: 1/2
    for anything in [0, 1].
    """

    name: str
    quantile: Callable[..., float] = field(repr=False)
    parameters: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 1.0
    values: tuple[float, ...] | None = None
    spread: float = 0.5
    options: Mapping[str, float] = field(default_factory=dict)

    @property
    def law(self) -> FamilyLaw:
        """Law that the quantile declares; "own" for a user's function, which can only be called."""
        law: FamilyLaw = formula_of(self.quantile)
        return law

    def sample(self, mean: float, u: float) -> float:
        """Return the reward of an arm of that mean at level u."""
        return self.quantile(mean, u, *self.parameters)

    @property
    def support(self) -> str:
        """Possible rewards, in words."""
        if self.values is not None:
            return "{" + ", ".join(f"{value:g}" for value in self.values) + "}"
        return "any finite number" if math.isinf(self.high) else f"[{self.low:g}, {self.high:g}]"

    def allows(self, reward: float) -> bool:
        """Whether a reward lies in the support."""
        if self.values is not None:
            return reward in self.values
        return self.low <= reward <= self.high and math.isfinite(reward)

    def to_dict(self) -> str | dict[str, object]:
        """Return the family as the market file writes it; `reward_family` reads it."""
        data: str | dict[str, object] = {"family": self.name, **self.options} if self.options else self.name
        if self.name not in factories(FAMILIES_PACKAGE) or reward_family(data) != self:
            raise MarketError(
                f"expected a reward family that a file can name, got {self.name!r} with a law of its own; "
                "put it into a file of its own, as CONTRIBUTING says"
            )
        return data


BOUNDED = RewardFamily("bounded", lambda mean, u: mean)
"""Any rewards in [0, 1]: what a live session accepts unless told more."""


def family_names() -> list[str]:
    """Return the names of all reward families."""
    return sorted(factories(FAMILIES_PACKAGE))


def family_forms() -> list[Any]:
    """Return the forms of rewards in a market file: a name, or a table with the name and parameters of the family."""
    named = {name: Literal[name] for name in family_names()}
    tables = [
        {"family": named[name], **{f"{parameter}?": POSITIVE for parameter in signature(family).parameters}}
        for name, family in sorted(factories(FAMILIES_PACKAGE).items())
    ]
    return [*named.values(), *tables]


def reward_family(spec: object) -> RewardFamily:
    """Return a reward family by its name, or from the table of the market file.

    >>> reward_family({"family": "gaussian", "sd": 0.2}).support
    'any finite number'
    """
    if isinstance(spec, RewardFamily):
        return spec
    if isinstance(spec, str):
        spec = {"family": spec}
    if not isinstance(spec, Mapping) or not isinstance(spec.get("family"), str):
        raise MarketError(
            f"expected rewards as a name or {{ family = .. }}, got {spec!r}; known are {', '.join(family_names())}"
        )
    options = {key: value for key, value in spec.items() if key != "family"}
    family = call("reward family", spec["family"], factories(FAMILIES_PACKAGE), options, MarketError)
    assert isinstance(family, RewardFamily)
    return family


def positive(value: object, what: str) -> float:
    """Return a number above 0 and at most 10^6, or raise an error."""
    return POSITIVE.checked(value, what, MarketError)
