"""The result of an audit: a verdict, its witness, its scope, and what is compared with honesty beside copies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from cloneproof._lib.data import columns_of
from cloneproof._lib.sections import report
from cloneproof._lib.tables import Tabular
from cloneproof.audits.gain import Finding
from cloneproof.audits.search_result import SampledDeviation, Witness
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import Estimate

Verdict = Literal["exploitable", "clone-proof", "undecided"]


class AuditState(StrEnum):
    """What the scope of an audit comes to."""

    ATTACK = "attack"  # a deviation surely pays
    PROOF = "proof"  # none does, by an argument that covers all of them
    NONE_TRIED_PAYS = "none tried pays"  # beyond the tolerance, and nothing covers the others
    OPEN = "open"  # some of those tried may pay, and time or runs were out


@dataclass(frozen=True)
class KnowledgeGain(Finding):
    """The ceiling of knowledge: what an agent gains that lists its best original alone.

    Attributes
    ----------
    agent : str
        Whose list.
    horizon : int
        The rounds of the market.
    honest, copied, gain, by_segment
        Its honest payoff, that of its best original alone, and the difference.
    proven : bool
        Whether no list gains more, by a theorem (docs/textbook/knowledge.md); otherwise it is an estimate.
    beaten_by : tuple of int or None
        Copies that were found to gain more, where it is not proven.
    """

    keys_of_data = ("agent", "horizon", "honest", "gain", "relative_gain", "proven", "beaten_by?")

    agent: str
    horizon: int
    proven: bool
    beaten_by: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Naming(Finding):
    """What it is worth to register one's best original alone, and the platform's regret if one or all agents do.

    They name the right one with the chance `accuracy`; otherwise another one is named, each as likely.
    """

    keys_of_data = ("accuracy", "honest", "gain", "relative_gain", "regret_if_one", "regret_if_all")

    accuracy: float
    regret_if_one: Estimate
    regret_if_all: Estimate


@dataclass(frozen=True, repr=False)
class InformedGain(Finding):
    """What an agent earns that knows its means and registers its best original alone, against honest others.

    Attributes
    ----------
    agent : str
        Who is informed.
    horizon : int
        The rounds of the market.
    honest, copied, gain, by_segment
        Its honest payoff, the average of its payoff with its best original alone, and the difference.
    complete : bool
        Whether no other registration is better, whatever its means are; else others may gain more.
    regret : Estimate
        The platform's regret if nobody names an original.
    naming : tuple of Naming
        What the agent gains and the platform loses if agents name their best original, right with several chances.
    """

    keys_of_data = ("agent", "horizon", "honest", "informed=copied", "gain", "relative_gain", "complete", "regret",
                    "naming")  # fmt: skip

    agent: str
    horizon: int
    complete: bool
    regret: Estimate
    naming: tuple[Naming, ...]

    def __repr__(self) -> str:
        best = "best response" if self.complete else "best original alone"
        return (
            f"InformedGain(agent={self.agent!r}, horizon={self.horizon}, gain={self.gain.value:.6g} ± "
            f"{self.gain.error:.2g} ({self.relative_gain:+.2%}, {self.gain.kind}), {best})"
        )


@dataclass(frozen=True)
class TriedVectors:
    """Number of vectors of copies tried for some agents each, and the most copies of an original among them."""

    agents: tuple[str, ...]
    number: int
    most: int


@dataclass(frozen=True)
class Reason:
    """An argument for some agents, and the gain it leaves open."""

    agents: tuple[str, ...]
    words: str
    settles: bool
    most: float = 0.0


@dataclass(frozen=True)
class DelayScope:
    """What late rewards change: whether they are declared, the most that copies gain through them, and why."""

    declared: bool
    gain: float | None
    reason: str


@dataclass(frozen=True)
class AuditScope:
    """What an audit tried, what it proved, and against whom; `str(scope)` says it in English (`report.words`).

    `against` is "market" (honest others), "any" (all opponents) or "scan" (all, by the scan theorem).
    `copies` is the cap of the grid (0: none); `attack` is the gain of the witness of an exploitable mechanism.
    `by_shares` says whether pay depends on a list only through the shares of its draws: no list with copies then earns
    more than the best weights on distinct items, whatever anybody knows.
    """

    against: Literal["market", "any", "scan"]
    agents: tuple[str, ...]
    horizon: int
    tolerance: float
    at_random: bool = False
    about_tried: str = ""
    tried: tuple[TriedVectors, ...] = ()
    copies: int = 0
    engines: tuple[str, ...] = ()
    added: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    left_out: tuple[tuple[str, int], ...] = ()
    attack: Estimate | None = None
    reasons: tuple[Reason, ...] = ()
    delays: DelayScope | None = None
    by_shares: bool = False
    segments: int = 0

    def __str__(self) -> str:
        return str(report("words").scope_words(self))


@dataclass(frozen=True, repr=False)
class Audit(Tabular):
    """The answer to "can it be gamed?", with its scope: the result of `cp.audit`.

    As a table (`to_frame`, `to_markdown`, `to_latex`) it is the deviations tried.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism that was audited.
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
    also : dict of str to Witness
        The best deviation of each further kind that was asked for (`also=`): withholding, splitting.
    informed : InformedGain or None
        What an agent would gain if it knew its means before it registers, if asked for.
    not_computed : dict of str to str
        What `also=` asked for and got no number, and why.
    notes : tuple of str
        Remarks for the reader.
    samples : tuple of SampledDeviation
        What was sampled.
    tried_at_most : float, optional
        A relative gain that none of the deviations tried exceeds: surely, or together at 99 % if sampled. None if
        no such bound is known.
    seconds : float
        How long it took.
    interrupted : bool
        Whether Ctrl-C ended it early.
    gain_at_most : Estimate or None
        A ceiling on the gain of copies and withholding, in rewards (its upper end): proven, or without a guarantee if
        it is heuristic. None if no ceiling is known.
    more : str
        What more work would settle, if it is undecided after sampling.
    knowledge : KnowledgeGain or None
        Under mechanisms of two levels, what naming its best original alone gains an agent: proven to be the most that
        any list gains, or an estimate of it.
    by_segment : dict of str to Witness
        `worst` in each segment, if the market has segments and its numbers were computed. They add up to those of
        `worst`, and each interval holds by itself.
    asked : tuple, optional
        The question and the search that it answers, for `cp.smallest_attack`.
    """

    keys_of_data = (
        "verdict", "state", "tried_at_most", "about_tried", "scope=_scope", "tolerance", "mechanism", "worst",
        "tried", "also", "informed",
        "not_computed", "notes", "interrupted", "gain_at_most", "more?", "knowledge?",
        "by_segment?",
    )  # fmt: skip

    said_in = "audit"
    mechanism: Mechanism
    market: Market
    verdict: Verdict
    worst: Witness
    scope: AuditScope
    tolerance: float
    tried: tuple[Witness, ...] = ()
    also: dict[str, Witness] = field(default_factory=dict)
    informed: InformedGain | None = None
    notes: tuple[str, ...] = ()
    samples: tuple[SampledDeviation, ...] = ()
    seconds: float = 0.0
    tried_at_most: float | None = None
    interrupted: bool = False
    gain_at_most: Estimate | None = None
    not_computed: dict[str, str] = field(default_factory=dict)
    asked: Any = field(default=None, repr=False, compare=False)
    more: str = ""
    knowledge: KnowledgeGain | None = None
    by_segment: dict[str, Witness] = field(default_factory=dict)

    def __repr__(self) -> str:
        head = f"{self.verdict!r}, mechanism={self.mechanism.name!r}, tolerance={self.tolerance:g}"
        return f"Audit({head},\n      worst={self.worst!r})"

    @property
    def state(self) -> AuditState:
        """What the scope comes to."""
        if self.verdict == "exploitable":
            return AuditState.ATTACK
        if self.verdict == "clone-proof":
            return AuditState.PROOF
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
        kinds = {witness.gain.kind for witness in self.tried}
        sampled = kinds != {"exact"}
        least = "gains anything" if sampled else "gains more than 1e-12 of the payoff"
        what = f"gains more than {100 * bound:.3g} % of the honest payoff" if bound else least
        return f"none of the {len(self.tried)} deviations tried {what}{', at 99 %' if sampled else ''}"

    @property
    def _scope(self) -> str:
        return str(self.scope)

    def to_columns(self) -> dict[str, list[Any]]:
        """One row for each deviation tried; `error` and `kind` are those of the gain."""
        gains = ("gain=gain.value", "error=gain.error", "kind=gain.kind", "relative_gain")
        payoffs = ("honest=honest.value", "copied=copied.value")
        return columns_of(self.tried, "agent", "copies", "horizon", *payoffs, *gains)
