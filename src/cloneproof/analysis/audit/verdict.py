"""What an audit says: a verdict, its witness, and its scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

Verdict = Literal["exploitable", "clone-proof", "undecided"]


@dataclass(frozen=True, repr=False)
class Witness:
    """A deviation and what it is worth: everything needed to play it again.

    `market` has the horizon and the opponents of the deviation (their priors, or the means found by a search), and
    `all_copies` what everybody registers in it.
    """

    agent: str
    copies: tuple[int, ...]
    honest: Estimate
    copied: Estimate
    gain: Estimate
    market: Market
    all_copies: FullCopies

    def __repr__(self) -> str:
        relative = f"{self.relative_gain:+.2%}" if self.honest.value > 0 else "of nothing"
        return (
            f"Witness(agent={self.agent!r}, copies={self.copies}, horizon={self.horizon}, gain={self.gain.value:.6g} "
            f"± {self.gain.error:.2g} ({relative}, {self.gain.kind}))"
        )

    @property
    def horizon(self) -> int:
        """The rounds of its market."""
        return self.market.horizon

    @property
    def relative_gain(self) -> float:
        """The gain as a part of the honest payoff (infinite where that is nothing)."""
        if self.honest.value > 0:
            return self.gain.value / self.honest.value
        return float("inf") if self.gain.value > 0 else 0.0


@dataclass(frozen=True)
class SampledDeviation:
    """A deviation that was sampled: what it takes to draw the same pairs of runs again, and what they added up to."""

    agent: str
    copies: tuple[int, ...]
    market: Market
    mechanism: Mechanism
    seed: int
    confidence: float
    progress: RunTotals


@dataclass(frozen=True, repr=False)
class Audit:
    """The answer to "can it be gamed?", with its scope.

    verdict      exploitable: `worst` is a witness whose gain is proven above the tolerance; clone-proof: the search was
                 complete, and `scope` says by which argument; undecided: neither, and `worst` is the largest gain not
                 ruled out
    tried        every deviation that was evaluated, for the payoff-against-copies curves
    by_horizon   the best deviation at each horizon asked for
    thresholds   (score that must be beaten, largest gain over copies at it): an upper bound over all opponents, where
                 dominance was asked for and the mechanism has two phases
    apart        further deviations, reported apart: withholding, splitting
    samples      what was sampled, for a replay record
    """

    mechanism: Mechanism
    market: Market
    verdict: Verdict
    worst: Witness
    scope: str
    tolerance: float
    tried: tuple[Witness, ...] = ()
    by_horizon: dict[int, Witness] = field(default_factory=dict)
    thresholds: tuple[tuple[float, Estimate], ...] = ()
    apart: dict[str, Witness] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    samples: tuple[SampledDeviation, ...] = ()
    seconds: float = 0.0

    def __repr__(self) -> str:
        head = f"{self.verdict!r}, mechanism={self.mechanism.name!r}, tolerance={self.tolerance:g}"
        return f"Audit({head},\n      worst={self.worst!r})"
