"""Whether a policy pays for copies in the market fitted to a log.

A mechanism with a closed form or a theorem is audited (`cp.audit`). Anything else is sampled, and the samples go to one
owner and to two deviations, every item 64 times and every item 8 times, until one of them surely pays: a search over
all owners and copies would leave too few for any of them. The bounds are asymptotic confidence
sequences (`cp.gain(bounds="asymptotic")`), at 99 % for both together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.verdict import Audit, Verdict
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.gain import gain
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError
from cloneproof.market import Market
from cloneproof.mechanisms import Mechanism

LADDER: Final = (64, 8)  # copies of every item
FIRST: Final = 0.75  # of the time, for the first
MOST_SEARCHED: Final = 6  # originals of an agent: all copies of more are too many to search
CONFIDENCE: Final = 0.99
RUNS: Final = 200
THEOREMS: Final = ("reservoir", "reservoir-contest", "holdout-h-etc", "holdout-kl-ucb")


@dataclass(frozen=True)
class LogVerdict:
    """The verdict on a policy in the fitted market, and the deviation that it rests on."""

    verdict: Verdict
    scope: str
    agent: str
    copies: tuple[int, ...]
    honest: Estimate
    copied: Estimate
    gain: Estimate
    audit: Audit | None = None

    @property
    def relative_gain(self) -> float:
        """The gain as part of the honest payoff."""
        return self.gain.value / self.honest.value if self.honest.value > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The same as data for JSON."""
        return {
            "verdict": self.verdict,
            "scope": self.scope,
            "agent": self.agent,
            "copies": list(self.copies),
            "honest": self.honest.to_dict(),
            "copied": self.copied.to_dict(),
            "gain": self.gain.to_dict(),
            "audit": None if self.audit is None else self.audit.to_dict(),
        }


def judge_policy(
    market: Market, made: Mechanism | BlackBox, agent: str, tolerance: float, seconds: float, seed: int = 0
) -> LogVerdict:
    """The verdict; `agent` is whose deviations are sampled where they are."""
    few = max(each.count for each in market.agents) <= MOST_SEARCHED
    if isinstance(made, Mechanism) and (made.name in THEOREMS or (few and _has_closed_form(market, made))):
        found = audit(market, made, tolerance=tolerance, max_copies=2, seed=seed, budget_seconds=seconds)
        worst = found.worst
        return LogVerdict(
            found.verdict, found.scope, worst.agent, worst.copies, worst.honest, worst.copied, worst.gain, found
        )
    return _sampled(market, made, agent, tolerance, seconds, seed)


def _has_closed_form(market: Market, made: Mechanism) -> bool:
    try:
        evaluate(market, made, engine="closed-form")
    except EngineError:
        return False
    return True


def _sampled(
    market: Market, made: Mechanism | BlackBox, agent: str, tolerance: float, seconds: float, seed: int
) -> LogVerdict:
    originals = next(each.count for each in market.agents if each.name == agent)
    confidence = 1 - (1 - CONFIDENCE) / len(LADDER)
    gain(market, made, agent, (2,) * originals, runs=2, seed=seed)  # compiles
    found = []
    for copies in LADDER:
        each = gain(
            market, made, agent, (copies,) * originals, confidence=confidence, seed=seed, bounds="asymptotic",
            budget_seconds=seconds * (FIRST if copies == LADDER[0] else 1 - FIRST), runs=RUNS, stop_when_decided=False,
        )  # fmt: skip
        found.append(each)
        if each.estimate.low > tolerance * each.honest.high:
            break
    best = max(found, key=lambda each: each.estimate.low)
    pays = best.estimate.low > tolerance * best.honest.high
    tried = " and ".join(f"{each.copies[agent][0]}" for each in found)
    scope = (
        f"copies of every item of {agent}, {tried} times, against honest others with the fitted priors, "
        f"{market.horizon:,} rounds, gains of up to {tolerance:g} of the honest payoff pass; by "
        f"{sum(each.runs for each in found):,} pairs of runs, at {CONFIDENCE:.0%} in the limit of "
        "many; other agents and copies were not tried"
    )
    verdict: Verdict = "exploitable" if pays else "undecided"
    return LogVerdict(verdict, scope, agent, best.copies[agent], best.honest, best.copied, best.estimate)
