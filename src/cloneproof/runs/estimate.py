"""Numbers with their intervals, and how they were obtained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from cloneproof._lib.data import Data
from cloneproof._lib.tables import Tabular

ErrorKind = Literal["exact", "confidence", "posterior"]
BoundsName = Literal["distribution-free", "asymptotic"]  # of what is sampled
COLUMNS: Final = ("value", "low", "high", "kind", "level", "method")
_ORDER: Final[tuple[ErrorKind, ...]] = ("exact", "confidence", "posterior")  # the surest first


@dataclass(frozen=True)
class Estimate(Data):
    """A number, an interval for the true value, and what that interval means.

    Attributes
    ----------
    value : float
        The number itself.
    error : float
        Half of the interval's width: the true value lies in [`low`, `high`], in the sense of `kind`.
    kind : {"exact", "confidence", "posterior"}
        "exact": it does, by a law or an argument, in floats: a law's error is 1e-12 of the largest payoff in the
        market, far more than its roundings. "confidence": intervals of this kind hold with probability `level`,
        whatever the truth. "posterior": it does with probability `level`, given the data and the prior.
    method : str
        How the number was obtained, in words.
    heuristic : bool
        Whether the error follows from no theorem, such as that of a quadrature from two resolutions: it is likely to
        be large enough, and no verdict rests on it. What is computed from such an estimate is heuristic too.
    level : float
        The probability with which the interval holds; 1 if it is exact.
    lean : float
        How far the middle of the interval lies above the value: 0 but for costs, whose rare large losses a sample may
        have missed.

    Examples
    --------
    >>> Estimate(2.0, 0.5, "exact", "by hand") - Estimate(1.0, 0.25, "exact", "by hand")
    Estimate(value=1.0, error=0.7500000000000001, kind='exact', method='by hand', level=1.0)
    >>> Estimate(1.0, float("inf"), "confidence", "one run", level=0.99).to_dict()
    {'value': 1.0, 'low': None, 'high': None, 'error': None, 'kind': 'confidence', 'level': 0.99, 'method': 'one run'}
    """

    keys_of_data = ("value", "low", "high", "error", "kind", "level", "method", "heuristic?", "lean?")

    value: float
    error: float
    kind: ErrorKind
    method: str
    heuristic: bool = field(default=False, repr=False)
    level: float = 1.0
    lean: float = field(default=0.0, repr=False)

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.value + self.lean - self.error

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value + self.lean + self.error

    @classmethod
    def between(cls, low: float, value: float, high: float, kind: ErrorKind, method: str, level: float) -> Estimate:
        """Return an estimate whose interval need not have the value in its middle.

        >>> cost = Estimate.between(3.0, 4.0, 9.0, "confidence", "runs", 0.99)
        >>> cost.low, cost.high, cost.error
        (3.0, 9.0, 3.0)
        """
        error = (high - low) / 2
        return cls(value, error, kind, method, level=level, lean=(low + high) / 2 - value if error < math.inf else 0.0)

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate of `factor` times the number."""
        return replace(self, value=factor * self.value, error=abs(factor) * self.error, lean=factor * self.lean)

    def raised(self, more: float) -> Estimate:
        """Return the estimate with the upper end so much higher."""
        return replace(self, error=self.error + more / 2, lean=self.lean + more / 2)

    def __sub__(self, other: Estimate) -> Estimate:
        """Subtract an estimate; the kind of the difference is the weaker of the two, and so is its level."""
        kind = max(self.kind, other.kind, key=_ORDER.index)
        method = self.method if self.method == other.method else f"{self.method}; {other.method}"
        error = self.error + other.error + abs(self.value - other.value) * 2.0**-53
        heuristic, level = self.heuristic or other.heuristic, both_hold(self.level, other.level)
        return Estimate(self.value - other.value, error, kind, method, heuristic, level, self.lean - other.lean)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Estimate:
        """Invert `to_dict`."""
        error, lean = math.inf if data["error"] is None else data["error"], data.get("lean", 0.0)
        known = data["kind"], data["method"], data.get("heuristic", False)
        return cls(data["value"], error, *known, data["level"], lean)


