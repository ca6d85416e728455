"""The result of an audit: a verdict, its witness, and its scope.

A gain counts as above the tolerance only if its whole enclosure does: an enclosure in balls, a confidence sequence, or
floats whose counted rounding bound the gain exceeds a thousandfold (the bound counts operations, which is no proof). A
heuristic error, as of a quadrature, decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from cloneproof._data import columns_of
from cloneproof._sections import report
from cloneproof._tables import Tabular
from cloneproof.analysis.audit.gained import CopyLimit, Deduplication, InformedGain, KnowledgeGain, NearCopyGain
from cloneproof.analysis.gain import Finding
from cloneproof.engines.estimate import BoundsName, Estimate
from cloneproof.engines.monte_carlo.statistics import RunTotals
from cloneproof.errors import CertificateError
from cloneproof.market.market import FullCopies, Market
from cloneproof.mechanisms.mechanism import Mechanism

MARGIN = 1000.0  # A gain in floats must exceed its counted rounding bound this many times.
NEARLY = 0.01  # Of gains that differ by a smaller part the simpler one is shown.


Verdict = Literal["exploitable", "clone-proof", "undecided"]
ThresholdGains = tuple[tuple[float, Estimate], ...]  # a score that must be beaten, and the largest gain at it


class ScoreGain(NamedTuple):
    """A score that must be beaten, or a word for an infinite one, and the largest gain at it."""

    score: float | str
    gain: Estimate


class AuditState(StrEnum):
    """What the scope of an audit comes to."""

    ATTACK = "attack"  # a deviation surely pays
    PROOF = "proof"  # none does, by an argument that covers all of them
    SAMPLED_PROOF = "none pays at 99 %"  # the same, by samples of worlds that stand for all of them
    NONE_TRIED_PAYS = "none tried pays"  # beyond the tolerance, and nothing covers the others
    OPEN = "open"  # some of those tried may pay, and time or runs were out


def most_earned(market: Market, name: str) -> float:
    """Return the most that an agent can earn: the share of all rounds, or pages, at its best mean."""
    if market.segments:
        return sum(most_earned(own, name) for own in market.by_segment.values())
    support = next((agent.support for agent in market.agents if agent.name == name), None)
    return market.share * market.horizon * market.page_attention * (1.0 if support is None else max(support))


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
        Both payoffs and the gain in each segment, if they were computed in floats and the market has segments.
    """

    keys_of_data = (
        "agent", "copies", "horizon", "honest", "copied", "gain", "relative_gain", "all_copies", "argued?",
    )  # fmt: skip

    agent: str
    copies: tuple[int, ...]
    market: Market
    all_copies: FullCopies
    argued: bool = False

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


@dataclass(frozen=True)
class TriedVectors:
    """Number of vectors of copies tried for some agents each, and the most copies of an original among them."""

    agents: tuple[str, ...]
    number: int
    most: int


@dataclass(frozen=True)
class Reason:
    """An argument for some agents, at how many horizons, and the gain it leaves open (`most`, at `horizon`)."""

    agents: tuple[str, ...]
    words: str
    settles: bool
    horizons: int
    most: float = 0.0
    horizon: int = 0


@dataclass(frozen=True)
class DelayScope:
    """What late rewards change: whether they are declared, the most that copies gain through them, and why."""

    declared: bool
    gain: float | None
    reason: str


@dataclass(frozen=True)
class AuditScope:
    """What an audit tried, what it proved, and against whom; `str(scope)` says it in English (`report.words`).

    `against` is "market" (honest others), "any" (all opponents, by dominance) or "scan" (all, by the scan theorem).
    `copies` is the cap of the grid (0: none); `attack` is the gain of the witness of an exploitable mechanism.
    `by_shares` says whether pay depends on a list only through the shares of its draws: no list with copies then earns
    more than the best weights on distinct items, whatever anybody knows.
    """

    against: Literal["market", "any", "scan"]
    agents: tuple[str, ...]
    horizons: tuple[int, ...]
    tolerance: float
    at_random: bool = False
    about_tried: str = ""
    tried: tuple[TriedVectors, ...] = ()
    copies: int = 0
    engines: tuple[str, ...] = ()
    enclosed: bool = False
    added: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    left_out: tuple[tuple[str, int], ...] = ()
    attack: Estimate | None = None
    reasons: tuple[Reason, ...] = ()
    limits: tuple[CopyLimit, ...] = ()
    delays: DelayScope | None = None
    by_shares: bool = False
    segments: int = 0

    def __str__(self) -> str:
        return str(report("words").scope_words(self))


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


