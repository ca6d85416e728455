"""Audit of a policy in the market fitted to a log.

The audit (`cp.audit`) searches the copies of all owners. A mechanism with a closed form or a theorem is audited exactly
over the market's rounds. Anything else is sampled, over as many of the log's rounds as leave the search a few hundred
pairs of runs, with asymptotic confidence sequences at 99 % for everything tried together. A search ends with the first
deviation that surely pays; if time is left, another looks for twice the gain. The last one found is sampled again from
a new seed, so that its figures are independent of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cloneproof._lib.clock import now
from cloneproof._lib.data import Data
from cloneproof.audits.audit import audit
from cloneproof.audits.gain import gain
from cloneproof.audits.question import audit_case
from cloneproof.audits.result import Audit, Verdict
from cloneproof.audits.search_result import Witness
from cloneproof.errors import EngineError
from cloneproof.evaluation.evaluate import evaluate
from cloneproof.evaluation.search import Search
from cloneproof.market import Market
from cloneproof.market.market import Copies
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_for
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate

MOST_SEARCHED: Final = 6  # originals of an agent up to which all copies can be searched by closed form
CONFIDENCE: Final = 0.99  # of the verdict, and again of the figures
PAIRS: Final = 200  # pairs of runs that a search should afford; the horizon is chosen so that it does
TIMED: Final = 4  # pairs of runs that measure the time of one
TIMED_COPIES: Final = 16  # copies of one item in these pairs
SEARCHED: Final = 0.7  # share of the time for searching; the rest is for sampling the figures again
LEAST_SECONDS: Final = 1.0  # time left for which another search is begun
LEAST_AFRESH: Final = 0.2  # seconds that a search or the figures get at least
MOST_RELATIVE: Final = 1000.0  # relative gain beyond which the search for a larger one ends
RUNS: Final = 200  # pairs of runs in a batch of the figures
AFRESH: Final = 1000  # distance of the seed of the figures from those of the searches

AuditedPolicy = Mechanism | Callable[[Market], Mechanism]


@dataclass(frozen=True)
class PolicyAudit(Data):
    """Audit of a policy in the fitted market, the deviation with its figures (gain by segment too), and the scope.

    Without an audit it rests on what the copies in the log earned (`copy_worth.by_copies_of_log`).
    """

    keys_of_data = (
        "verdict", "scope", "horizon=worst.horizon", "agent=worst.agent", "copies=worst.copies",
        "honest=worst.honest", "copied=worst.copied", "gain=worst.gain", "by_segment?", "audit",
    )  # fmt: skip

    audit: Audit | None
    worst: Witness
    scope: str
    by_segment: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        return "exploitable" if self.audit is None else self.audit.verdict


def audit_policy(
    market: Market, policy: AuditedPolicy, longest: int, tolerance: float, seconds: float, seed: int = 0
) -> PolicyAudit:
    """Audit a policy over the market's rounds; if sampled, over up to `longest` rounds if time allows."""
    mechanism = mechanism_for(policy, market)
    if _is_exact(market, mechanism):
        audited = audit(market, mechanism, tolerance=tolerance, search=Search(copies=2, seed=seed, seconds=seconds))
        return PolicyAudit(audited, audited.worst, str(audited.scope), _gains(audited))
    clock = Deadline(seconds * SEARCHED)
    horizon = affordable_horizon(market, mechanism, longest, seconds * SEARCHED, seed)
    searches = _searches(market.with_horizon(horizon), policy, tolerance, clock, seed)
    audited = searches[0]
    best, parts = audited.worst, _gains(audited)
    if audited.verdict == "exploitable":
        last = [search for search in searches if search.verdict == "exploitable"][-1]
        best, parts = last.worst, _gains(last)
        if seconds - clock.seconds > LEAST_AFRESH:
            best, parts = _sampled_again(best, parts, audited.mechanism, seconds - clock.seconds, seed)
    scope = str(audited.scope) if audited.verdict == "clone-proof" else _scope(searches)
    return PolicyAudit(audited, best, scope, parts)


def _gains(audited: Audit) -> Mapping[str, Estimate]:
    return {name: change.gain for name, change in audited.by_segment.items()}


