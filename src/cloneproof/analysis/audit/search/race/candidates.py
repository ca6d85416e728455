"""A candidate of a race, and what was drawn of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.search.race.forecast import pair_variance, pairs_until_known, variance
from cloneproof.analysis.audit.verdict import SampledDeviation, Witness
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals


class RaceEntry(NamedTuple):
    """Copies of an agent at a horizon."""

    case: AuditCase
    copies: CopyVector

    @property
    def arms(self) -> int:
        """The arms of everybody together."""
        return sum(map(sum, self.case.copies(self.copies).values()))

    @property
    def attacks(self) -> bool:
        """Whether it is a replication; a world without some of the originals is played for what it says of others."""
        return 0 not in self.copies


@dataclass(frozen=True)
class Draws:
    """What was drawn of a candidate from one seed, at one level, and what a pair costs."""

    sample: SampledDeviation
    witness: Witness
    alone: Witness  # with the upper end of the gain, and the lower end of the honest payoff, at the level of "none"
    cost: float

    @property
    def totals(self) -> RunTotals:
        """The sums so far."""
        return self.sample.progress

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return self.totals.runs

    def excess(self, tolerance: float) -> float:
        """By how much the gain seems to exceed the tolerance."""
        return self.witness.gain.value - tolerance * max(0.0, self.witness.honest.value)

    @cached_property
    def variance(self) -> float:
        """The variance of the gain in one pair of whole passes."""
        return pair_variance(self.totals)

    @cached_property
    def error(self) -> float:
        """The standard error of the gain."""
        return math.sqrt(variance(self.totals) / max(1, self.totals.count))

    def pairs_until_known(self, excess: float, alpha: float, bounds: BoundsName) -> float:
        """The pairs in all after which a gain of `excess` above the tolerance shows."""
        return pairs_until_known(self.totals.estimands, self.variance, excess, alpha, bounds)
