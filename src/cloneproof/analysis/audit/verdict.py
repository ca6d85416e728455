"""What an audit says: a verdict, its witness, and its scope."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from cloneproof._display import Displayed
from cloneproof._tables import Tabular
from cloneproof.analysis.audit.copy_limit import CopyLimit
from cloneproof.analysis.audit.informed_gain import InformedGain
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

Verdict = Literal["exploitable", "clone-proof", "undecided"]
AuditState = Literal["attack", "proof", "none pays at 99 %", "none tried pays", "open"]


@dataclass(frozen=True, repr=False)
class Witness(Displayed):
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
    def earned_at_most(self) -> float:
        """What the agent can earn, whatever it registers: the share of all rounds at its best mean."""
        supports = [agent.support for agent in self.market.agents if agent.name == self.agent]
        best = 1.0 if None in supports else max((max(support) for support in supports if support), default=1.0)
        return self.market.share * self.market.horizon * best

    @property
    def gain_at_most(self) -> float:
        """The upper end of the gain, and no more than the agent can earn."""
        return min(self.gain.high, max(0.0, self.earned_at_most - max(0.0, self.honest.low)))

    @property
    def relative_gain(self) -> float:
        """The gain as a part of the honest payoff (infinite where that is nothing)."""
        if self.honest.value > 0:
            return self.gain.value / self.honest.value
        return float("inf") if self.gain.value > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The deviation as data for JSON; a relative gain over nothing is None.

        Returns
        -------
        dict
            agent, copies, horizon, honest, copied, gain, relative_gain and all_copies.
        """
        relative = self.relative_gain
        return {
            "agent": self.agent,
            "copies": list(self.copies),
            "horizon": self.horizon,
            "honest": self.honest.to_dict(),
            "copied": self.copied.to_dict(),
            "gain": self.gain.to_dict(),
            "relative_gain": relative if math.isfinite(relative) else None,
            "all_copies": {name: list(numbers) for name, numbers in self.all_copies.items()},
        }


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
class Audit(Displayed, Tabular):
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
    scope : str
        What was tried, what was proven, and against whom.
    tolerance : float
        The gain, relative to the honest payoff, that counts as none.
    tried : tuple of Witness
        Every deviation that was evaluated, for the curves of payoff against copies.
    by_horizon : dict of int to Witness
        The best deviation at each horizon asked for.
    thresholds : tuple of (float, Estimate)
        (Score that must be beaten, largest gain over copies at it): an upper bound over all opponents, where dominance
        was asked for and the mechanism has two phases.
    apart : dict of str to Witness
        Further deviations, reported apart: withholding, splitting.
    informed : InformedGain or None
        What an agent would gain that knows its means before it registers, where that was asked for; apart too.
    notes : tuple of str
        What a reader must know.
    samples : tuple of SampledDeviation
        What was sampled, for a replay record.
    tried_at_most : float, optional
        A relative gain that none of the deviations tried exceeds: surely, or all of them together at 99 % where they
        were sampled. None where no such bound is known.
    seconds : float
        How long it took.
    limits : tuple of CopyLimit
        What ever more copies of an original tend to gain, where the audit sampled and the mechanism has such a limit.
    sampled_proof : bool
        Whether "clone-proof" rests on sampled worlds that stand for all deviations, and so holds at 99 %.
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
    informed: InformedGain | None = None
    notes: tuple[str, ...] = ()
    samples: tuple[SampledDeviation, ...] = ()
    seconds: float = 0.0
    tried_at_most: float | None = None
    limits: tuple[CopyLimit, ...] = ()
    sampled_proof: bool = False

    def __repr__(self) -> str:
        head = f"{self.verdict!r}, mechanism={self.mechanism.name!r}, tolerance={self.tolerance:g}"
        return f"Audit({head},\n      worst={self.worst!r})"

    @property
    def state(self) -> AuditState:
        """What the scope comes to.

        "attack": a deviation surely pays. "proof": no deviation does, by an argument that covers all of them. "none
        pays at 99 %": the same, by samples of worlds that stand for all of them. "none tried pays": none of those tried
        gains more than the tolerance, and nothing covers the others. "open": some of those tried may pay, and time or
        runs were out.
        """
        if self.verdict != "undecided":
            if self.verdict == "exploitable":
                return "attack"
            return "none pays at 99 %" if self.sampled_proof else "proof"
        bounded = self.tried_at_most is not None and self.tried_at_most <= self.tolerance
        return "none tried pays" if bounded else "open"

    @property
    def about_tried(self) -> str:
        """A sentence about the deviations tried, where none is known to pay and they are bounded; else nothing.

        Returns
        -------
        str
            Such as "none of the 66 deviations tried gains more than 0.5 % of the honest payoff, at 99 %".
        """
        bound = self.tried_at_most
        if self.verdict != "undecided" or bound is None or not math.isfinite(bound):
            return ""
        bound = max(bound, self.tolerance) if self.state == "none tried pays" else bound
        what = f"gains more than {100 * bound:.3g} % of the honest payoff" if bound else "gains anything"
        kinds = {witness.gain.kind for witness in self.tried}
        sure = ", at 99 % in the limit of many runs" if "asymptotic" in kinds else ", at 99 %"
        sampled = not kinds.isdisjoint(("confidence", "asymptotic"))
        return f"none of the {len(self.tried)} deviations tried {what}{sure if sampled else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The audit as data for JSON; over several horizons, `tried` has the deviations at the horizon of `worst`.

        Returns
        -------
        dict
            verdict, state, tried_at_most, about_tried, scope, tolerance, mechanism, worst, tried, by_horizon,
            thresholds, apart, limits, informed, notes and seconds.
        """
        bound = self.tried_at_most
        return {
            "verdict": self.verdict,
            "state": self.state,
            "tried_at_most": bound if bound is not None and math.isfinite(bound) else None,
            "about_tried": self.about_tried,
            "scope": self.scope,
            "tolerance": self.tolerance,
            "mechanism": self.mechanism.to_dict(),
            "worst": self.worst.to_dict(),
            "tried": [witness.to_dict() for witness in self.tried if witness.horizon == self.worst.horizon],
            "by_horizon": [witness.to_dict() for witness in self.by_horizon.values()],
            "thresholds": [{"score": _score(score), "gain": gain.to_dict()} for score, gain in self.thresholds],
            "apart": {name: witness.to_dict() for name, witness in self.apart.items()},
            "limits": [limit.to_dict() for limit in self.limits],
            "informed": None if self.informed is None else self.informed.to_dict(),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def to_columns(self) -> dict[str, list[Any]]:
        """One row for each deviation tried.

        Returns
        -------
        dict of str to list
            agent, copies, horizon, honest, copied, gain, error (of the gain), kind and relative_gain.
        """
        return {
            "agent": [witness.agent for witness in self.tried],
            "copies": [witness.copies for witness in self.tried],
            "horizon": [witness.horizon for witness in self.tried],
            "honest": [witness.honest.value for witness in self.tried],
            "copied": [witness.copied.value for witness in self.tried],
            "gain": [witness.gain.value for witness in self.tried],
            "error": [witness.gain.error for witness in self.tried],
            "kind": [witness.gain.kind for witness in self.tried],
            "relative_gain": [witness.relative_gain for witness in self.tried],
        }


def _score(threshold: float) -> float | str:
    """A threshold; JSON has no infinities: nobody else has a score, or no score suffices."""
    if math.isfinite(threshold):
        return threshold
    return "nobody else has a score" if threshold < 0 else "out of reach"