def _searches(market: Market, policy: AuditedPolicy, tolerance: float, clock: Deadline, seed: int) -> list[Audit]:
    """Audit; while something pays and there is time, audit again for twice the gain."""
    searches: list[Audit] = []
    wanted = tolerance
    while not searches or ((clock.left or 0.0) > LEAST_SECONDS and wanted < MOST_RELATIVE):
        budget = max(clock.left or 0.0, LEAST_AFRESH)
        search = Search(copies=2, seed=seed + len(searches), bounds="asymptotic", seconds=budget)
        searches.append(audit(market, policy, tolerance=wanted, search=search))
        if searches[-1].verdict != "exploitable":
            break
        wanted = max(2 * searches[-1].worst.relative_gain, tolerance)
    return searches


def affordable_horizon(
    market: Market,
    mechanism: Mechanism,
    longest: int,
    seconds: float,
    seed: int = 0,
    agent: str = "",
    copies: Copies | None = None,
    pairs: int = PAIRS,
) -> int:
    """Return a round number of rounds, from the market's to `longest`, for which time allows so many pairs of runs.

    A pair is timed over the market's rounds, with these copies, or else with many of the first agent's first item.
    """
    if longest <= market.horizon:
        return market.horizon
    first = market.agents[0]
    copies = {first.name: (TIMED_COPIES,) + (1,) * (first.count - 1)} if copies is None else copies
    start = now()
    gain(market, mechanism, agent or first.name, copies, stratify=False, search=Search(runs=TIMED, seed=seed))
    pair = max(now() - start, 1e-6) / TIMED
    affordable = min(longest, max(1, int(market.horizon * seconds / (pairs * pair))))
    return max(affordable, market.horizon)


def _is_exact(market: Market, mechanism: Mechanism) -> bool:
    """Return whether an audit is decided by the theorem of a scan over slots, or by a closed form for all copies."""
    proofs = [audit_case(market, mechanism, agent.name).proof for agent in market.agents]
    if all(proof.on_slots and proof.most is None for proof in proofs):
        return True
    if max(agent.count for agent in market.agents) > MOST_SEARCHED:
        return False
    try:
        evaluate(market, mechanism, engine="law")
    except EngineError:
        return False
    return True


def _sampled_again(
    worst: Witness, parts: Mapping[str, Estimate], policy: Mechanism, seconds: float, seed: int
) -> tuple[Witness, Mapping[str, Estimate]]:
    """Sample the deviation with fresh pairs; keep it as found if these are less precise."""
    search = Search(seconds=seconds, runs=RUNS, seed=seed + AFRESH, bounds="asymptotic")
    fresh = gain(
        worst.market, policy, worst.agent, worst.copies, confidence=CONFIDENCE, search=search, stop_when_decided=False
    )
    if fresh.estimate.error >= worst.gain.error:
        return worst, parts
    return replace(worst, honest=fresh.honest, copied=fresh.copied, gain=fresh.estimate), fresh.by_segment


def _scope(searches: Sequence[Audit]) -> str:
    """Describe the scope in a sentence; the audit's own would name every owner."""
    first = searches[0]
    tried = {(witness.agent, witness.copies) for search in searches for witness in search.tried}
    what = (
        f"replications by each of {len(first.market.agents)} owners against honest others, each item's rate drawn from "
        f"the law that is fitted to the log, {first.worst.horizon:,} rounds, gains of up to {first.tolerance:g} of the "
        "honest payoff pass; searched: one item or every item of an owner 2, 4, 8, .. times, some items twice, and "
        "further where the gain rose; sampled: "
        f"{_number(len(tried), 'vector')} of copies of {_number(len({agent for agent, _ in tried}), 'owner')}"
    )
    if first.verdict == "exploitable":
        return (
            f"{what}; that the policy pays is sure at {CONFIDENCE:.0%} in the limit of many runs, by the first vector "
            "that showed it; the search then went on for larger gains while there was time, and the figures of the "
            f"last one are at {CONFIDENCE:.0%} of their own; other owners and copies may gain more"
        )
    about = first.about_tried or "time was out before all of those were bounded"
    return f"{what}; {about}; what was not tried is not ruled out"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
