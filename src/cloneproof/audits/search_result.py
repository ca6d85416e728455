"""What a search found, and why nothing else pays: deviations with what they are worth, and arguments.

A gain counts as above the tolerance only if its whole interval does. One that is computed counts as none within its
error, which is 1e-12 of the largest payoff in the market unless priors are continuous: "no gain" means none above that.
A heuristic error, as of a quadrature, decides nothing.

An argument is a proof of the mechanism's, or a search that left nothing out: no vector of fewer than k arms pays, and
those of k or more cannot, because of what they earn at most (`Proof.earns`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from cloneproof.audits.deviations import CopiesOf, CopyVector, OriginalKinds, all_below, of_sum
from cloneproof.audits.gain import Finding, Payoff
from cloneproof.audits.question import Argument, AuditCase, Question, from_proof, most_earned
from cloneproof.evaluation.evaluate import ExactEngine
from cloneproof.market.market import MOST_ARMS, FullCopies, Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import BoundsName, Estimate
from cloneproof.runs.statistics import RunTotals

ROUNDING = 1e-9  # A computed gain counts as none within an error that is at most this part of the payoffs.
MOST_MORE = 200  # A search takes in at most this many vectors beyond the grid to become complete.
ANYBODY = "no proof covers any opponents, of whom only some lists were tried"
NEARLY = 0.01  # Of gains that differ by a smaller part the simpler one is shown.

EngineUsed = Literal["auto", "law", "tree", "sampled", "argument"]


@dataclass(frozen=True, repr=False)
class Witness(Finding):
    """A deviation and what it is worth: everything needed to play it again.

    Attributes
    ----------
    agent : str
        Who deviates.
    copies : tuple of int
        How often it registers each of its originals.
    honest, copied, gain : Estimate
        Its payoff when honest, its payoff with these copies, and the difference.
    market : Market
        With the horizon and the opponents of the deviation: their priors, or the means that a search found.
    all_copies : dict of str to tuple of int
        What everybody registers in that market.
    argued : bool
        Whether a theorem speaks for it and nothing was computed: its numbers are only what the theorem leaves possible.
    by_segment : dict of str to Finding
        Both payoffs and the gain in each segment, if they were computed and the market has segments.
    """

    keys_of_data = (
        "agent", "copies", "horizon", "honest", "copied", "gain", "relative_gain", "all_copies", "argued?",
    )  # fmt: skip

    agent: str
    copies: tuple[int, ...]
    market: Market
    all_copies: FullCopies
    argued: bool = False

    @classmethod
    def of(cls, deviation: CopiesOf, market: Market, paid: Finding) -> Self:
        """Return what was found of these copies in a market."""
        everybody = deviation.sampled(market).copies
        return cls(*paid.numbers, deviation.agent, deviation.copies, market, everybody, by_segment=paid.by_segment)

    def __repr__(self) -> str:
        if self.argued:
            most = "no gain" if self.gain.high <= 0 else f"a gain of at most {self.gain.high:.3g}"
            what = f"Witness(agent={self.agent!r}, copies={self.copies}, horizon={self.horizon}"
            return f"{what}, {most} by an argument, none computed)"
        relative = f"{self.relative_gain:+.2%}" if self.honest.value > 0 else "of nothing"
        return (
            f"Witness(agent={self.agent!r}, copies={self.copies}, horizon={self.horizon}, gain={self.gain.value:.6g} "
            f"± {self.gain.error:.2g} ({relative}, {self.gain.kind}))"
        )

    @property
    def horizon(self) -> int:
        """Rounds of its market."""
        return self.market.horizon

    @property
    def gain_at_most(self) -> float:
        """Upper end of the gain, and no more than the agent can earn."""
        return min(self.gain.high, max(0.0, most_earned(self.market, self.agent) - max(0.0, self.honest.low)))


BoundedDeviation = tuple[Witness, float | None]  # and a bound of its relative gain, if one is known


def pays(witness: Finding, tolerance: float) -> bool:
    """Return whether the gain is surely above the tolerance."""
    error = _gain_error(witness)
    return error is not None and witness.gain.value - error > tolerance * _honest_bound(witness, +1)


def does_not_pay(witness: Finding, tolerance: float) -> bool:
    """Return whether the gain is surely at most the tolerance; a gain within the error of a law is none."""
    error, gain = _gain_error(witness), witness.gain
    if error is None:
        return False
    if gain.kind == "exact" and error <= ROUNDING * max(witness.honest.value, witness.copied.value):
        error = -error
    return gain.value + error <= tolerance * _honest_bound(witness, -1)


def relative_gain_at_most(witness: Witness) -> float | None:
    """Return a bound of the relative gain (0 if it gains nothing); None if its error is heuristic."""
    error = _gain_error(witness)
    if error is None:
        return None
    if does_not_pay(witness, 0.0):
        return 0.0
    least = _honest_bound(witness, -1)
    most = min(witness.gain.value + error, most_earned(witness.market, witness.agent) - least)
    if most <= 0:
        return 0.0
    return most / least if least > 0 else math.inf


def best_of(witnesses: Iterable[Witness]) -> Witness:
    """Return the largest relative gain; among equals, the fewest arms."""
    return max(witnesses, key=lambda witness: (witness.relative_gain, -sum(witness.copies)))


def simplest_of(witnesses: Iterable[Witness]) -> Witness:
    """Return the witness to show: the fewest arms with a relative gain within a hundredth of the largest."""
    listed = list(witnesses)
    largest = best_of(listed).relative_gain
    enough = largest - NEARLY * abs(largest) if math.isfinite(largest) else largest
    nearly_best = (witness for witness in listed if witness.relative_gain >= enough)
    return min(nearly_best, key=lambda witness: (sum(witness.copies), witness.horizon))


def _gain_error(witness: Finding) -> float | None:
    """Return the error; None if it is heuristic."""
    return None if witness.gain.heuristic else witness.gain.error


def _honest_bound(witness: Finding, side: int) -> float:
    """Return the upper (+1) or lower (-1) end of the honest payoff."""
    return max(0.0, witness.honest.value + side * witness.honest.error)


@dataclass(frozen=True)
class SampledDeviation:
    """A sampled deviation: what is needed to draw the same pairs again, and their sums."""

    agent: str
    copies: tuple[int, ...]
    market: Market
    mechanism: Mechanism
    seed: int
    confidence: float
    progress: RunTotals
    bounds: BoundsName


@dataclass(frozen=True)
class SearchResult:
    """The deviations of one agent."""

    case: AuditCase
    engine: EngineUsed  # "argument" if nothing was evaluated
    honest: Payoff | None
    argument: Argument | None = None  # why no copies can pay, if that is known without what was evaluated
    evaluated: dict[CopyVector, Witness] = field(default_factory=dict)
    left_out: dict[CopyVector, str] = field(default_factory=dict)  # and why
    # of a race
    samples: dict[CopyVector, SampledDeviation] = field(default_factory=dict)
    at_most: dict[CopyVector, float | None] = field(default_factory=dict)  # the largest bounds all candidates together
    added: tuple[CopyVector, ...] = ()  # where the gain rose, in the order in which they were tried
    more: str = ""  # what more work would settle, in a sentence

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


def largest_of(bounds: Iterable[float | None]) -> float | None:
    """Return the largest of them; None if one is unknown."""
    listed = list(bounds)
    return None if None in listed else max(bound for bound in listed if bound is not None)


def argued_result(case: AuditCase, vector: CopyVector, argument: Argument) -> SearchResult:
    """Return the first copy in a case as a witness that needed no evaluation."""
    half = case.market.share * case.horizon / 2  # means lie in [0, 1]
    payoff = Estimate(half, half, "exact", "between none and all of the rounds at a mean of 1")
    most = None if argument.proof is None else argument.proof.most
    if most is not None and most.high > 0:
        words = "at most the ceiling on slots"
        gain = Estimate(most.high - half, half, most.kind, words, heuristic=most.heuristic)
    elif argument.on_slots:
        gain = Estimate(-half, half, "exact", "no gain, by the scan theorem")
    else:
        gain = Estimate(0.0, 0.0, "exact", f"an argument: {argument.words}")
    witness = replace(Witness.of(case.deviation(vector), case.market, Finding(payoff, payoff, gain)), argued=True)
    return SearchResult(case, "argument", Payoff(payoff), argument, {vector: witness})


@dataclass(frozen=True)
class FoundDeviations:
    """What a strategy of the audit found for one agent of each kind."""

    results: tuple[SearchResult, ...]
    notes: tuple[str, ...] = ()
    by_scan: bool = False  # whether a theorem on slots speaks about every case, so that few deviations were evaluated


def for_exchangeable(result: SearchResult, case: AuditCase) -> SearchResult:
    """Return the same findings for an agent with the same priors, if the mechanism treats agents alike."""
    evaluated = {
        vector: replace(witness, agent=case.name, all_copies=case.copies(vector))
        for vector, witness in result.evaluated.items()
    }
    return replace(result, case=case, evaluated=evaluated, samples={})


def more_vectors(case: AuditCase, honest: Payoff, tolerance: float) -> list[CopyVector]:
    """Return the vectors that would make the search complete, if they are few enough."""
    most = max(case.agent.count + 1, min(MOST_ARMS, case.horizon + 1))
    enough = None if case.elementary else case.proof.from_arms(honest.total.low * (1 + tolerance), most)
    return all_below(case.kinds, enough or 0, MOST_MORE) or []


def from_search(case: AuditCase, tolerance: float, result: SearchResult) -> Argument:
    """Return what a search comes to: every vector of few arms was evaluated, and more arms explore too long; or not."""
    assert result.honest is not None
    honest, arms = result.honest.total, first_unsearched(case.kinds, result)
    unclear = [witness for witness in result.witnesses if not does_not_pay(witness, tolerance)]
    earned = math.inf if case.proof.earns is None else case.proof.earns(arms)
    doubtful = max([0.0, *(witness.gain_at_most for witness in unclear)])
    if earned > honest.low * (1 + tolerance):
        room = min(earned, most_earned(case.market, case.name)) - max(0.0, honest.low)
        tried = "" if unclear else "none of those tried pays, but "
        return Argument(f"{tried}no argument covers {arms} or more arms", False, max(doubtful, room))
    if unclear:
        return Argument(f"{len(unclear)} of the gains are too near the tolerance to tell", False, doubtful)
    gained = "" if tolerance else " and gains no more than 1e-12 of the payoff"
    return Argument(
        f"every vector of fewer than {arms} arms was evaluated{gained}, and {arms} or more explore too long: with a "
        f"commitment that never errs they would earn at most {earned:.6g}, honesty earns {honest.value:.6g}"
    )


def first_unsearched(kinds: OriginalKinds, result: SearchResult) -> int:
    """Return the smallest number of arms of a vector that was not evaluated."""
    arms = kinds.count + 1
    while all(vector in result.evaluated for vector in of_sum(kinds, arms)):
        arms += 1
    return arms


def _found(result: SearchResult, tolerance: float) -> Argument:
    """Return the first argument that settles a case; if none does, what bounds the gains of copies."""
    case, honest = result.case, result.honest
    assert honest is not None
    proven = from_proof(case, tolerance, honest.total)
    if proven is not None and proven.settles and (case.proof.same or case.proof.on_slots or case.market.segments):
        return proven
    searched = from_search(case, tolerance, result)
    return searched if searched.settles or proven is None else proven


def against_anybody(case: AuditCase, argument: Argument | None) -> bool:
    """Return whether an argument settles the case whatever the others are and register.

    Proofs are about any opponents whose means and strategies do not depend on which of the agent's originals is better.
    A search is where the others cannot reach the agent: its rounds are given.
    """
    return argument is not None and argument.settles and (argument.proof is not None or case.proof.apart)


def _against_any(case: AuditCase, found: Argument) -> Argument:
    """Return the argument that holds against any opponents; else one that leaves everything open."""
    if found.on_slots:
        return found
    if against_anybody(case, found):
        alone = found.proof is None and case.agents > 1
        return replace(found, words=f"the others do not change its rounds; {found.words}") if alone else found
    if case.argument is not None and against_anybody(case, case.argument):
        return case.argument
    return Argument(ANYBODY, False, most_earned(case.market, case.name))


def after_search(question: Question, results: Iterable[SearchResult]) -> dict[AuditCase, Argument]:
    """Return the argument of each case with an honest payoff: the one its result rests on, or the first that holds.

    Against any opponents an argument about the market's is none.
    """
    found = {
        result.case: result.argument or _found(result, question.tolerance)
        for result in results
        if result.honest is not None
    }
    if question.opponents == "market":
        return found
    return {case: _against_any(case, found[case]) for case in question.searched if case in found}
