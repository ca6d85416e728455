"""Whether a policy pays for copies in the market fitted to a log, and what the copies in the log earned their owners.

The audit (`cp.audit`) searches the copies of all owners. A mechanism with a closed form or a theorem is audited exactly
over the market's rounds. Anything else is sampled, over as many of the log's rounds as leave the search a few hundred
pairs of runs, with asymptotic confidence sequences at 99 % for everything tried together. A search ends with the first
deviation that surely pays; if time is left, another looks for twice the gain. The last one found is sampled again from
a new seed, so that its figures are independent of the search.

What copies earned is compared with registering each item once. Each original's prior is its posterior after the log;
everybody registers what the log shows, and only the owner in question registers each original once instead, over the
same rounds. Exact if the closed form applies, else sampled in pairs with common random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from cloneproof._clock import now
from cloneproof._tables import fields_of, to_data
from cloneproof.analysis.audit.audit import audit
from cloneproof.analysis.audit.verdict import Audit, Verdict, Witness
from cloneproof.analysis.copying.priors import FittedPriors, condense
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.gain import gain
from cloneproof.analysis.search import Search
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError, EngineError
from cloneproof.logs.originals import LogOwner
from cloneproof.market import Agent, Market
from cloneproof.mechanisms import Mechanism

MOST_SEARCHED: Final = 6  # originals of an agent: all copies of more are too many to search
CONFIDENCE: Final = 0.99
RUNS: Final = 200
PAIRS: Final = 200  # of runs, that the time of a search affords at least
TIMED: Final = 4  # pairs by which the time of one is measured
TIMED_COPIES: Final = 16  # of an item in them
SEARCHED: Final = 0.7  # of the time, for the search
LEAST_SECONDS: Final = 1.0  # for which it goes on
LEAST_AFRESH: Final = 0.2
MOST_RELATIVE: Final = 1000.0  # gains beyond which nobody looks for more
AFRESH: Final = 1000  # between the seeds of the search and that of the figures
ROUND_NUMBERS: Final = (5, 2, 1)  # times powers of ten: horizons that are chosen by time

LEAST_RUNS: Final = 30  # by which the worth of copies is bounded

JudgedPolicy = Mechanism | BlackBox | Callable[[Market], Mechanism]


@dataclass(frozen=True)
class LogVerdict:
    """Audit of a policy in the fitted market, the deviation with its figures, and the scope."""

    audit: Audit
    worst: Witness
    scope: str

    @property
    def verdict(self) -> Verdict:
        return self.audit.verdict

    def to_dict(self) -> dict[str, Any]:
        worst = fields_of(self.worst, "horizon", "agent", "copies", "honest", "copied", "gain")
        return fields_of(self, "verdict", "scope") | worst | fields_of(self, "audit")


def judge_policy(
    market: Market, policy: JudgedPolicy, longest: int, tolerance: float, seconds: float, seed: int = 0
) -> LogVerdict:
    """Audit a policy over the market's rounds; if sampled, over up to `longest` rounds if time allows."""
    made = policy if isinstance(policy, Mechanism | BlackBox) else policy(market)
    few = max(each.count for each in market.agents) <= MOST_SEARCHED
    if isinstance(made, Mechanism) and (_has_theorem(made) or (few and _has_closed_form(market, made))):
        found = audit(market, made, tolerance=tolerance, search=Search(copies=2, seed=seed, seconds=seconds))
        return LogVerdict(found, found.worst, str(found.scope))
    clock = Deadline(seconds * SEARCHED)
    horizon = affordable_horizon(market, made, longest, seconds * SEARCHED, seed)
    searches = _searches(market.with_horizon(horizon), policy, tolerance, clock, seed)
    found, best = searches[0], searches[0].worst
    if found.verdict == "exploitable":
        best = [each.worst for each in searches if each.verdict == "exploitable"][-1]
        played = made if isinstance(made, BlackBox) else found.mechanism
        if seconds - clock.seconds > LEAST_AFRESH:
            best = _sampled_again(best, played, seconds - clock.seconds, seed)
    return LogVerdict(found, best, str(found.scope) if found.verdict == "clone-proof" else _scope(searches))


def _searches(market: Market, policy: JudgedPolicy, tolerance: float, clock: Deadline, seed: int) -> list[Audit]:
    """An audit; if something pays, further audits for twice the gain, while there is time."""
    found: list[Audit] = []
    wanted = tolerance
    while not found or ((clock.left or 0.0) > LEAST_SECONDS and wanted < MOST_RELATIVE):
        budget = max(clock.left or 0.0, LEAST_AFRESH)
        search = Search(copies=2, seed=seed + len(found), bounds="asymptotic", seconds=budget)
        found.append(audit(market, policy, tolerance=wanted, search=search))
        if found[-1].verdict != "exploitable":
            break
        wanted = max(2 * found[-1].worst.relative_gain, tolerance)
    return found