def both_hold(*levels: float) -> float:
    """Return the probability with which statements of these levels hold together, whatever they have in common.

    >>> both_hold(1.0, 0.99), round(both_hold(0.99, 0.99), 12)
    (0.99, 0.98)
    """
    return max(0.0, 1.0 - math.fsum(1.0 - level for level in levels))


def weighted_sum(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    """Sum weight times estimate; errors add, and each weight, product and sum may be rounded once.

    >>> half = Estimate(1.0, 0.5, "exact", "by hand")
    >>> weighted_sum([(0.5, half), (-0.25, half)])
    Estimate(value=0.25, error=0.375000000000001, kind='exact', method='by hand', level=1.0)
    """
    value = math.fsum(weight * part.value for weight, part in parts)
    size = math.fsum(abs(weight) * (abs(part.value) + part.error) for weight, part in parts)
    error = math.fsum(abs(weight) * part.error for weight, part in parts) + 8 * size * 2.0**-53
    kind = max((part.kind for _, part in parts), key=_ORDER.index)
    method = "; ".join(dict.fromkeys(part.method for _, part in parts))
    level, lean = both_hold(*(part.level for _, part in parts)), math.fsum(weight * part.lean for weight, part in parts)
    return Estimate(value, error, kind, method, any(part.heuristic for _, part in parts), level, lean)


@dataclass(frozen=True)
class Evaluation(Tabular):
    """Expected payoffs and regret of a mechanism in a market: the result of `cp.evaluate`.

    Attributes
    ----------
    payoff : dict of str to Estimate
        Each agent's ex-ante payoff.
    regret : Estimate
        The platform's expected regret against the best original.
    engine : str
        Which engine computed it: "law", "tree" or "runs".
    notes : tuple of str
        What a reader must know, such as conditions of a theorem that do not hold here.
    partial : bool
        Whether it was sampled less than was asked for; its intervals hold all the same.
    by_segment : dict of str to Evaluation
        The same in each segment, of which these are the sums; empty in a market without segments.
    """

    keys_of_data = ("engine", "payoff", "regret", "notes", "partial", "by_segment?")

    payoff: dict[str, Estimate]
    regret: Estimate
    engine: str
    notes: tuple[str, ...] = field(default=())
    partial: bool = False
    by_segment: dict[str, Evaluation] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """Invert `to_dict`."""
        payoff = {name: Estimate.from_dict(own) for name, own in data["payoff"].items()}
        regret = Estimate.from_dict(data["regret"])
        parts = {name: cls.from_dict(own) for name, own in data.get("by_segment", {}).items()}
        return cls(payoff, regret, data["engine"], tuple(data["notes"]), data["partial"], parts)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return one row for each agent's payoff, and one for the regret."""
        rows = [("payoff", name, estimate) for name, estimate in self.payoff.items()]
        rows.append(("regret", "", self.regret))
        return {
            "quantity": [quantity for quantity, _, _ in rows],
            "agent": [agent for _, agent, _ in rows],
            **{
                key: [getattr(estimate, key) for *_, estimate in rows]
                for key in ("value", "low", "high", "kind", "level", "method")
            },
        }


def summed(by_segment: Mapping[str, Evaluation]) -> Evaluation:
    """Return the evaluation of a market with segments: expectations add up, and so do their errors."""
    first, *_ = parts = [*by_segment.values()]
    payoff = {name: weighted_sum([(1.0, own.payoff[name]) for own in parts]) for name in first.payoff}
    regret = weighted_sum([(1.0, own.regret) for own in parts])
    notes = tuple(dict.fromkeys(note for own in parts for note in own.notes))
    return Evaluation(payoff, regret, first.engine, notes, any(own.partial for own in parts), dict(by_segment))
