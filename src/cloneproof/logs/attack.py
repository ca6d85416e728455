"""Whether a policy pays for copies in the market fitted to a log.

The audit (`cp.audit`) searches the copies of all owners. A mechanism with a closed form or a theorem is audited exactly
over the market's rounds; anything else is sampled, over as many of the log's rounds as leave the search a few hundred
pairs of runs, with asymptotic confidence sequences at 99 % for all that was tried together. A search ends with the
first deviation that surely pays; while time is left, another one looks for a deviation that gains twice as much. The
figures of the last one found are sampled afresh, so that what chose it is no part of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.deadline import Deadline
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
PAIRS: Final = 200  # of runs, that the time of a search affords at least
TIMED: Final = 4  # pairs by which the time of one is measured
TIMED_COPIES: Final = 16  # of an item in them
SEARCHED: Final = 0.7  # of the time, for the search
LEAST_SECONDS: Final = 1.0  # for which it goes on
MOST_RELATIVE: Final = 1000.0  # gains beyond which nobody looks for more
AFRESH: Final = 1000  # between the seeds of the search and that of the figures
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
    made = policy if isinstance(policy, Mechanism | BlackBox) else policy(market)
    few = max(each.count for each in market.agents) <= MOST_SEARCHED
    if isinstance(made, Mechanism) and (made.name in THEOREMS or (few and _has_closed_form(market, made))):
        found = audit(market, made, tolerance=tolerance, max_copies=2, seed=seed, budget_seconds=seconds)
        return _log_verdict(found, found.worst, found.scope)
    clock = Deadline(seconds * SEARCHED)
    horizon = affordable_horizon(market, made, longest, seconds * SEARCHED, seed)
    searches = _searches(market.with_horizon(horizon), policy, tolerance, clock, seed)
    found, best = searches[0], searches[0].worst
    if found.verdict == "exploitable":
        best = [each.worst for each in searches if each.verdict == "exploitable"][-1]
        played = made if isinstance(made, BlackBox) else found.mechanism
        best = _sampled_afresh(best, played, max(seconds - clock.seconds, 0.5), seed)
    return _log_verdict(found, best, _scope(searches))


def _searches(market: Market, policy: JudgedPolicy, tolerance: float, clock: Deadline, seed: int) -> list[Audit]:
    """An audit; where something pays, audits for twice the gain of the one before, while there is time."""
    found: list[Audit] = []
    wanted = tolerance
    while not found or ((clock.left or 0.0) > LEAST_SECONDS and wanted < MOST_RELATIVE):
        budget = max(clock.left or 0.0, LEAST_SECONDS)
        found.append(
            audit(
                market, policy, tolerance=wanted, max_copies=2, seed=seed + len(found), bounds="asymptotic",
                budget_seconds=budget,
            )
        )  # fmt: skip
        if found[-1].verdict != "exploitable":
            break
        wanted = max(2 * found[-1].worst.relative_gain, tolerance)
    return found


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
    power = int(10 ** (len(str(int(max(affordable, 1)))) - 1))
    chosen = next(number * power for number in ROUND_NUMBERS if number * power <= max(affordable, 1))
    return max(chosen, market.horizon)


def _has_closed_form(market: Market, made: Mechanism) -> bool:
    try:
        evaluate(market, made, engine="closed-form")
    except EngineError:
        return False
    return True


def _sampled_afresh(worst: Witness, made: Mechanism | BlackBox, seconds: float, seed: int) -> Witness:
    """The deviation with fresh pairs; as it was found, where these say less."""
    fresh = gain(
        worst.market, made, worst.agent, worst.copies, confidence=CONFIDENCE, seed=seed + AFRESH, bounds="asymptotic",
        budget_seconds=seconds, runs=RUNS, stop_when_decided=False,
    )  # fmt: skip
    if fresh.estimate.error >= worst.gain.error:
        return worst
    return replace(worst, honest=fresh.honest, copied=fresh.copied, gain=fresh.estimate)


def _scope(searches: Sequence[Audit]) -> str:
    """What was sampled of whom, in a sentence: the audit's own names every owner."""
    found = searches[0]
    tried = {(each.agent, each.copies) for search in searches for each in search.tried}
    what = (
        f"replications by each of {len(found.market.agents)} owners against honest others with the fitted priors, "
        f"{found.worst.horizon:,} rounds, gains of up to {found.tolerance:g} of the honest payoff pass; searched: one "
        "item or every item of an owner 2, 4, 8, .. times, some items twice, and further where the gain rose; sampled: "
        f"{_number(len(tried), 'vector')} of copies of {_number(len({agent for agent, _ in tried}), 'owner')}"
    )
    if found.verdict == "exploitable":
        return (
            f"{what}; that the policy pays is sure at {CONFIDENCE:.0%} in the limit of many runs, by the first vector "
            "that showed it; the search then went on for larger gains while there was time, and the figures of the "
            f"last one are at {CONFIDENCE:.0%} of their own; other owners and copies may gain more"
        )
    about = found.about_tried or "time was out before all of those were bounded"
    return f"{what}; {about}; what was not tried is not ruled out"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _log_verdict(found: Audit, worst: Witness, scope: str) -> LogVerdict:
    return LogVerdict(
        found.verdict, scope, worst.horizon, worst.agent, worst.copies, worst.honest, worst.copied, worst.gain, found
    )