@dataclass(frozen=True, repr=False)
class Audit(Tabular):
    """The answer to "can it be gamed?", with its scope: the result of `cp.audit`.

    As a table (`to_frame`, `to_markdown`, `to_latex`) it is the deviations tried.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism at the horizon of `worst`.
    market : Market
        The market that was audited.
    verdict : {"exploitable", "clone-proof", "undecided"}
        "exploitable": `worst` is a witness whose gain is surely above the tolerance. "clone-proof": the search was
        complete, and `scope` says by which argument. "undecided": neither, and `worst` is the largest gain that was
        not ruled out.
    worst : Witness
        The deviation that the verdict rests on.
    scope : AuditScope
        What was tried, what was proven, and against whom; `str(scope)` is a paragraph.
    tolerance : float
        The gain, relative to the honest payoff, that counts as none.
    tried : tuple of Witness
        Every deviation that was evaluated, for the curves of payoff against copies.
    by_horizon : dict of int to Witness
        The best deviation at each horizon asked for.
    thresholds : tuple of (float, Estimate)
        (Score that must be beaten, largest gain over copies at it): an upper bound over all opponents, where dominance
        was asked for and the mechanism has two phases.
    also : dict of str to Witness
        The best deviation of each further kind that was asked for (`also=`): withholding, splitting.
    informed : InformedGain or None
        What an agent would gain if it knew its means before it registers, if asked for.
    variants : NearCopyGain or None
        What an agent would gain by variants of its originals, if asked for.
    not_computed : dict of str to str
        What `also=` asked for and got no number, and why.
    notes : tuple of str
        Remarks for the reader.
    samples : tuple of SampledDeviation
        What was sampled, for a replay record.
    tried_at_most : float, optional
        A relative gain that none of the deviations tried exceeds: surely, or together at 99 % if sampled. None if
        no such bound is known.
    seconds : float
        How long it took.
    limits : tuple of CopyLimit
        What ever more copies of an original tend to gain, if the audit sampled and the mechanism has such a limit.
    interrupted : bool
        Whether Ctrl-C ended it early.
    sampled_proof : bool
        Whether "clone-proof" rests on sampled worlds that stand for all deviations, and so holds at 99 %.
    gain_at_most : Estimate or None
        A ceiling on the gain of copies and withholding, in rewards (its upper end): proven, or without a guarantee if
        its kind is "estimated". None if no ceiling is known.
    smallest : Witness or None
        The fewest copies, rivals and rounds with which it was found to pay, if it is exploitable by honest others.
    more : str
        What more work would settle, if it is undecided after sampling.
    knowledge : KnowledgeGain or None
        Under mechanisms of two levels, what naming its best original alone gains an agent: proven to be the most that
        any list gains, or an estimate of it.
    deduplication : Deduplication or None
        What a de-duplicator leaves to gain, if one was declared (`caught=`).
    by_segment : dict of str to Witness
        `worst` in each segment, if the market has segments and its numbers were computed. They add up to those of
        `worst`, and each interval holds by itself.
    """

    keys_of_data = (
        "verdict", "state", "tried_at_most", "about_tried", "scope=_scope", "tolerance", "mechanism", "worst",
        "tried=_tried", "by_horizon=_by_horizon", "thresholds=_thresholds", "also", "limits", "informed",
        "variants", "not_computed", "notes", "interrupted", "gain_at_most", "smallest?", "more?", "knowledge?",
        "deduplication?", "by_segment?",
    )  # fmt: skip

    said_in = "audit"
    mechanism: Mechanism
    market: Market
    verdict: Verdict
    worst: Witness
    scope: AuditScope
    tolerance: float
    tried: tuple[Witness, ...] = ()
    by_horizon: dict[int, Witness] = field(default_factory=dict)
    thresholds: ThresholdGains = ()
    also: dict[str, Witness] = field(default_factory=dict)
    informed: InformedGain | None = None
    variants: NearCopyGain | None = None
    notes: tuple[str, ...] = ()
    samples: tuple[SampledDeviation, ...] = ()
    seconds: float = 0.0
    tried_at_most: float | None = None
    limits: tuple[CopyLimit, ...] = ()
    sampled_proof: bool = False
    interrupted: bool = False
    gain_at_most: Estimate | None = None
    not_computed: dict[str, str] = field(default_factory=dict)
    smallest: Witness | None = None
    more: str = ""
    knowledge: KnowledgeGain | None = None
    deduplication: Deduplication | None = None
    by_segment: dict[str, Witness] = field(default_factory=dict)

    def __repr__(self) -> str:
        head = f"{self.verdict!r}, mechanism={self.mechanism.name!r}, tolerance={self.tolerance:g}"
        return f"Audit({head},\n      worst={self.worst!r})"

    def check_every_copy_played(self) -> None:
        """Refuse to write a record if a de-duplicator may have removed copies: records hold lists that are played."""
        if self.deduplication is not None:
            raise CertificateError("expected an audit without a de-duplicator, got one with caught=; leave it out")

    @property
    def state(self) -> AuditState:
        """What the scope comes to."""
        if self.verdict == "exploitable":
            return AuditState.ATTACK
        if self.verdict == "clone-proof":
            return AuditState.SAMPLED_PROOF if self.sampled_proof else AuditState.PROOF
        bounded = self.tried_at_most is not None and self.tried_at_most <= self.tolerance
        return AuditState.NONE_TRIED_PAYS if bounded else AuditState.OPEN

    def passes(self, allow_undecided: bool = False) -> bool:
        """Return whether it is "clone-proof" or, where that is allowed, "undecided" and none of those tried pays."""
        return self.verdict == "clone-proof" or (allow_undecided and self.state == AuditState.NONE_TRIED_PAYS)

    @property
    def about_tried(self) -> str:
        """A sentence about the deviations tried, if none is known to pay and they are bounded; else empty.

        Such as "none of the 66 deviations tried gains more than 0.5 % of the honest payoff, at 99 %".
        """
        bound = self.tried_at_most
        if self.verdict != "undecided" or bound is None or not math.isfinite(bound):
            return ""
        bound = max(bound, self.tolerance) if self.state == AuditState.NONE_TRIED_PAYS else bound
        what = f"gains more than {100 * bound:.3g} % of the honest payoff" if bound else "gains anything"
        kinds = {witness.gain.kind for witness in self.tried}
        sure = ", at 99 % in the limit of many runs" if "asymptotic" in kinds else ", at 99 %"
        sampled = not kinds.isdisjoint(("confidence", "asymptotic"))
        return f"none of the {len(self.tried)} deviations tried {what}{sure if sampled else ''}"

    @property
    def _scope(self) -> str:
        return str(self.scope)

    @property
    def _tried(self) -> tuple[Witness, ...]:
        """Deviations at the horizon of `worst`."""
        return tuple(witness for witness in self.tried if witness.horizon == self.worst.horizon)

    @property
    def _by_horizon(self) -> tuple[Witness, ...]:
        return tuple(self.by_horizon.values())

    @property
    def _thresholds(self) -> tuple[ScoreGain, ...]:
        return tuple(ScoreGain(_score(score), gain) for score, gain in self.thresholds)

    def to_columns(self) -> dict[str, list[Any]]:
        """One row for each deviation tried; `error` and `kind` are those of the gain."""
        gains = ("gain=gain.value", "error=gain.error", "kind=gain.kind", "relative_gain")
        payoffs = ("honest=honest.value", "copied=copied.value")
        return columns_of(self.tried, "agent", "copies", "horizon", *payoffs, *gains)


