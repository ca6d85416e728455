"""Whether a policy pays for copies in the market fitted to a log.

The audit (`cp.audit`) searches the copies of all owners. A mechanism with a closed form or a theorem is audited exactly
over the market's rounds; anything else is sampled, over as many of the log's rounds as leave the search a few hundred
pairs of runs, with asymptotic confidence sequences at 99 % for all that was tried together. The search ends with the
first deviation that surely pays, and what is left of the time goes to its gain, sampled afresh at 99 %.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.verdict import Audit, Verdict, Witness
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.gain import gain
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError
from cloneproof.market import Market
from cloneproof.mechanisms import Mechanism

MOST_SEARCHED: Final = 6  # originals of an agent: all copies of more are too many to search
CONFIDENCE: Final = 0.99
RUNS: Final = 200
PAIRS: Final = 400  # of runs, that the time of a search affords at least
TIMED: Final = 4  # pairs by which the time of one is measured
TIMED_COPIES: Final = 16  # of an item in them
SEARCHED: Final = 0.7  # of the time, for the search
ROUND_NUMBERS: Final = (5, 2, 1)  # times powers of ten: horizons that are chosen by time
THEOREMS: Final = ("reservoir", "reservoir-contest", "holdout-h-etc", "holdout-kl-ucb")

JudgedPolicy = Mechanism | BlackBox | Callable[[Market], Mechanism]


@dataclass(frozen=True)
class LogVerdict:
    """The verdict on a policy in the fitted market over `horizon` rounds, and the deviation that it rests on."""

    verdict: Verdict
    scope: str
    horizon: int
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
            "horizon": self.horizon,
            "agent": self.agent,
            "copies": list(self.copies),
            "honest": self.honest.to_dict(),
            "copied": self.copied.to_dict(),
            "gain": self.gain.to_dict(),
            "audit": None if self.audit is None else self.audit.to_dict(),
        }


def judge_policy(
    market: Market, policy: JudgedPolicy, longest: int, tolerance: float, seconds: float, seed: int = 0
) -> LogVerdict:
    """The verdict, over the market's rounds; where it is sampled, over up to `longest` if the time affords that."""
    made = policy(market) if callable(policy) else policy
    few = max(each.count for each in market.agents) <= MOST_SEARCHED
    if isinstance(made, Mechanism) and (made.name in THEOREMS or (few and _has_closed_form(market, made))):
        found = audit(market, made, tolerance=tolerance, max_copies=2, seed=seed, budget_seconds=seconds)
        return _log_verdict(found, found.worst, found.scope)
    start = time.perf_counter()
    horizon = affordable_horizon(market, made, longest, seconds * SEARCHED, seed)
    market = market if horizon == market.horizon else market.with_horizon(horizon)
    found = audit(
        market, policy, tolerance=tolerance, max_copies=2, seed=seed, bounds="asymptotic",
        budget_seconds=max(seconds * SEARCHED - (time.perf_counter() - start), 1.0),
    )  # fmt: skip
    worst = found.worst
    if found.verdict == "exploitable":
        left = max(seconds - (time.perf_counter() - start), 0.5)
        worst = _sharpened(worst, found.mechanism if isinstance(made, Mechanism) else made, tolerance, left, seed)
    return _log_verdict(found, worst, _scope(found, worst))


def affordable_horizon(market: Market, made: Mechanism | BlackBox, longest: int, seconds: float, seed: int = 0) -> int:
    """Rounds over which the time affords some hundred pairs, between the market's and `longest`; a round number."""
    if longest <= market.horizon:
        return market.horizon
    agent = market.agents[0]
    copies = (TIMED_COPIES,) + (1,) * (agent.count - 1)
    gain(market.with_horizon(min(64, market.horizon)), made, agent.name, copies, runs=1, seed=seed)  # compiles
    start = time.perf_counter()
    gain(market, made, agent.name, copies, runs=TIMED, seed=seed)
    pair = max(time.perf_counter() - start, 1e-6) / TIMED
    affordable = min(float(longest), market.horizon * seconds / (PAIRS * pair))
    if affordable == longest:
        return longest
    power = 10 ** (len(str(int(max(affordable, 1)))) - 1)
    chosen = next(number * power for number in ROUND_NUMBERS if number * power <= max(affordable, 1))
    return max(chosen, market.horizon)


def _has_closed_form(market: Market, made: Mechanism) -> bool:
    try:
        evaluate(market, made, engine="closed-form")
    except EngineError:
        return False
    return True


def _sharpened(worst: Witness, made: Mechanism | BlackBox, tolerance: float, seconds: float, seed: int) -> Witness:
    """The deviation with fresh pairs, where these show that it pays too; else as it was found."""
    fresh = gain(
        worst.market, made, worst.agent, worst.copies, confidence=CONFIDENCE, seed=seed + 1, bounds="asymptotic",
        budget_seconds=seconds, runs=RUNS, stop_when_decided=False,
    )  # fmt: skip
    if fresh.estimate.low <= tolerance * fresh.honest.high or fresh.estimate.error >= worst.gain.error:
        return worst
    return replace(worst, honest=fresh.honest, copied=fresh.copied, gain=fresh.estimate)


def _scope(found: Audit, worst: Witness) -> str:
    """What was sampled of whom, in a sentence: the audit's own names every owner."""
    owners = len({each.agent for each in found.tried})
    what = (
        f"replications by each of {len(found.market.agents)} owners against honest others with the fitted priors, "
        f"{worst.horizon:,} rounds, gains of up to {found.tolerance:g} of the honest payoff pass; searched: one "
        "item or every item of an owner 2, 4, 8, .. times, some items twice, and further where the gain rose; sampled: "
        f"{len(found.tried)} of these, of {owners} owners, at {CONFIDENCE:.0%} together in the limit of many runs"
    )
    if found.verdict == "exploitable":
        return (
            f"{what}; the search ended with the first that surely pays, whose figures are at {CONFIDENCE:.0%} of their "
            "own; other owners and copies may gain more"
        )
    about = found.about_tried or "time was out before all of those tried were bounded"
    return f"{what}; {about}; what was not tried is not ruled out"


def _log_verdict(found: Audit, worst: Witness, scope: str) -> LogVerdict:
    return LogVerdict(
        found.verdict, scope, worst.horizon, worst.agent, worst.copies, worst.honest, worst.copied, worst.gain, found
    )
