"""Reward families: the law of an arm's rewards given its mean (the paper's G_{i,k}).

A family is a quantile and a function that makes it, named in `FAMILIES`. The reward at level u must not fall as the
mean grows. Theorem 4 assumes this, and it lets two arms share their random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal

import scipy

from cloneproof._lib.checks import NumberRange
from cloneproof._lib.discovery import call, formula, formula_of
from cloneproof.errors import MarketError

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
        if self.name not in FAMILIES or reward_family(data) != self:
            raise MarketError(
                f"expected a reward family that a file can name, got {self.name!r} with a law of its own; "
                "add it to `FAMILIES`, as CONTRIBUTING says"
            )
        return data


BOUNDED = RewardFamily("bounded", lambda mean, u: mean)
"""Any rewards in [0, 1]: what a live session accepts unless told more."""


def positive(value: object, what: str) -> float:
    """Return a number above 0 and at most 10^6, or raise an error."""
    return POSITIVE.checked(value, what, MarketError)


@formula("coin")
def _click(mean: float, u: float) -> float:
    """Return 1 with probability `mean`, else 0."""
    return 1.0 if u < mean else 0.0


def bernoulli() -> RewardFamily:
    """Rewards of 1 with the mean as probability, else 0: a click or none."""
    return RewardFamily("bernoulli", _click, values=(0.0, 1.0))


@formula("beta")
def _part(mean: float, u: float, concentration: float) -> float:
    """Return the quantile of Beta(mean * concentration, (1 - mean) * concentration); a point if the mean is 0 or 1."""
    if mean <= 0.0 or mean >= 1.0:
        return mean
    return float(scipy.special.betaincinv(mean * concentration, (1.0 - mean) * concentration, u))


def beta(concentration: float = 10.0) -> RewardFamily:
    """Beta rewards around the mean (watch time as a fraction, ratings), more concentrated for a larger `concentration`.

    Stochastically ordered: the likelihood ratio of two such laws is x**d / (1 - x)**d up to a constant, increasing in
    x.
    """
    concentration = positive(concentration, "the concentration of beta rewards")
    return RewardFamily("beta", _part, (concentration,), options={"concentration": concentration})


@formula("point")
def _mean(mean: float, u: float) -> float:
    """Return the mean itself."""
    return mean


def deterministic() -> RewardFamily:
    """Rewards equal to the mean, so anywhere in [0, 1]; the paper's counterexamples use them."""
    return RewardFamily("deterministic", _mean)


@formula("normal")
def _shifted(mean: float, u: float, sd: float) -> float:
    """Return the normal quantile, which shifts with the mean."""
    return mean + sd * float(scipy.special.ndtri(u))


def gaussian(sd: float = 0.1) -> RewardFamily:
    """Normal rewards of standard deviation `sd` around the mean: outside the paper's [0, 1] but inside its order."""
    sd = positive(sd, "the standard deviation sd of gaussian rewards")
    return RewardFamily("gaussian", _shifted, (sd,), low=-math.inf, high=math.inf, spread=sd, options={"sd": sd})


FAMILIES: dict[str, Callable[..., RewardFamily]] = {
    family.__name__.replace("_", "-"): family for family in (bernoulli, beta, deterministic, gaussian)
}


def family_names() -> list[str]:
    """Return the names of all reward families."""
    return sorted(FAMILIES)


def family_forms() -> list[Any]:
    """Return the forms of rewards in a market file: a name, or a table with the name and parameters of the family."""
    named = {name: Literal[name] for name in family_names()}
    tables = [
        {"family": named[name], **{f"{parameter}?": POSITIVE for parameter in signature(family).parameters}}
        for name, family in sorted(FAMILIES.items())
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
    family: RewardFamily = call("reward family", spec["family"], FAMILIES, options, MarketError)
    return family