def affordable_horizon(market: Market, made: Mechanism | BlackBox, longest: int, seconds: float, seed: int = 0) -> int:
    """Number of rounds at which time allows some hundred pairs, between the market's and `longest`; rounded."""
    if longest <= market.horizon:
        return market.horizon
    agent = market.agents[0]
    copies = (TIMED_COPIES,) + (1,) * (agent.count - 1)
    start = now()
    gain(market, made, agent.name, copies, search=Search(runs=TIMED, seed=seed))
    pair = max(now() - start, 1e-6) / TIMED
    affordable = min(float(longest), market.horizon * seconds / (PAIRS * pair))
    if affordable == longest:
        return longest
    power = int(10 ** (len(str(int(max(affordable, 1)))) - 1))
    chosen = next(number * power for number in ROUND_NUMBERS if number * power <= max(affordable, 1))
    return max(chosen, market.horizon)


def _has_theorem(made: Mechanism) -> bool:
    """Whether the audit can decide by the theorem of a scan over slots or of a hold-out."""
    scan = made.arm.draws > 0 and made.arm.commits
    return scan or made.scoring.fresh or made.clearing.planned_epochs


def _has_closed_form(market: Market, made: Mechanism) -> bool:
    try:
        evaluate(market, made, engine="closed-form")
    except EngineError:
        return False
    return True


def _sampled_again(worst: Witness, made: Mechanism | BlackBox, seconds: float, seed: int) -> Witness:
    """Sample the deviation with fresh pairs; keep it as found if these are less precise."""
    search = Search(seconds=seconds, runs=RUNS, seed=seed + AFRESH, bounds="asymptotic")
    fresh = gain(
        worst.market, made, worst.agent, worst.copies, confidence=CONFIDENCE, search=search, stop_when_decided=False
    )
    if fresh.estimate.error >= worst.gain.error:
        return worst
    return replace(worst, honest=fresh.honest, copied=fresh.copied, gain=fresh.estimate)


def _scope(searches: Sequence[Audit]) -> str:
    """Describe the scope in a sentence; the audit's own would name every owner."""
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


@dataclass(frozen=True)
class CopyWorth:
    """Worth of an owner's copies: with them, with each original once, and the difference; in rewards in [0, 1].

    `remark` says why numbers are missing.
    """

    owner: LogOwner
    copied: Estimate | None
    once: Estimate | None
    gain: Estimate | None
    remark: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "owner": self.owner.name,
            **fields_of(self.owner, "accounts", "copies"),
            "originals": [[list(arm.place) for arm in group] for group in self.owner.originals],
            "with_copies": to_data(self.copied),
            **fields_of(self, "once", "gain", "remark"),
        }


def posterior_market(owners: Sequence[LogOwner], fitted: FittedPriors, market: Market) -> Market:
    """Return the fitted market with what the log says of each original as its prior."""
    rows = {owner.name: fitted.posterior[owner.name][: len(owner.originals)] for owner in owners}
    priors = {name: [condense(row, fitted.grid, 3, ".5g") for row in own] for name, own in rows.items()}
    agents = [Agent(name, prior=prior) for name, prior in priors.items()]
    return Market(agents, market.horizon, market.share, ends=market.ends)


def worth_of_copies(
    market: Market, mechanism: Mechanism | BlackBox, owners: Sequence[LogOwner], seconds: float, seed: int = 0
) -> list[CopyWorth]:
    """Return what each owner's copies are worth, the largest first."""
    registered = {owner.name: owner.copies for owner in owners}
    copiers = [owner for owner in owners if owner.copied]
    clock, found = Deadline(seconds), []
    for number, owner in enumerate(copiers):
        left = clock.share(len(copiers) - number).left or 0.0
        found.append(_worth(market, mechanism, owner, registered, left, seed))
    return sorted(found, key=lambda each: -(each.gain.value if each.gain is not None else -np.inf))


def _worth(
    market: Market,
    mechanism: Mechanism | BlackBox,
    owner: LogOwner,
    registered: dict[str, tuple[int, ...]],
    seconds: float,
    seed: int,
) -> CopyWorth:
    once = registered | {owner.name: (1,) * len(owner.copies)}
    if seconds <= 0:
        return CopyWorth(owner, None, None, None, "there was no time left for it; give more --seconds")
    clock = Deadline(seconds)
    try:
        if isinstance(mechanism, Mechanism):
            try:
                with_copies = evaluate(market, mechanism, registered, engine="closed-form").payoff[owner.name]
                without = evaluate(market, mechanism, once, engine="closed-form").payoff[owner.name]
            except CloneproofError:
                pass
            else:
                return CopyWorth(owner, with_copies, without, with_copies - without)
        search = Search(seconds=max(clock.left or 0.0, 0.1), runs=RUNS, seed=seed, bounds="asymptotic")
        sampled = gain(market, mechanism, owner.name, registered, stop_when_decided=False, search=search)
    except CloneproofError as refusal:
        return CopyWorth(owner, None, None, None, str(refusal))
    if sampled.runs < LEAST_RUNS:
        remark = f"{sampled.runs} pairs of runs in {seconds:.0f} s are too few for bounds; give more --seconds"
        return CopyWorth(owner, None, None, None, remark)
    return CopyWorth(owner, sampled.copied, sampled.honest, sampled.estimate)
