"""The result of a search for one agent: the deviations evaluated, and what was left out and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.question import AgentCases, AuditCase, OpponentsName
from cloneproof.analysis.audit.result import (
    SampledDeviation,
    ThresholdGains,
    Witness,
    best_of,
    pays,
    relative_gain_at_most,
)
from cloneproof.analysis.audit.theorems import Argument, Basis
from cloneproof.analysis.evaluate import ExactEngine
from cloneproof.engines.estimate import Estimate

HorizonPayoffs = dict[int, Estimate]
Evaluated = dict[CopyVector, list[Witness]]  # for each vector of copies, a witness at each horizon
KnownArguments = dict[AuditCase, Argument]
BoundedDeviation = tuple[Witness, float | None]  # and a bound of its relative gain, if one is known
EngineUsed = Literal["auto", "closed-form", "tree", "sampled", "argument", "dominance"]


@dataclass(frozen=True)
class SearchResult:
    """The deviations of one agent in its cases.

    engine     what evaluated them; "argument" if nothing was evaluated
    honest     the honest payoff at each horizon
    arguments  at some horizons: why no copies can pay, known without what was evaluated
    left_out   the vectors that were not evaluated, and why

    Of a race, which has one case:

    at_most    relative gains whose largest bounds those of all candidates together
    worlds     worlds without some originals, played only as bounds
    covers     whether the worlds and deviations of `at_most` bound every replication (`arguments.arms_in_play`)
    added      the vectors that were added where the gain rose, in the order in which they were tried

    Against any opponents (`against`):

    thresholds  the largest gain at each score that must be beaten
    """

    against: ClassVar[OpponentsName] = "market"

    cases: AgentCases
    engine: EngineUsed
    honest: HorizonPayoffs
    arguments: dict[int, Argument] = field(default_factory=dict)
    evaluated: Evaluated = field(default_factory=dict)
    left_out: dict[CopyVector, str] = field(default_factory=dict)
    samples: dict[CopyVector, SampledDeviation] = field(default_factory=dict)
    at_most: dict[CopyVector, float | None] = field(default_factory=dict)
    worlds: dict[CopyVector, Witness] = field(default_factory=dict)
    covers: bool = False
    added: tuple[CopyVector, ...] = ()
    thresholds: ThresholdGains = ()

    @property
    def agent(self) -> str:
        return self.cases[0].name

    @property
    def witnesses(self) -> list[Witness]:
        return [witness for witnesses in self.evaluated.values() for witness in witnesses]

    @property
    def worst(self) -> Witness:
        """Best deviation tried."""
        return best_of(self.witnesses)

    def paying(self, tolerance: float) -> list[Witness]:
        """Return the deviations that surely gain more than the tolerance."""
        return [witness for witness in self.witnesses if pays(witness, tolerance)]

    def bounds(self) -> list[BoundedDeviation]:
        """Return the deviations with relative gains that all of them together do not exceed."""
        if self.at_most:
            largest = largest_of(self.at_most.values())  # which bounds the candidates that have no bound of their own
            return [(one, self.at_most.get(vector, largest)) for vector, (one,) in self.evaluated.items()]
        return [(witness, relative_gain_at_most(witness)) for witness in self.witnesses]

    def with_witnesses(self, better: Iterable[Witness]) -> Self:
        """Return the result with these witnesses in place of those of the same copies at the same horizon."""
        known = {(witness.copies, witness.horizon): witness for witness in better}
        evaluated = {
            vector: [known.get((each.copies, each.horizon), each) for each in witnesses]
            for vector, witnesses in self.evaluated.items()
        }
        return replace(self, evaluated=evaluated)


@dataclass(frozen=True)
class ExactResult(SearchResult):
    """Deviations that an exact engine evaluated."""

    engine: ExactEngine


@dataclass(frozen=True)
class DominanceResult(SearchResult):
    """Deviations of one agent in one case, each against the opponents at which it gains most.

    A gain at a threshold bounds what any opponents allow; only `attack` is known to be realised by some.

    closest     the deviation that the argument is about
    attack      a deviation and opponents with a proven gain
    notes       remarks for the reader
    """

    against = "any"

    closest: Witness = field(kw_only=True)
    attack: Witness | None = None
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> Witness:
        return self.attack or self.closest

    @property
    def argument(self) -> Argument:
        """Why no copies pay, or what was found instead."""
        return self.arguments[self.cases[0].horizon]

    def paying(self, tolerance: float) -> list[Witness]:
        return [] if self.attack is None else [self.attack]

    def bounds(self) -> list[BoundedDeviation]:
        return [(self.worst, None)]


def largest_of(bounds: Iterable[float | None]) -> float | None:
    """Return the largest of them; None if one is unknown."""
    known = list(bounds)
    return None if None in known else max(bound for bound in known if bound is not None)


def argued_result(cases: AgentCases, vector: CopyVector, arguments: dict[int, Argument]) -> SearchResult:
    """Return the first copy in each case as a witness that needed no evaluation."""
    witnesses = []
    honest: HorizonPayoffs = {}
    for case in cases:
        half = case.market.share * case.horizon / 2  # means lie in [0, 1]
        payoff = Estimate(half, half, "proven", "between none and all of the rounds at a mean of 1")
        argument = arguments[case.horizon]
        most = argument.ceiling
        if most is not None and most.high > 0:
            words = "at most the ceiling on slots"
            gain = Estimate(most.high - half, half, most.kind, words, heuristic=most.heuristic)
        elif argument.basis is Basis.SCAN:
            gain = Estimate(-half, half, "proven", "no gain, by the scan theorem")
        else:
            gain = Estimate(0.0, 0.0, "proven", f"an argument: {argument.words}")
        honest[case.horizon] = payoff
        witnesses.append(replace(case.witness(vector, payoff, payoff), gain=gain, argued=True))
    known = {case.horizon: arguments[case.horizon] for case in cases}
    return SearchResult(cases, "argument", honest, known, {vector: witnesses})


@dataclass(frozen=True)
class FoundDeviations:
    """What a strategy of the audit found for one agent of each kind.

    notes    remarks for the reader
    by_scan  whether a theorem on slots speaks about every agent and horizon, so that at most a few deviations were
             evaluated
    """

    results: tuple[SearchResult, ...]
    notes: tuple[str, ...] = ()
    by_scan: bool = False


def for_exchangeable(result: SearchResult, cases: AgentCases) -> SearchResult:
    """Return the same findings for an agent with the same priors, if the mechanism treats agents alike."""
    at_horizon = {case.horizon: case for case in cases}

    def renamed(witness: Witness) -> Witness:
        case = at_horizon[witness.horizon]
        return replace(witness, agent=case.name, all_copies=case.copies(witness.copies))

    evaluated = {vector: [renamed(each) for each in witnesses] for vector, witnesses in result.evaluated.items()}
    same_horizons = tuple(at_horizon[case.horizon] for case in result.cases)
    return replace(result, cases=same_horizons, evaluated=evaluated, samples={})
