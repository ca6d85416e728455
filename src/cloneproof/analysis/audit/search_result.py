"""The result of a search for one agent at one horizon: the deviations evaluated, and what was left out and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self, TypeVar

from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.question import AuditCase, OpponentsName
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
from cloneproof.analysis.gain import Finding, Payoff
from cloneproof.engines.estimate import Estimate

KnownArguments = dict[AuditCase, Argument]
BoundedDeviation = tuple[Witness, float | None]  # and a bound of its relative gain, if one is known
EngineUsed = Literal["auto", "closed-form", "tree", "sampled", "argument", "dominance"]


@dataclass(frozen=True)
class SearchResult:
    """The deviations of one agent at one horizon.

    engine     what evaluated them; "argument" if nothing was evaluated
    honest     the honest payoff, if it is known
    argument   why no copies can pay, if that is known without what was evaluated
    left_out   the vectors that were not evaluated, and why; vectors that were left out at all horizons together are
               listed at the first

    Of a race:

    at_most    relative gains whose largest bounds those of all candidates together
    worlds     worlds without some originals, played only as bounds
    covers     whether the worlds and deviations of `at_most` bound every replication (`arguments.arms_in_play`)
    more       what more work would settle, in a sentence
    added      the vectors that were added where the gain rose, in the order in which they were tried

    Against any opponents (`against`):

    thresholds  the largest gain at each score that must be beaten
    """

    against: ClassVar[OpponentsName] = "market"

    case: AuditCase
    engine: EngineUsed
    honest: Payoff | None
    argument: Argument | None = None
    evaluated: dict[CopyVector, Witness] = field(default_factory=dict)
    left_out: dict[CopyVector, str] = field(default_factory=dict)
    samples: dict[CopyVector, SampledDeviation] = field(default_factory=dict)
    at_most: dict[CopyVector, float | None] = field(default_factory=dict)
    worlds: dict[CopyVector, Witness] = field(default_factory=dict)
    covers: bool = False
    added: tuple[CopyVector, ...] = ()
    more: str = ""
    thresholds: ThresholdGains = ()

    @property
    def agent(self) -> str:
        return self.case.name

    @property
    def witnesses(self) -> list[Witness]:
        return list(self.evaluated.values())

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
            return [(witness, self.at_most.get(vector, largest)) for vector, witness in self.evaluated.items()]
        return [(witness, relative_gain_at_most(witness)) for witness in self.witnesses]

    def with_witnesses(self, better: Mapping[CopyVector, Witness]) -> Self:
        """Return the result with these witnesses in place of those of the same copies."""
        return replace(self, evaluated={vector: better.get(vector, own) for vector, own in self.evaluated.items()})


@dataclass(frozen=True)
class ExactResult(SearchResult):
    """Deviations that an exact engine evaluated."""

    engine: ExactEngine
    honest: Payoff


@dataclass(frozen=True)
class DominanceResult(SearchResult):
    """Deviations of one agent, each against the opponents at which it gains most.

    A gain at a threshold bounds what any opponents allow; only `attack` is known to be realised by some.

    argument    why no copies pay, or what was found instead
    tried       the deviations, which are those of several epochs if the mechanism restarts
    closest     the deviation that the argument is about
    attack      a deviation and opponents with a proven gain
    notes       remarks for the reader
    """

    against = "any"

    argument: Argument
    tried: tuple[Witness, ...] = ()
    closest: Witness = field(kw_only=True)
    attack: Witness | None = None
    notes: tuple[str, ...] = ()

    @property
    def witnesses(self) -> list[Witness]:
        return list(self.tried)

    @property
    def worst(self) -> Witness:
        return self.attack or self.closest

    def paying(self, tolerance: float) -> list[Witness]:
        return [] if self.attack is None else [self.attack]

    def bounds(self) -> list[BoundedDeviation]:
        return [(self.worst, None)]


def largest_of(bounds: Iterable[float | None]) -> float | None:
    """Return the largest of them; None if one is unknown."""
    listed = list(bounds)
    return None if None in listed else max(bound for bound in listed if bound is not None)


AnyResult = TypeVar("AnyResult", bound=SearchResult)
T = TypeVar("T")


def found_together(results: Iterable[AnyResult]) -> list[list[AnyResult]]:
    """Return what was found in one pass over all horizons of an agent; what was sampled stands alone."""
    groups: list[list[AnyResult]] = []
    for result in results:
        last = groups[-1][-1] if groups else None
        if last is not None and result.engine != "sampled" and _of_one_pass(last, result):
            groups[-1].append(result)
        else:
            groups.append([result])
    return groups


def _of_one_pass(one: SearchResult, other: SearchResult) -> bool:
    return (one.agent, one.engine) == (other.agent, other.engine) and [*one.evaluated] == [*other.evaluated]


def by_vector(at_horizons: Iterable[Sequence[T]]) -> list[T]:
    """Return what is listed for each vector at each horizon, all horizons of a vector in turn."""
    return [one for of_vector in zip(*at_horizons, strict=True) for one in of_vector]


def tried_by_agent(results: Iterable[SearchResult]) -> list[list[Witness]]:
    """Return the deviations of each pass, all horizons of a vector in turn."""
    return [by_vector(result.witnesses for result in group) for group in found_together(results)]


def with_evaluated(
    results: Sequence[ExactResult], evaluated: Mapping[CopyVector, Sequence[Witness]], left_out: dict[CopyVector, str]
) -> list[ExactResult]:
    """Return the results with what was evaluated for each vector at the horizon of each result."""
    own = [{vector: witnesses[k] for vector, witnesses in evaluated.items()} for k in range(len(results))]
    listed = [left_out, *({} for _ in own[1:])]
    numbered = zip(results, own, listed, strict=True)
    return [replace(result, evaluated=witnesses, left_out=missing) for result, witnesses, missing in numbered]


def argued_result(case: AuditCase, vector: CopyVector, argument: Argument) -> SearchResult:
    """Return the first copy in a case as a witness that needed no evaluation."""
    half = case.market.share * case.horizon / 2  # means lie in [0, 1]
    payoff = Estimate(half, half, "proven", "between none and all of the rounds at a mean of 1")
    most = argument.ceiling
    if most is not None and most.high > 0:
        words = "at most the ceiling on slots"
        gain = Estimate(most.high - half, half, most.kind, words, heuristic=most.heuristic)
    elif argument.basis is Basis.SCAN:
        gain = Estimate(-half, half, "proven", "no gain, by the scan theorem")
    else:
        gain = Estimate(0.0, 0.0, "proven", f"an argument: {argument.words}")
    witness = replace(case.witness(vector, Finding(payoff, payoff, gain)), argued=True)
    return SearchResult(case, "argument", Payoff(payoff), argument, {vector: witness})


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


def for_exchangeable(result: SearchResult, case: AuditCase) -> SearchResult:
    """Return the same findings for an agent with the same priors, if the mechanism treats agents alike."""
    evaluated = {
        vector: replace(witness, agent=case.name, all_copies=case.copies(vector))
        for vector, witness in result.evaluated.items()
    }
    return replace(result, case=case, evaluated=evaluated, samples={})
