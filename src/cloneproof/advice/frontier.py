"""Rows of the frontier: what each mechanism loses if everybody is honest, and the most that copies gain under it.

A row has the strongest promise that is known: copies gain nothing (a theorem), at most a ceiling (a theorem too), or
what was found among the lists that were tried (`advice.measured`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from cloneproof._data import Data
from cloneproof.analysis.audit.result import Audit
from cloneproof.engines.estimate import Estimate, weighted_sum
from cloneproof.laws.best import best_round
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

Promise = Literal["proven", "ceiling", "measured"]  # the strongest first
TOLERANCE = 0.005  # Gains up to this part of the honest payoff count as none.


@dataclass(frozen=True)
class FrontierRow(Data):
    """A mechanism on the frontier, or not: what it loses, and what copies gain.

    name     the mechanism, and `parameters` its numbers
    lost     its regret, everybody honest, as a part of what perfect knowledge earns
    at_most  the most that copies gain, as a part of the honest payoff: proven, 0 for nothing; None if nothing is proven
    found    the most that copies or items left out were found to gain; None if nothing was tried
    copies   the list that gains it
    tried    how many lists were tried
    naming   what listing its best item alone gains a provider that knows it
    account  what a second account with the same items gains, in rewards; None if it was not computed
    best     whether no other row is as good in promise, loss and gain, and better in one of them
    """

    keys_of_data = (
        "mechanism=name", "parameters", "lost", "promise", "pays", "gain", "at_most", "found", "copies", "tried",
        "naming", "account", "best",
    )  # fmt: skip

    name: str
    lost: Estimate
    at_most: float | None = None
    found: Estimate | None = None
    copies: tuple[int, ...] = ()
    tried: int = 0
    naming: Estimate | None = None
    account: Estimate | None = None
    best: bool = False
    mechanism: Mechanism | None = None

    @property
    def promise(self) -> Promise:
        """What is known of copies."""
        return "measured" if self.at_most is None else "ceiling" if self.at_most else "proven"

    @property
    def pays(self) -> bool:
        """Whether copies surely pay."""
        return self.found is not None and self.found.low > TOLERANCE

    @property
    def gain(self) -> float:
        """The most that copies gain: proven, else as found, and at least 0."""
        if self.at_most is not None:
            return self.at_most
        return math.inf if self.found is None else max(0.0, self.found.value)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that have a value."""
        given = {} if self.mechanism is None else self.mechanism.parameters
        return {key: value for key, value in given.items() if value is not None}

    def keeps(self, promise: Promise) -> bool:
        """Return whether the promise is as strong as that one, and no copies were found to gain beyond it."""
        kinds, found = get_args(Promise), self.found
        calm = self.at_most is not None or (found is not None and found.value <= TOLERANCE)
        return calm and not self.pays and kinds.index(self.promise) <= kinds.index(promise)


def marked(rows: Iterable[FrontierRow]) -> tuple[FrontierRow, ...]:
    """Mark the rows that no other beats, the smallest loss first; what is measured beats nothing that is proven."""
    listed = sorted(rows, key=lambda row: row.lost.value)
    points = [(get_args(Promise).index(row.promise), row.lost.value, row.gain) for row in listed]

    def beaten(point: tuple[int, float, float]) -> bool:
        return any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in points)

    return tuple(replace(row, best=not beaten(point)) for row, point in zip(listed, points, strict=True))


def best_reward(market: Market) -> float:
    """Return what perfect knowledge earns in all rounds and segments."""
    markets = market.by_segment.values()
    return sum(own.horizon * best_round([agent.priors for agent in own.agents], own.places) for own in markets)


def as_part(estimate: Estimate, unit: float) -> Estimate:
    """Return a number of rewards as a part of another."""
    return weighted_sum([(1 / unit, estimate)]) if unit > 0 else replace(estimate, value=0.0, error=math.inf)


def row_of_audit(market: Market, name: str, audited: Audit, regret: Estimate | None) -> FrontierRow | None:
    """Return the row of an audit; None if no regret is known."""
    most, worst, knows = max(best_reward(market), 1e-300), audited.worst, audited.knowledge
    if regret is None:
        return None
    proven = audited.verdict == "clone-proof" and not audited.sampled_proof
    named = None if knows is None else as_part(knows.gain, knows.honest.value)
    ceiling = named.high if knows is not None and knows.proven and named is not None else None
    found = None if worst.argued else as_part(worst.gain, worst.honest.value)
    lost, numbers = as_part(regret, most), (found, worst.copies, len(audited.tried), named)
    return FrontierRow(name, lost, 0.0 if proven else ceiling, *numbers, mechanism=audited.mechanism)
