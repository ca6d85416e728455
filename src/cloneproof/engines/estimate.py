"""Numbers with their error bounds, and how they were obtained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

ErrorKind = Literal["proven", "confidence", "estimated"]


@dataclass(frozen=True)
class Estimate:
    """A number, the half-width of its error, and what the error means.

    proven      the true value lies in value +- error: interval arithmetic, or exact arithmetic and its rounding
    confidence  it does so with the probability that the method states
    estimated   the error was estimated, e.g. from two resolutions of a quadrature, or from a count of roundings

    `heuristic` marks an estimated error that follows from no count and no theorem, such as that of a quadrature: it is
    likely to be large enough, and no verdict rests on it. What is computed from such an estimate is heuristic too.

    >>> Estimate(2.0, 0.5, "proven", "by hand") - Estimate(1.0, 0.25, "proven", "by hand")
    Estimate(value=1.0, error=0.7500000000000001, kind='proven', method='by hand')
    """

    value: float
    error: float
    kind: ErrorKind
    method: str
    heuristic: bool = field(default=False, repr=False)

    @property
    def low(self) -> float:
        """The lower end."""
        return self.value - self.error

    @property
    def high(self) -> float:
        """The upper end."""
        return self.value + self.error

    def __sub__(self, other: Estimate) -> Estimate:
        """The difference; it is only as sure as the less sure of the two."""
        order: list[ErrorKind] = ["proven", "confidence", "estimated"]
        kind = max(self.kind, other.kind, key=order.index)
        method = self.method if self.method == other.method else f"{self.method}; {other.method}"
        rounding = abs(self.value - other.value) * 2.0**-53
        heuristic = self.heuristic or other.heuristic
        return Estimate(self.value - other.value, self.error + other.error + rounding, kind, method, heuristic)

    def to_dict(self) -> dict[str, float | str]:
        """The form of the command line's JSON."""
        return {"value": self.value, "error": self.error, "kind": self.kind, "method": self.method}


def weighted_sum(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    """The sum of weight times estimate; errors add, and each weight, product and sum may be rounded once.

    >>> half = Estimate(1.0, 0.5, "proven", "by hand")
    >>> weighted_sum([(0.5, half), (-0.25, half)])
    Estimate(value=0.25, error=0.375000000000001, kind='proven', method='by hand')
    """
    value = math.fsum(weight * part.value for weight, part in parts)
    size = math.fsum(abs(weight) * (abs(part.value) + part.error) for weight, part in parts)
    error = math.fsum(abs(weight) * part.error for weight, part in parts) + 8 * size * 2.0**-53
    order: list[ErrorKind] = ["proven", "confidence", "estimated"]
    kind = max((part.kind for _, part in parts), key=order.index)
    method = "; ".join(dict.fromkeys(part.method for _, part in parts))
    return Estimate(value, error, kind, method, any(part.heuristic for _, part in parts))


@dataclass(frozen=True)
class Evaluation:
    """What a market and a mechanism come to: each agent's ex-ante payoff and the platform's expected regret.

    `notes` say what a reader must know, such as conditions of a theorem that do not hold here. A `partial` one was
    sampled less than was asked for; its intervals hold all the same.
    """

    payoff: dict[str, Estimate]
    regret: Estimate
    engine: str
    notes: tuple[str, ...] = field(default=())
    partial: bool = False