def _score(threshold: float) -> float | str:
    """Return a threshold as data; infinities become words, since JSON has none."""
    if math.isfinite(threshold):
        return threshold
    return "nobody else has a score" if threshold < 0 else "out of reach"


def pays(witness: Finding, tolerance: float) -> bool:
    """Return whether the gain is surely above the tolerance."""
    error = _gain_error(witness)
    return error is not None and witness.gain.value - error > tolerance * _honest_bound(witness, +1)


def does_not_pay(witness: Finding, tolerance: float) -> bool:
    """Return whether the gain is surely at most the tolerance."""
    error = _gain_error(witness)
    return error is not None and witness.gain.value + error <= tolerance * _honest_bound(witness, -1)


def is_open(witness: Witness, tolerance: float) -> bool:
    """Return whether neither is sure."""
    return not pays(witness, tolerance) and not does_not_pay(witness, tolerance)


def relative_gain_at_most(witness: Witness) -> float | None:
    """Return a bound of the relative gain (0 if it gains nothing); None if its error is heuristic."""
    error = _gain_error(witness)
    if error is None:
        return None
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
    """Return the error with its margin; None if it is heuristic."""
    gain = witness.gain
    if gain.kind != "estimated":
        return gain.error
    return None if gain.heuristic else MARGIN * gain.error


def _honest_bound(witness: Finding, side: int) -> float:
    """Return the upper (+1) or lower (-1) end of the honest payoff, with its margin."""
    margin = MARGIN if witness.honest.kind == "estimated" else 1.0
    return max(0.0, witness.honest.value + side * margin * witness.honest.error)
